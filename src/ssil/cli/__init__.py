"""The command line, the only room that prints or exits; it may import every other room.

One file per command: `ssil run` is in `run.py`, `ssil data check` in `data_check.py`. Commands share `terminal.py`
(console, tables), `progress.py` (bars and lines), `run_tables.py`, `run_display.py` and `grid_display.py` (runs).
Start with `main` below, which turns exceptions into exit codes, and `run.py`; Ctrl-C is handled in `interrupts.py`.
"""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter, Token, UnknownCommandError, UnusedCliTokensError, convert

from ssil.core import __version__
from ssil.core.errors import RefusedError, UserError, did_you_mean

DONE, FAILED, BAD_INPUT, REFUSED, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes. `REFUSED`: `--max-drop` or `ssil check` said no. `FAILED`: a run of a grid failed, or a bug."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a disk, or a share of it, that is full."""
BUGS = (None, errno.EBADF, errno.EFAULT, errno.ECHILD, errno.ESRCH, errno.EDEADLK)
"""Errors of the system that no file, folder or disk can cause, but only a wrong call."""
NO_MEMORY = ("can't allocate memory", "out of memory")
"""What torch says when memory can't be had."""
TRACEBACK = "SSIL_TRACEBACK"
"""The environment variable with which a message of one line is preceded by where it comes from."""

COMMANDS = {
    "Start here": {
        "demo": "Compare three methods on a small stream, in under 3 minutes.",
    },
    "Your own classifier": {
        "learn": "Learn new classes, or more images of known ones, and keep the old.",
        "predict": "Classify images, with probabilities.",
        "test": "Test a model by labelled images that it has not seen.",
        "exam": "Remember a test folder by which every later update is judged.",
        "inspect": "Show a model's classes, their kept images and accuracies.",
        "history": "List a model's versions: what each has learnt, and accuracies before and after.",
        "accept": "Publish an update that --max-drop has refused.",
        "discard": "Remove an update that --max-drop has refused.",
        "rollback": "Make another version of a model the current one.",
        "rename": "Give a model's class another name.",
        "forget": "Remove a class from a model, and erase its images.",
        "prune": "Remove a model's old versions, and the images that only they use.",
        "export": "Write a model as an ONNX file, for other programs.",
        "studio": "Open a model in the browser: add photos, learn, try, take back.",
        "serve": "Predict over HTTP, for other programs.",
    },
    "Experiments": {
        "run": "Learn a stream of tasks with a method, or go on with it.",
        "grid": "Run methods in scenarios with several seeds, some at once.",
        "paper": "List the paper's tables and figures, or run what they need and make them.",
        "claims": "Check the paper's 22 claims: run what they need, tell which hold.",
    },
    "Results": {
        "show": "Show the results of runs.",
        "report": "Write an HTML page of the results of runs: tables and plots.",
        "diff": "Show how two runs differ, in settings and results.",
    },
    "Files": {
        "verify": "Verify every file of a model, a run or a store; repair what can be.",
        "cache": "Show what the cache holds, or clear what nobody needs.",
        "doctor": "Show what is installed and what this machine offers; test whether learning works.",
        "completion": "Print the script with which a shell completes commands and options.",
    },
    "Methods and data": {
        "methods": "List the methods, or show the options and settings of one.",
        "check": "Check a method of your own as the built-in ones are checked.",
        "weights": "List the pretrained weights that `--init` knows by name.",
        "datasets": "List the data sets.",
        "data": "Prepare, check and look at data sets of image files.",
        "scenarios": "List the 60 scenarios of the paper.",
        "protocols": "List the protocols of published tables, with their accuracies.",
    },
}
"""The help's groups, and the summary of each command; the command's file is imported only when it is used."""


def _converted(type_: Any, tokens: Sequence[Token]) -> Any:
    """Return the value of an option as cyclopts does, but raise ValueError where it would round a number.

    >>> _converted(int, [Token(value="1.5")])
    Traceback (most recent call last):
    ...
    ValueError: '1.5' is no whole number
    """
    value = convert(type_, tokens)
    if type(value) is int and "." in tokens[0].value and float(tokens[0].value) != value:
        raise ValueError(f"{tokens[0].value!r} is no whole number")
    return value


app = App(
    default_parameter=Parameter(converter=_converted),
    name="ssil",
    help="Class-incremental learning for image classifiers, after SS-IL (ICCV 2021).",
    help_epilogue="""Examples:
  ssil demo
  ssil learn birds photos/
  ssil predict birds somebody.jpg
  ssil run --dataset digits --method ssil --tasks 5 --out runs/first
  ssil COMMAND --help""",
    version=__version__,
    help_format="plaintext",
    result_action="return_value",
    exit_on_error=False,
    print_error=False,
    suppress_keyboard_interrupt=False,
)
app["--help"].group = app["--version"].group = Group("Options", sort_key=len(COMMANDS))
for _position, (_title, _commands) in enumerate(COMMANDS.items()):
    _group = Group(_title, sort_key=_position)
    for _place, (_name, _summary) in enumerate(_commands.items()):
        app.command(f"ssil.cli.{_name}:app", name=_name, help=_summary, sort_key=_place, group=_group)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command and return its exit code; an unforeseen exception is raised.

    Args:
        arguments: The words after `ssil`, by default those of the process.
    """
    try:
        app(arguments)
    except CycloptsError as error:
        return _fail(f"error: {_explain(error)}", BAD_INPUT)
    except UserError as error:
        return _fail(f"error: {error}", BAD_INPUT)
    except RefusedError as error:
        return _fail(f"refused: {error}", REFUSED)
    except KeyboardInterrupt as interrupt:  # its message says what is kept, see interrupts.py
        return _fail(f"interrupted{': ' if interrupt.args else ''}{interrupt}", INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:  # a full disk, a path that is too long, a folder that can't be read
        if error.errno in BUGS:
            raise
        return _fail(f"error: {_explain_os(error)}", BAD_INPUT)
    except (MemoryError, RuntimeError) as error:
        if not _lacks_memory(error):
            raise
        return _fail("error: memory: there is too little for these settings; give smaller ones", BAD_INPUT)
    return DONE


def _lacks_memory(error: Exception) -> bool:
    """Return whether memory could not be had, on a CPU or a GPU; torch has no exception of its own for the former."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)


def _fail(message: str, code: int) -> int:
    from ssil.cli.terminal import printable  # imports rich, which `ssil --help` need not

    if os.environ.get(TRACEBACK):
        traceback.print_exc()
    print(printable(message), file=sys.stderr)
    return code


def _explain_os(error: OSError) -> str:
    from ssil.cli.terminal import shortened

    where = f"{shortened(error.filename)}: " if error.filename else ""
    hint = "check the path and its permissions" if where else f"{TRACEBACK}=1 in the environment shows where"
    return f"{where}{error.strerror}; {'make room, and give the same command again' if error.errno in FULL else hint}"


def _explain(error: CycloptsError) -> str:
    """Return the error in one line. Cyclopts' own message for an unknown command would import every command."""
    extra = (error.unused_tokens or ["?"])[0]
    if isinstance(error, UnusedCliTokensError):
        return f"unexpected argument {extra!r}; see `ssil {' '.join(error.command_chain or ())} --help`"
    if not isinstance(error, UnknownCommandError):
        return " ".join(str(error).split())
    known = [name for name in error.app or () if not name.startswith("-")]
    hint = did_you_mean(extra, known, f"there are: {', '.join(known)}")
    return f"unknown command {extra!r}; {hint}"
