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
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import predict
from ssil.classifier.publish_update import publish_update
from ssil.data import image_index
from ssil.learning.task import Progress, ProgressReport

SETTINGS = tiny_classifiers.settings(epochs=2, later_epochs=2).model_dump()
TRUSTED = (SETTINGS["backbone"],)


def taught(folder: Path, images: Path, fuse: Fuse | None = None) -> None:
    def watch(progress: Progress, report: ProgressReport) -> None:
        if fuse:
            fuse.tick("step")

    if fuse:
        image_index.read_image_file = fuse.before("read", image_index.read_image_file)
    publish_update(folder, str(images), SETTINGS, observer=watch)


def look(folder: Path, answer: Path) -> None:
    """Which version predicts, and what it says; every image is read."""
    found = ModelDirectory(folder, TRUSTED).load()
    shown = [image for image, _ in tiny_classifiers.labelled_images(["ant", "cat"], 2)]
    kept = (*found.classifier.exemplars, *found.classifier.holdout)
    assert all(image.read() for group in kept for image in group)
    said = {
        "version": found.number,
        "answers": [*predict(found.classifier, shown)],
        "names": found.classifier.classes.names,
    }
    answer.write_text(json.dumps(said))


def looked(folder: Path) -> dict[str, Any]:
    answer = folder.with_suffix(".json")
    killed(forked(lambda: look(folder, answer)))
    found: dict[str, Any] = json.loads(answer.read_text())
    return found


def litter(folder: Path) -> list[str]:
    """Files and folders that no version needs."""
    versions = [path for path in folder.glob("versions/*") if path.name.isdecimal()]
    said = [json.loads((path / "model.json").read_bytes()) for path in versions]
    needed = {folder / name for name in ("current.json", "lock", "versions", "pictures")} | {*versions}
    needed |= {path / name for path in versions for name in ("model.json", "weights.safetensors", "model.onnx")}
    groups = [group for one in said for group in (*one["exemplars"], *one["quiz"])]
    files = {folder / image["file"] for group in groups for image in group}
    return sorted(str(path) for path in {*folder.rglob("*")} - needed - files - {path.parent for path in files})


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
