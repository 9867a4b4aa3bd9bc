"""Odd command lines: never a traceback, never a hang, and nothing is left behind by what is refused."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

import ssil.cli
import tiny_classifiers
from attacked import BACKBONE, LEARN, SHORT, TRUST, images, log
from command_lines import LONG, SEED, Answer, CommandLines, contents
from odd_command_lines import GRAMMARS, lines

pytestmark = pytest.mark.slow

COUNT = dict.fromkeys(GRAMMARS, 60) | {"run": 1800, "data prepare": 250, "data list": 200}
COUNT |= {"learn": 400, "learn, new": 400, "learn, closed form": 400}
COUNT |= {"data show": 150, "data check": 150, "predict": 200, "rename": 150, "export": 100, "inspect": 150}
"""Command lines of the long form: 5,000 and some."""

GRID = """
seeds = [0]
[settings]
dataset = "data.npz"
tasks = 2
[scenarios.small]
memory = 9
[methods.ft]
"""

MEMORY = 16 << 30
"""Bytes of address space that a command may have."""
PROCESSOR = 40
"""Seconds of a processor's time after which a command hangs; other programs on the machine don't count."""


class Sandbox:
    """A folder with one of each kind of thing that commands take; it is made anew after a command has changed it."""

    def __init__(self, ssil: CommandLines, folder: Path, pristine: Path) -> None:
        self.ssil, self.folder, self.pristine = ssil, folder, pristine
        self.before = contents(pristine)
        shutil.copytree(pristine, folder, symlinks=True)

    def __call__(self, *line: object, stdin: Path | None = None) -> tuple[Answer, list[str]]:
        """Carry out a command here; return the answer, and which files it has changed or left."""
        limits = {"memory_limit": MEMORY, "processor_limit": PROCESSOR}
        answer = self.ssil(*line, folder=self.folder, seconds=10.0 * PROCESSOR, stdin=stdin, **limits)
        after = contents(self.folder)
        changed = sorted({name for name, _ in after.items() ^ self.before.items()})
        if changed:
            shutil.rmtree(self.folder)
            shutil.copytree(self.pristine, self.folder, symlinks=True)
        return answer, changed


@pytest.fixture(scope="module")
def sandbox(ssil: CommandLines, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Sandbox:
    root = tmp_path_factory.mktemp("sandbox")
    folder = root / "pristine"
    folder.mkdir()
    names = {"model": "model", "finished_run": "run", "stopped_run": "stopped", "png_store": "store"}
    names |= {"closed_form_model": "closed"} | ({"default_model": "lite0"} if LONG else {})
    for fixture, name in names.items():
        shutil.copytree(request.getfixturevalue(fixture), folder / name)
    shutil.copy(request.getfixturevalue("patterns"), folder / "data.npz")
    images(folder / "photos", ("ant", "cow"), "png")
    shutil.copy(folder / "photos/ant/0.png", folder / "image.png")
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("some text\n")
    (folder / "my.py").write_text("x = 1\n")
    (folder / "table.csv").write_text("path,label\nphotos/ant/0.png,ant\nphotos/cow/0.png,cow\nphotos/cow/9.png,cow\n")
    (folder / "settings.toml").write_text('dataset = "data.npz"\ntasks = 2\n')
    (folder / "grid.toml").write_text(GRID)
    return Sandbox(ssil, root / "sandbox", folder)


def fault(line: list[str], answer: Answer, changed: list[str]) -> str:
    """Return what is wrong with an answer: hang, traceback, code, unexplained, left; or nothing."""
    if answer.hangs:
        return "hang"
    if answer.crashed:
        return "traceback"
    if answer.code not in (0, 2, 3, 130) and not (line[0] == "predict" and answer.code == 1):
        return "code"
    if answer.code in (2, 3) and not answer.refused:
        return "unexplained"
    return "left" if answer.code == 2 and changed else ""


@pytest.mark.parametrize("command", GRAMMARS)
def test_odd_command_lines(sandbox: Sandbox, command: str) -> None:
    found, wrong = Counter[str](), list[str]()
    for line in lines(command, COUNT[command] if LONG else max(4, COUNT[command] // 25), SEED):
        answer, changed = sandbox(*line)
        what = fault(line, answer, changed)
        found[what or f"exit {answer.code}"] += 1
        if what:
            short = " ".join(repr(word[:40]) if len(word) != len(word[:40]) else repr(word) for word in line)
            wrong.append(f"{what}: {short}: {answer.last[:160]} {changed[:4] if what == 'left' else ''}")
    log(f"command lines, {command}", found)
    assert not wrong, f"{found}\n" + "\n".join(wrong)


def commands(app: App, words: str = "") -> Iterator[tuple[str, App]]:
    """Yield all commands of an application, by their words."""
    for name in app:
        if not name.startswith("-"):
            yield f"{words} {name}".strip(), app[name]
            yield from commands(app[name], f"{words} {name}")


def options(app: App) -> Iterator[set[str]]:
    """Yield the names of each option that the help of a command shows."""
    shown = [argument for argument in app.assemble_argument_collection() if argument.show]
    yield from filter(None, ({name for name in argument.names if name.startswith("--")} for argument in shown))


UNDRAWN = {"run": {"--compile"}}  # which takes a minute each time


def test_every_option_of_every_command_is_drawn() -> None:
    drawn: dict[str, set[str]] = {}
    for name, grammar in GRAMMARS.items():
        words = drawn.setdefault(grammar.command or name, set())
        words |= {*grammar.options, *grammar.usual, *grammar.always, *UNDRAWN.get(name, ())}
    known = {name: app for name, app in commands(ssil.cli.app) if app.default_command}
    assert known.keys() == drawn.keys()
    missing = [f"{name} {names}" for name, app in known.items() for names in options(app) if not names & drawn[name]]
    assert not missing, "add them to tests/support/odd_command_lines.py"


SMALL = ("--dataset", "data.npz", "--tasks", 2, "--epochs", 1, "--backbone", BACKBONE, "--batch", 8, "--threads", 1)
NEW = ("learn", "new", "photos", *LEARN, *SHORT)
LEFT = "x/" * 3_000

REFUSED: dict[str, tuple[object, ...]] = {
    "infinite rate": ("run", *SMALL, "--lr", "1e39", "--out", "new"),
    "diverging run": ("run", *SMALL, "--lr", "1e15", "--out", "new"),
    "huge images": ("run", *SMALL[2:], "--dataset", "photos", "--image-size", 10**6, "--out", "new"),
    "run into a long path": ("run", *SMALL, "--out", LEFT),
    "run into a long name": ("run", *SMALL, "--out", "a" * 300),
    "run into a name that isn't UTF-8": ("run", *SMALL, "--out", "caf\udce9", "--track", "tensorboard"),
    "branch that scores in another way": ("run", *SMALL, "--branch", "bic"),
    "verify a folder of images": ("verify", "photos", "--repair"),
    "clear a kind of no cache": ("cache", "clear", "other"),
    "negative memory": ("run", *SMALL, "--memory", -1),
    "infinite megabytes": ("learn", "new", "photos", "--memory-mb", "1e400"),
    "no megabytes": ("learn", "new", "photos", "--memory-mb", "nan"),
    "no backbone": ("learn", "new", "photos", *SHORT, "--backbone", "identity"),
    "no page": (*NEW, "--html", ""),
    "page in /proc": (*NEW, "--html", "/proc/x.html"),
    "long page": (*NEW, "--html", LEFT),
    "learn into a long path": ("learn", LEFT, "photos", *LEARN, *SHORT),
    "learn a long path": ("learn", "new", LEFT, *LEARN, *SHORT),
    "predict by a long path": ("predict", LEFT, "photos"),
    "diverging update": ("learn", "model", "photos", *TRUST, *SHORT, "--lr", "1e6", "--batch", 1000),
    "diverging first update": (*NEW, "--lr", "1e6", "--batch", 1000),
    "drop of no number": ("learn", "model", "photos", *TRUST, *SHORT, "--max-drop", "nan"),
    "negative drop": ("learn", "model", "photos", *TRUST, *SHORT, "--max-drop", -1),
    "negative minutes": (*NEW, "--minutes", -1),
    "no minutes": (*NEW, "--minutes", "nan"),
    "rename in a misspelt model": ("rename", "modle", "ant", "bee"),
    "forget in a misspelt model": ("forget", "modle", "ant"),
    "prune a misspelt model": ("prune", "modle"),
    "rollback a misspelt model": ("rollback", "modle", 1),
    "history of a misspelt model": ("history", "modle"),
    "rename to a name that isn't UTF-8": ("rename", "model", "ant", "caf\udce9", *TRUST),
    "rename to nothing": ("rename", "model", "ant", "", *TRUST),
    "export into a folder": ("export", "model", "empty", *TRUST),
    "export into a long path": ("export", "model", LEFT, *TRUST),
    "export into a file's folder": ("export", "model", "notes.txt/x.onnx", *TRUST),
    "page into a folder": ("inspect", "model", "--html", "empty", *TRUST),
    "page into a file's folder": ("inspect", "model", "--html", "notes.txt/x.html", *TRUST),
    "report into a file": ("report", "run", "--out", "notes.txt"),
    "list into a folder": ("data", "list", "photos", "--out", "empty"),
    "sheet into a folder": ("data", "show", "photos", "--sheet", "empty"),
    "sheet of no known format": ("data", "show", "photos", "--sheet", "x.unknown"),
    "store into a long path": ("data", "prepare", "photos", "--out", LEFT),
    "tables of too many seeds": ("paper", "table1", "--seeds", 2**63, "--dry-run"),
    "claims of no seed": ("claims", "--seeds", 0, "--dry-run"),
    "a matrix that no memory holds": (
        "run",
        *SMALL[:4],
        *SMALL[6:8],
        "--method",
        "ranpac",
        "--option",
        "width=1000000",
        "--memory",
        0,
    ),
    "a port beyond the last": ("serve", "model", "--port", 70_000, *TRUST),
    "demo into a file": ("demo", "--out", "notes.txt"),
    "grid into a file": ("grid", "grid.toml", "--out", "notes.txt"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_command_line_that_must_be_refused(sandbox: Sandbox, name: str) -> None:
    answer, changed = sandbox(*REFUSED[name])
    assert not answer.hangs
    assert not answer.crashed, answer.err[-1500:]
    assert answer.refused, (answer.code, answer.out[-300:], answer.err[-300:])
    kept = {"new", "new/lock", "new/log.jsonl", "new/record.json"} if name == "diverging run" else set()
    assert {*changed} <= kept


def test_large_images_in_a_small_network(sandbox: Sandbox) -> None:
    """Without --image-size they have 224 x 224 pixels, at which oneDNN once crashed."""
    answer, _ = sandbox("run", *SMALL[2:], "--dataset", "store", "--device", "cpu")
    assert answer.code == 0, (answer.code, answer.err)


def test_a_picture_on_standard_input(sandbox: Sandbox) -> None:
    answer, _ = sandbox("predict", "model", "-", *TRUST, stdin=sandbox.pristine / "image.png")
    assert answer.code == 0, answer.err


def test_a_store_whose_name_is_not_utf_8_is_made(sandbox: Sandbox) -> None:
    answer, changed = sandbox("data", "prepare", "photos", "--out", "caf\udce9")
    assert answer.code == 0, answer.err
    assert "caf\udce9/store.json" in changed


def test_an_image_whose_name_is_not_utf_8_is_learnt(sandbox: Sandbox, tmp_path: Path) -> None:
    source = tiny_classifiers.folder(tmp_path / "photos", ["elk", "fox"])
    (source / "elk" / "0.png").rename(source / "elk" / "caf\udce9.png")
    assert os.listdir(os.fsencode(source / "elk"))  # noqa: PTH208
    answer, changed = sandbox("learn", "model", source, *TRUST, *SHORT)
    assert answer.code == 0, answer.err
    assert "model/versions/0003/model.json" in changed


def test_arrays_with_classes_that_are_named_twice(sandbox: Sandbox, tmp_path: Path) -> None:
    import numpy as np

    with np.load(sandbox.pristine / "data.npz") as arrays:
        np.savez(tmp_path / "twice.npz", **arrays, classes=np.array(["a", "a", "b", "c", "d", "e"]))
    answer, _ = sandbox("run", *SMALL[2:], "--dataset", tmp_path / "twice.npz")
    assert answer.refused, (answer.code, answer.out)
