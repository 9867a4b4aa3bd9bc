"""What a model directory holds and predicts, looked at by a process of its own."""

import json
from pathlib import Path
from typing import Any

import tiny_classifiers
from kill_points import forked, killed
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import predict

SETTINGS = tiny_classifiers.settings(epochs=2, later_epochs=2).model_dump()
TRUSTED = (SETTINGS["backbone"],)


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
