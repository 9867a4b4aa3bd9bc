"""Updates that are killed at given moments, each in a process of its own, forked from this one, which has torch ready.

    PYTHONPATH=tests/support python tests/classifier/killed.py OUT < {"name": ["write", 3]}

prints for each name whether the kill took place, which version predicts afterwards and whether it answers as it should,
the classes that the next update leads to, and what it leaves that is of no use.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

import tiny_classifiers
from kill_points import Fuse, forked, kill, killed
from model_states import SETTINGS, litter, looked
from ssil.classifier.publish_update import publish_update
from ssil.data import image_index
from ssil.learning.task import Progress, ProgressReport


def taught(folder: Path, images: Path, fuse: Fuse | None = None) -> None:
    def watch(progress: Progress, report: ProgressReport) -> None:
        if fuse:
            fuse.tick("step")

    if fuse:
        image_index.read_image_file = fuse.before("read", image_index.read_image_file)
    publish_update(folder, str(images), SETTINGS, observer=watch)


def outcome(root: Path, out: Path, event: str, when: float, begun: str = "begun") -> dict[str, Any]:
    if begun:
        shutil.copytree(root / begun, out)
    was_killed = kill(lambda fuse: taught(out, root / ("cat" if begun else "first"), fuse), event, when)
    found = looked(out) if (out / "current.json").exists() else None
    right = found == looked(root / ("begun" if found["version"] == 1 else "whole")) if found else None
    killed(forked(lambda: taught(out, root / "dogs")))
    after = looked(out)
    return {
        "killed": was_killed,
        "version": found and found["version"],
        "right": right,
        "names": after["names"],
        "newest": after["version"] == max(int(path.name) for path in (out / "versions").iterdir()),
        "litter": litter(out),
    }


def main(root: Path) -> None:
    torch.set_num_threads(1)
    for name, classes in {"first": ["ant", "bee"], "cat": ["cat"], "dogs": ["dog", "elk"]}.items():
        tiny_classifiers.folder(root / name, classes)
    killed(forked(lambda: taught(root / "begun", root / "first")))
    shutil.copytree(root / "begun", root / "whole")
    killed(forked(lambda: taught(root / "whole", root / "cat")))
    cases = enumerate(json.load(sys.stdin).items())
    json.dump({name: outcome(root, root / f"case-{n}", *case) for n, (name, case) in cases}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
