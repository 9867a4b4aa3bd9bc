"""The command lines and images of the small directories that the attacks damage."""

import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ssil.testing import small_stream

BACKBONE = f"{small_stream.__file__}:backbone"
TRUST = ("--trust", BACKBONE)
TRAINING = ("--backbone", BACKBONE, "--epochs", 1, "--batch", 4, "--threads", 1, "--device", "cpu")
RUN = ("--tasks", 3, "--memory", 9, *TRAINING, "--checkpoint-every", 2)
UNTRAINED = ("--backbone", BACKBONE, *TRUST, "--image-size", 8, "--grey", "--no-flip", "--memory", 12)
LEARN = (*UNTRAINED, "--batch", 8)
SHORT = ("--epochs", 1, "--later-epochs", 1)


def images(folder: Path, names: Iterable[str], suffix: str, count: int = 6) -> Path:
    """Write a folder of images with one sub-folder per class: coarse patterns with noise, in colour."""
    for name in names:
        (folder / name).mkdir(parents=True)
        own = np.random.default_rng(list(os.fsencode(name)))
        pattern = np.kron(own.integers(256, size=(4, 4, 3)), np.ones((4, 4, 1)))
        for copy in range(count):
            file = io.BytesIO()
            pixels = (pattern + own.normal(0, 12, pattern.shape)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(file, "JPEG" if suffix == "jpg" else "PNG")
            (folder / name / f"{copy}.{suffix}").write_bytes(file.getvalue())
    return folder


def fresh(source: Path, target: Path) -> Path:
    """Return `target` as a new copy of `source`, whatever was there."""
    if target.exists():
        shutil.rmtree(target)
    return Path(shutil.copytree(source, target, symlinks=True))


def seal(path: Path, said: dict[str, Any]) -> None:
    """Write a JSON file of a model with the right checksum."""
    checksum = sha256(json.dumps(said, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]
    path.write_text(json.dumps({**said, "checksum": checksum}, ensure_ascii=False))


def log(attack: str, outcomes: Counter[str]) -> None:
    """Add the outcomes of an attack to the file $SSIL_ATTACK_LOG, if there is one."""
    if name := os.environ.get("SSIL_ATTACK_LOG"):
        with Path(name).open("a") as file:
            file.write(json.dumps({"attack": attack, **outcomes}) + "\n")
