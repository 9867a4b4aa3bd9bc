"""Commands that are killed at any moment, by the clock, and then repeated: the result is that of one never killed."""

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from attacked import SHORT, TRUST, fresh, log
from command_lines import LONG, SEED, CommandLines, contents, model_result, run_result

pytestmark = pytest.mark.slow

KILLS = {"run": 100, "learn": 60, "prepare": 40} if LONG else {"run": 4, "learn": 3, "prepare": 3}
"""How often each command is killed; the long form has 200 kills."""


def killed(ssil: CommandLines, chance: random.Random, seconds: float, *command: object) -> bool:
    """Carry a command out, and kill it before it has taken `seconds`; return whether it was not done before."""
    return ssil(*command, seconds=chance.uniform(0, seconds)).code is None


def usual_seconds(ssil: CommandLines, ready: Callable[[], object], *command: object) -> float:
    """Return how long a command takes if nothing disturbs it: the least of three, each after `ready`."""
    return min(_seconds(ssil, ready, *command) for _ in range(3))


def _seconds(ssil: CommandLines, ready: Callable[[], object], *command: object) -> float:
    ready()
    started = time.monotonic()
    assert ssil(*command).code == 0
    return time.monotonic() - started


def test_a_killed_run_has_the_same_result(ssil: CommandLines, run_command: tuple[object, ...], tmp_path: Path) -> None:
    chance, found, number = random.Random(f"run {SEED}"), Counter[str](), 0
    whole = tmp_path / "whole"
    usual = usual_seconds(ssil, lambda: shutil.rmtree(whole, ignore_errors=True), *run_command, "--out", whole)
    expected = run_result(whole)
    while found["killed"] < KILLS["run"] and number < 20 * KILLS["run"]:
        number += 1
        out = tmp_path / f"run-{number}"
        while found["killed"] < KILLS["run"] and killed(ssil, chance, usual, *run_command, "--out", out):
            found["killed"] += 1
        assert ssil(*run_command, "--out", out).code == 0
        assert run_result(out) == expected
        shutil.rmtree(out)
    log("kills, run", found)
    assert found["killed"] >= KILLS["run"]


@pytest.mark.parametrize("kind", ["model", "closed_form_model"])
def test_a_killed_update_has_the_same_result(
    ssil: CommandLines, photos: Path, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    chance, found, number = random.Random(f"learn {SEED}"), Counter[str](), 0
    model: Path = request.getfixturevalue(kind)
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    command = ("learn", folder, photos / "third", *TRUST, *(SHORT if kind == "model" else ()))
    usual = usual_seconds(ssil, lambda: fresh(model, folder), *command)
    expected = model_result(folder)
    while found["killed"] < KILLS["learn"] and number < 20 * KILLS["learn"]:
        number += 1
        fresh(model, folder)
        found["killed"] += killed(ssil, chance, usual, *command)
        if json.loads((folder / "current.json").read_text())["version"] == 2:  # killed before version 3 was current
            written = (folder / "versions" / "0003").is_dir()
            assert ssil(*("rollback", folder, "3", *TRUST) if written else command).code == 0
        else:  # the page may have been half written
            assert ssil("verify", folder, "--repair", *TRUST).code == 0
        assert model_result(folder) == expected
    log(f"kills, learn, {kind}", found)
    assert found["killed"] >= KILLS["learn"]


def test_a_killed_preparation_has_the_same_result(ssil: CommandLines, jpeg_store: Path, tmp_path: Path) -> None:
    chance, found, number = random.Random(f"prepare {SEED}"), Counter[str](), 0
    folder = tmp_path / "store"
    command = ("data", "prepare", jpeg_store.parent / "images", "--out", folder)
    usual = usual_seconds(ssil, lambda: shutil.rmtree(folder, ignore_errors=True), *command)
    expected = contents(folder)
    while found["killed"] < KILLS["prepare"] and number < 20 * KILLS["prepare"]:
        number += 1
        shutil.rmtree(folder, ignore_errors=True)
        found["killed"] += killed(ssil, chance, usual, *command)
        assert ssil(*command).code == 0
        assert contents(folder) == expected
    log("kills, prepare", found)
    assert found["killed"] >= KILLS["prepare"]
