"""Marks on images before they are learnt: by a model that knows some of them, and without a model."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageEnhance

import drawn_fruit
from frozen_classifiers import classifiers
from ssil.classifier.advice.before_learning import ImageMark, marks_before_learning
from ssil.classifier.image_file import ImageFile
from ssil.learning.task import Progress, ProgressReport
from tiny_classifiers import labelled_images, png


def image(name: str, data: bytes) -> ImageFile:
    return ImageFile.from_bytes(name, data)


def shaded(data: bytes, factor: float) -> bytes:
    pixels = np.asarray(Image.open(BytesIO(data))) * factor
    file = BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def kinds(marks: list[ImageMark]) -> dict[str, tuple[str, str, str]]:
    return {mark.digest: (mark.kind, mark.label, mark.other) for mark in marks}


def test_what_a_model_says_of_new_images() -> None:
    known, again, other = classifiers("slda")[0], png("ant", 0), png("bee", 1)
    odd = {"again": ("ant", again), "other": ("ant", other), "double": ("dog", shaded(png("dog", 3), 0.97))}
    made = {name: image(name, data) for name, (_, data) in odd.items()}
    waiting = [*labelled_images(["dog", "eel"]), *((made[name], label) for name, (label, _) in odd.items())]
    seen = list[int]()

    def note(_: Progress, report: ProgressReport) -> None:
        seen.append(report.images)

    found = kinds(marks_before_learning(known, waiting, note))
    assert seen
    assert found[made["again"].digest] == ("learnt", "ant", "")
    assert found[made["other"].digest] == ("same", "ant", "bee")
    twins = {made["double"].digest, image("", png("dog", 3)).digest}
    assert [found[digest] for digest in twins if digest in found] == [("double", "dog", "")]
    assert len(found) <= 6


@pytest.mark.parametrize("count", [1, 0])
def test_few_images_have_no_marks(count: int) -> None:
    assert marks_before_learning(classifiers("slda")[0], labelled_images(["dog"], count)) == []


def test_without_a_model() -> None:
    """By the weights with which a new model starts: a banana among apples is seen."""
    names = ("apple", "banana", "orange")
    waiting = [
        (image(f"{name}/{number}", drawn_fruit.jpeg(name, number)), name) for name in names for number in range(6)
    ]
    wrong = image("wrong", drawn_fruit.jpeg("banana", 300))
    pixels = BytesIO()
    ImageEnhance.Brightness(drawn_fruit.drawing("orange", 50)).enhance(0.1).save(pixels, "PNG")
    dark = image("dark", pixels.getvalue())
    found = kinds(marks_before_learning(None, [*waiting, (wrong, "apple"), (dark, "orange")]))
    assert found == {wrong.digest: ("wrong class", "apple", "banana"), dark.digest: ("dark", "orange", "")}
