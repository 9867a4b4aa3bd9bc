"""Refusals and acceptances that are killed at given moments, each in a process of its own, forked from this one.

    PYTHONPATH=tests/support python tests/classifier/candidate_kills.py OUT < {"name": ["refuse", "write", 3]}

prints for each name whether the kill took place, which version predicts then, whether it answers as it should, what
accepting a candidate leads to then, and what the model directory holds that is of no use.
"""

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

import tiny_classifiers
from kill_points import forked, kill, killed
from model_states import SETTINGS, TRUSTED, litter, looked
from ssil.classifier import publish_update as publishing
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_verification import verify_model
from ssil.core.errors import RefusedError, UserError


def learn(folder: Path, images: Path, refused: bool = False) -> None:
    if refused:
        publishing._excess = lambda result, limits: "too much is lost"
        with suppress(RefusedError):
            publishing.publish_update(folder, str(images), SETTINGS)
    else:
        publishing.publish_update(folder, str(images), SETTINGS)


def accept(folder: Path) -> None:
    directory = ModelDirectory(folder, TRUSTED)
    with directory.locked():
        directory.accept_candidate()


def discard(folder: Path) -> None:
    directory = ModelDirectory(folder, TRUSTED)
    with directory.locked():
        directory.drop_candidate()


def outcome(root: Path, out: Path, what: str, event: str, when: float) -> dict[str, Any]:
    shutil.copytree(root / ("begun" if what == "refuse" else "refused"), out)
    work: dict[str, Callable[[], None]] = {
        "refuse": lambda: learn(out, root / "cat", refused=True),
        "accept": lambda: accept(out),
        "discard": lambda: discard(out),
        "learn": lambda: learn(out, root / "cat"),
    }
    was_killed = kill(lambda _: work[what](), event, when)
    found = looked(out)
    right = found == looked(root / ("begun" if found["version"] == 1 else "whole"))
    candidate = ModelDirectory(out, TRUSTED).candidate.is_dir()
    sound = [defect for defect in verify_model(out, lambda *_: None, TRUSTED) if defect.problem != "left over"]
    killed(forked(lambda: try_accept(out)))
    return {
        "killed": was_killed,
        "version": found["version"],
        "right": right,
        "candidate": candidate,
        "defects": [str(defect.path) for defect in sound],
        "accepted": looked(out)["version"],
        "litter": litter(out),
    }


def try_accept(folder: Path) -> None:
    with suppress(UserError):
        accept(folder)


def main(root: Path) -> None:
    torch.set_num_threads(1)
    for name, classes in {"first": ["ant", "bee"], "cat": ["cat"]}.items():
        tiny_classifiers.folder(root / name, classes)
    killed(forked(lambda: learn(root / "begun", root / "first")))
    for name, refused in (("whole", False), ("refused", True)):
        shutil.copytree(root / "begun", root / name)
        killed(forked(partial(learn, root / name, root / "cat", refused)))
    cases = enumerate(json.load(sys.stdin).items())
    json.dump({name: outcome(root, root / f"case-{n}", *case) for n, (name, case) in cases}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
