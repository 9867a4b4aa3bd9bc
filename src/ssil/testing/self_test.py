"""The trials of `ssil doctor`: each returns what it found in a few words, and raises an exception if it is wrong."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from ssil.testing.small_stream import IMAGES, SETTINGS, backbone, patterns

IMAGES_OF_A_CLASS = 6
LEAST = 50.0
"""Percent of its own training images that the classifier must name: half of the classes would be named by chance."""


def learns_a_stream() -> str:
    """Learn six classes in three tasks with SS-IL."""
    from ssil.benchmark.config import make_config
    from ssil.benchmark.runner import run

    with TemporaryDirectory() as folder:
        data = patterns(Path(folder) / "patterns.npz", IMAGES)
        record = run(make_config({**SETTINGS, "dataset": str(data), "method": "ssil", "backbone": _backbone()}))
    assert record.summary, "the run did not end"
    return f"{record.summary.average_top1:.0f} % on average"


def _backbone() -> str:
    return f"{backbone.__code__.co_filename}:{backbone.__name__}"


def learns_a_classifier() -> str:
    """Learn two classes, then one more, on the default network, and name images with it."""
    from ssil.classifier.estimator import IncrementalClassifier

    images, labels = _coloured(("red", "green", "blue"))
    first = labels != "blue"
    classifier = IncrementalClassifier().fit(images[first], labels[first])
    classifier.partial_fit(images[~first], labels[~first])
    right = 100 * float((classifier.predict(images) == labels).mean())
    assert right > LEAST, f"it names only {right:.0f} % of its own images"
    return f"{right:.0f} % of its own images"


def predicts_without_torch() -> str:
    """Publish a model, and compare its predictions by ONNX Runtime with PyTorch's."""
    from ssil.classifier.estimator import IncrementalClassifier
    from ssil.classifier.exported_model import read_exported

    images, labels = _coloured(("red", "green"))
    with TemporaryDirectory() as folder:
        IncrementalClassifier().fit(images, labels).save(Path(folder) / "model")
        exported = read_exported(Path(folder) / "model")  # publishing has compared it with PyTorch
    assert exported, "the version has no model.onnx: it differs from PyTorch, or could not be written"
    return f"{len(exported.content) / 1e6:.0f} MB"


def _coloured(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.str_]]:
    """Return noisy images of one colour each, red, green or blue, and their names."""
    random = np.random.default_rng(0)
    images = random.integers(0, 80, (len(names) * IMAGES_OF_A_CLASS, 64, 64, 3), dtype=np.uint8)
    labels = np.repeat(np.array(names), IMAGES_OF_A_CLASS)
    for image, name in zip(images, labels, strict=True):
        image[..., ("red", "green", "blue").index(name)] += 150
    return images, labels


TRIALS = (learns_a_stream, learns_a_classifier, predicts_without_torch)
