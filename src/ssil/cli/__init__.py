"""The command line: one file a command. The only place that prints or exits."""

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group, UnknownCommandError, UnusedCliTokensError

from ssil.core import __version__
from ssil.core.errors import RefusedError, UserError, did_you_mean

COMMANDS = {
    "demo": "Compare three methods on a small stream, in under 3 minutes.",
    "learn": "Learn new classes, or more of known ones, and keep the old.",
    "predict": "Classify images, with probabilities.",
    "inspect": "Show a model's classes, the images it keeps of each, and its accuracy.",
    "history": "List a model's versions: what each has learnt, and its accuracy on the classes before.",
    "rollback": "Make another version of a model the current one.",
    "rename": "Give a model's class another name.",
    "forget": "Let a model forget a class, and erase the images it keeps of it.",
    "prune": "Remove a model's old versions, and the images that only they refer to.",
    "export": "Write a model as an ONNX file, for other programs.",
    "run": "Learn a stream of tasks with a method, or go on with it.",
    "grid": "Run methods in scenarios with seeds, as many at once as you like.",
    "paper": "List the paper's tables and figures, or run what they need and make them.",
    "claims": "Check the paper's 20 claims: run what they need, and say which hold.",
    "show": "Show the results of runs.",
    "report": "Make a page of the results of runs: tables, plots, protocols.",
    "diff": "Show what differs between two runs, in settings and results.",
    "methods": "List the methods, or show all about one.",
    "check": "Check a method of your own against the contract that all built-in methods meet.",
    "datasets": "List the data sets.",
    "data": "Prepare, check and look at data sets of image files.",
    "scenarios": "List the 60 scenarios of the paper.",
}
"""Each command's line in the help; its file, which may import torch, is loaded only when it is used."""

_FIRST = {
    "demo": "Look",
    "learn": "Your own classifier",
    "run": "Experiments",
    "show": "Results",
    "methods": "What there is",
}
"""The command from which on the help's group is this one."""

_group = Group("Commands")
app = App(
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
for _place, (_name, _summary) in enumerate(COMMANDS.items()):
    _group = Group(_FIRST[_name], sort_key=_place) if _name in _FIRST else _group
    app.command(f"ssil.cli.{_name}:app", name=_name, help=_summary, sort_key=_place, group=_group)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry a command out, and say how it went: 0 done, 2 bad input, 3 refused by a guard, 130 interrupted.

    Anything unforeseen is raised.
    """
    try:
        app(arguments)
    except CycloptsError as error:
        return _refuse(_explain(error))
    except BrokenPipeError:  # the reader of a pipe has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as stopped:
        print(f"interrupted{': ' if stopped.args else ''}{stopped}", file=sys.stderr)
        return 130
    except UserError as error:
        return _refuse(str(error))
    except RefusedError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 3
    return 0


def _refuse(reason: str) -> int:
    print(f"error: {reason}", file=sys.stderr)
    return 2


def _explain(error: CycloptsError) -> str:
    """In one line; of an unknown command without loading the known ones, as cyclopts would."""
    extra = (error.unused_tokens or ["?"])[0]
    if isinstance(error, UnusedCliTokensError):
        return f"don't know what to do with {extra!r}; see `ssil {' '.join(error.command_chain or ())} --help`"
    if not isinstance(error, UnknownCommandError):
        return " ".join(str(error).split())
    known = [name for name in error.app or () if not name.startswith("-")]
    hint = did_you_mean(extra, known, f"there are: {', '.join(known)}")
    return f"unknown command {extra!r}; {hint}"
