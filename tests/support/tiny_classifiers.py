"""Small classifiers of coarse patterns, made in no time."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import tiny_runs
from ssil.classifier.classifier_settings import ClassifierSettings, make_settings
from ssil.classifier.image_file import ImageFile, LabelledImages


def settings(**given: Any) -> ClassifierSettings:
    backbone = f"{Path(tiny_runs.__file__)}:backbone"
    small = {"backbone": backbone, "image_size": 8, "grey": True, "flip": False, "epochs": 20, "later_epochs": 20}
    options = tiny_runs.OPTIONS.get(given.get("method", ""), {})
    return make_settings({**small, "batch": 8, "memory": 40, "options": options, **given})


def png(name: str, copy: int) -> bytes:
    """A pattern of its name's own, and some noise."""
    own, noise = np.random.default_rng(list(name.encode())), np.random.default_rng([copy, *name.encode()])
    pattern = np.kron(own.integers(256, size=(4, 4)), np.ones((2, 2))) + noise.normal(0, 12, (8, 8))
    file = BytesIO()
    Image.fromarray(pattern.clip(0, 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def labelled_images(names: Sequence[str], count: int = 10, first: int = 0) -> LabelledImages:
    made = ((name, copy) for name in names for copy in range(first, first + count))
    return [(ImageFile.from_bytes(f"{name}/{copy}.png", png(name, copy)), name) for name, copy in made]


def folder(root: Path, names: Sequence[str], count: int = 10) -> Path:
    for image, _ in labelled_images(names, count):
        path = root / image.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image.read())
    return root
