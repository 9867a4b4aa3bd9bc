"""`ssil`: bad input gets one line on stderr and exit code 2, and writes nothing; the help is quick."""

import ast
import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ssil import __version__, cli
from ssil.cli import COMMANDS, main

TINY = {"--dataset": "digits", "--tasks": "2", "--epochs": "1", "--train-per-class": "4", "--backbone": "resnet14"}


def tiny(flag: str, value: str) -> list[str]:
    """A command that would run, but for one flag."""
    return ["run", *(word for pair in (TINY | {flag: value}).items() for word in pair)]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], "unknown command 'rnu'; did you mean 'run'?"),
        (["unheard-of"], "unknown command 'unheard-of'; there are: demo, learn"),
        (["run", "--taks", "3"], "--taks.*--tasks"),
        (["run", "a.toml", "more"], "'more'; see `ssil run --help`"),
        (["run", "--tasks", "ten"], "tasks: 'ten'"),
        (["run", "--task-sizes", "5,x"], "task_sizes: 'x'"),
        (["run", "--profile", "quik"], 'quik.*"quick"'),
        (["run", "--tasks"], "--tasks requires an argument"),
        (["run", "--option", "temperature"], "option: 'temperature' has no value; write --option name=value"),
        (["run", "--memory", "20", "--memory-per-class", "2"], "memory: give --memory"),
        (["run", "--checkpoint-every", "soon"], "checkpoint_every: 'soon'"),
        (["run", "--scenario", "imagnet-base-fixed-t10-10k"], "scenario: .*imagenet-base-fixed-t10-10k"),
        (["run", "missing.toml"], "config: missing.toml can't be read"),
        (tiny("--method", "sssil"), "method: .*'sssil'.*'ssil'"),
        (tiny("--dataset", "digitz"), "digitz.*digits"),
        (tiny("--backbone", "resnet15"), "backbone: .*'resnet15'.*resnet14"),
        (tiny("--option", "temprature=2"), "options: ssil has no option 'temprature'.*'temperature'"),
        (tiny("--option", "temperature=hot"), "options.temperature: 'hot'"),
        (tiny("--memory", "9"), "memory: 9 .* 10 classes"),
        (tiny("--tasks", "11"), "tasks: 11 tasks .* 10 classes"),
        (tiny("--lr", "1e39"), "lr: '1e39' does not fit"),
        (tiny("--batch", "9223372036854775808"), "batch: '9223372036854775808' does not fit"),
        (["run", "--image-size", "1000000"], "image_size: '1000000' does not fit"),
        (["run", "--epochs", "1.5"], "epochs: '1.5' does not fit"),
        (["paper", "table1", "--seeds", "1.5"], "--seeds: '1.5' is no whole number"),
        (["rollback", "model", "2.6"], "'2.6' is no whole number"),
        (["learn", "model", "photos", "--max-drop", "nan"], "max_drop: nan is no number of points"),
        (["learn", "model", "photos", "--max-class-drop", "-1"], "max_class_drop: -1.0 is no number of points"),
        (["learn", "model", "photos", "--minutes", "nan"], "minutes: nan is no time to train"),
        (["learn", "model", "photos", "--minutes", "-1"], "minutes: -1.0 is no time to train"),
        (["learn", "model", "photos", "--html", ""], "html: \\. can't be written"),
        (["learn", "model", "photos", "--html", "/proc/page.html"], "html: /proc/page.html can't be written"),
        (["learn", "model", "photos", "--backbone", "identity"], "backbone: identity is for features"),
        (["export", "model", "x" * 300], "out: x+ can't be written .File name too long"),
        (["rename", "modle", "ant", "bee"], "model: modle holds no model"),
        (["forget", "modle", "ant"], "model: modle holds no model"),
        (["rollback", "modle", "1"], "model: modle holds no model"),
        (["inspect", "x/" * 3_000], "File name too long; check the path"),
        (["data", "check", "photos", "--threads", "-1"], "--threads"),
        (["data", "show", "photos", "--sheet", "sheet.gif"], "sheet: sheet.gif must end in .png"),
        (["grid", "grid.toml", "--part", f"1/{'9' * 5_000}"], "missing|grid.toml"),
        (["methods", "lfw"], "method: .*'lfw'.*'lwf'"),
        (["show", "nowhere"], "run: nowhere holds no record.json"),
    ],
)
def test_bad_input(arguments: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = ["--out", "kept"] if arguments[0] == "run" else []
    assert main([*arguments, *out]) == 2
    output, error = capfd.readouterr()
    assert output == ""
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert re.search(said, error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tasks = ", "config: bad.toml is not valid TOML"),
        ("taks = 3", "config: bad.toml: taks: no such setting; did you mean 'tasks'?"),
        ("tasks = 'three'", "tasks: 'three'"),
        ("options = 3", "options: 3"),
    ],
)
def test_bad_file(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.toml").write_text(text)
    assert main(["run", "bad.toml", "--option", "temperature=2", "--out", "kept"]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


def test_a_full_disk_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "runs/first/record.json")

    monkeypatch.setattr("ssil.cli.run_display.run", fail)
    assert main(["run", "--dataset", "digits"]) == 2
    expected = "error: runs/first/record.json: No space left on device; make room, and give the same command again\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("number", [errno.EBADF, errno.EFAULT])
def test_a_system_error_that_only_a_bug_can_cause_is_not_hidden(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(number, "bad")

    monkeypatch.setattr("ssil.cli.run_display.run", broken)
    with pytest.raises(OSError, match="bad"):
        main(["run"])


def test_where_an_error_comes_from_is_shown_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr("ssil.cli.run_display.run", denied)
    assert main(["run"]) == 2
    assert capsys.readouterr().err == "error: denied; SSIL_TRACEBACK=1 in the environment shows where\n"
    monkeypatch.setenv("SSIL_TRACEBACK", "1")
    assert main(["run"]) == 2
    assert "in denied" in capsys.readouterr().err


def test_an_unforeseen_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ssil.cli.run_display.run", broken)
    with pytest.raises(ZeroDivisionError):
        main(["run"])


def test_help_waits_for_nothing_heavy() -> None:
    code = "import sys, ssil.cli; print({'torch', 'pydantic', 'lightning_fabric', 'matplotlib'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize("command", [name for group in COMMANDS.values() for name in group])
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert f"  ssil {command}" in capsys.readouterr().out.partition("Examples:")[2]


@pytest.mark.parametrize("file", sorted(Path(cli.__path__[0]).glob("*.py")), ids=lambda file: file.stem)
def test_help_fits_a_terminal_of_80_columns(file: Path) -> None:
    """Lines of an epilogue are printed as they are, and a longer one would be broken."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "help_epilogue":
            assert max(map(len, ast.literal_eval(node.value).splitlines())) <= 80
