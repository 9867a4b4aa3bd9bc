"""A power cut at any moment of `run`, `learn` or `data prepare` leaves the state before or the state after.

Every write, flush and rename of a command is recorded; then it is replayed up to each moment, with every possible end
of what was not flushed by then dropped, and what is left is used.
"""

import json
import pickle
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attacked import LEARN, SHORT, TRUST, log
from command_lines import LONG, Answer, CommandLines, contents, run_result
from power_cuts import Tree, cuts, write

pytestmark = pytest.mark.slow

STATES = 400 if LONG else 16
"""How many of the states after a cut are tried, at most."""


class Cuts:
    """A command whose writes are recorded, and the states that a power cut in it could leave."""

    def __init__(self, ssil: CommandLines, tmp_path: Path) -> None:
        self.ssil, self.tmp, self.work = ssil, tmp_path, tmp_path / "disk"

    def recorded(self, name: str, before: Path | None, *command: object) -> list[tuple[str, Tree]]:
        """Carry out a command on the folder disk/`name`, a copy of `before`; return a choice of the states."""
        self.work.mkdir()
        if before:
            shutil.copytree(before, self.work / name)
        copy = Path(shutil.copytree(self.work, self.tmp / "before"))
        trace = self.tmp / "trace"
        done = self.ssil(*command, trace=self.work, trace_file=trace)
        assert done.code == 0, done.err
        found = cuts(copy, pickle.loads(trace.read_bytes()))
        assert len(found) > 5
        middle = random.Random(name).sample(found[:-1], min(STATES, len(found) - 1))
        return [*sorted(middle, key=lambda one: int(one[0].split()[2])), found[-1]]

    def tried(self, name: str, states: list[tuple[str, Tree]], right: Callable[[Path, bool], str]) -> None:
        """Use each state by `right`, which returns what is wrong with it; the last must be the one after."""
        wrong, outcomes = list[str](), Counter[str]()
        shutil.rmtree(self.work)
        for number, (moment, tree) in enumerate(states):
            write(tree, self.work)
            what = right(self.work / name, number == len(states) - 1)
            outcomes["broken" if what else "before or after"] += 1
            wrong += [f"{moment}: {what}"] if what else []
            shutil.rmtree(self.work)
        log(f"power cuts, {name}", outcomes)
        assert not wrong, f"{len(wrong)} of {len(states)} states:\n" + "\n".join(wrong[:10])


@pytest.fixture
def power(ssil: CommandLines, tmp_path: Path) -> Cuts:
    return Cuts(ssil, tmp_path)


def explained(answer: Answer) -> str:
    return f"exit code {answer.code}, {answer.last}"


@pytest.mark.parametrize("start", ["new", "stopped"])
def test_a_run_goes_on_after_a_power_cut(
    power: Cuts, run_command: tuple[object, ...], finished_run: Path, request: pytest.FixtureRequest, start: str
) -> None:
    out = power.work / "run"
    before = request.getfixturevalue("stopped_run") if start == "stopped" else None
    states = power.recorded("run", before, *run_command, "--out", out)
    expected = run_result(finished_run)

    def right(folder: Path, end: bool) -> str:
        if end and (not (folder / "record.json").exists() or '"summary": null' in (folder / "record.json").read_text()):
            return "the run is done, but its end is lost"
        answer = power.ssil(*run_command, "--out", folder)
        if answer.code:
            return explained(answer)
        return "" if run_result(folder) == expected else "another result"

    power.tried("run", states, right)


def view(ssil: CommandLines, folder: Path, photos: Path) -> tuple[int | None, int | None, str]:
    """What a model says of itself and of images, with the exit codes; how large the directory is does not matter."""
    told = ssil("inspect", folder, "--json", *TRUST)
    said = ssil("predict", folder, photos / "first", "--json", "--top", 9, *TRUST)
    if told.code or said.code:
        return told.code, said.code, told.last
    known = json.loads(told.out)
    return 0, 0, f"{known['version']} {known['accuracy']} {known['classes']}{said.out}"


@pytest.mark.parametrize("start", ["new", "update"])
def test_a_model_is_the_old_or_the_new_after_a_power_cut(
    power: Cuts, photos: Path, request: pytest.FixtureRequest, start: str
) -> None:
    before = request.getfixturevalue("model") if start == "update" else None
    folder, images = power.work / "model", photos / ("third" if before else "first")
    command = ("learn", folder, images, *(TRUST if before else LEARN), *SHORT)
    if before:
        power.work.mkdir()
        shutil.copytree(before, folder)
        old = view(power.ssil, folder, photos)
        shutil.rmtree(power.work)
    states = power.recorded("model", before, *command)
    new = view(power.ssil, folder, photos)

    def right(folder: Path, end: bool) -> str:
        found = view(power.ssil, folder, photos)
        if found == new or (not end and before and found == old):
            return ""
        if not end and not before and not (folder / "current.json").exists():
            answer = power.ssil(*command)
            return "" if answer.code == 0 else f"can't be learnt again: {explained(answer)}"
        return f"neither the old nor the new model: {found[2][:200]}" if not end else "the new version is lost"

    power.tried("model", states, right)


def test_a_store_goes_on_after_a_power_cut(power: Cuts, jpeg_store: Path) -> None:
    command = ("data", "prepare", jpeg_store.parent / "images", "--out", power.work / "store")
    states = power.recorded("store", None, *command)
    expected = contents(power.work / "store")

    def right(folder: Path, end: bool) -> str:
        if end and not (folder / "store.json").exists():
            return "the store is complete, but its end is lost"
        answer: Any = power.ssil(*command)
        if answer.code:
            return explained(answer)
        checked = power.ssil("data", "check", folder)
        if checked.code:
            return explained(checked)
        found = {name: content for name, content in contents(folder).items() if not name.endswith(".part")}
        return "" if found == expected else f"another store: {sorted(found.items() ^ expected.items())[:3]}"

    power.tried("store", states, right)
