"""What is printed of an update: few lines, narrow ones, in plain words."""

from dataclasses import replace

import pytest

from ssil.classifier.accuracy import ClassResult
from ssil.classifier.advice.advise import Advice, AlikePair, ConfusedPair, NeededImages, Suspect
from ssil.classifier.holdout import HoldoutResult
from ssil.classifier.image_file import ImageFile
from ssil.classifier.update import update
from ssil.classifier.update_report import UpdateReport
from ssil.cli.update_lines import LINES, advice_lines, listed, update_lines
from tiny_classifiers import labelled_images, settings

SOON = ImageFile.from_bytes("leek/003.jpg", b"a")


def image(name: str) -> ImageFile:
    return ImageFile.from_bytes(name, name.encode())


@pytest.fixture(scope="module")
def report() -> UpdateReport:
    made = update(None, settings(epochs=1), labelled_images(["ant", "bee", "cat"])).classifier
    after = HoldoutResult({"ant": ClassResult(3, 4), "bee": ClassResult(4, 4), "cat": ClassResult(1, 4)}, 9.0, 0.63)
    before = HoldoutResult({"ant": ClassResult(4, 4), "bee": ClassResult(4, 4)}, 9.0, None)
    entry = {"new": ["cat"], "more": ["ant"], "pictures": 12, "seconds": 8.0}
    return UpdateReport("birds", made, (entry,), after, before, 2)


def test_old_and_new_classes_in_plain_words(report: UpdateReport) -> None:
    assert [*update_lines(report)] == [
        "version 2: 1 new class, more of 1, 12 images, 8.0 s",
        "recognises 67 of 100 images like these (probably 39 to 86), tried on 12",
        "  images from another place or another day may do worse: see ssil test",
        "  classes it knew: 100 before the update, 88 after it; new classes: 25",
        "recognised less than before: ant (4 of 4, now 3)",
    ]


def test_what_is_not_known_is_said(report: UpdateReport) -> None:
    lines = [*update_lines(replace(report, after=None, before=None, number=None))]
    assert lines[0].startswith("not published: 1 new class")
    assert lines[1:] == ["how much it recognises is not known: no image was kept back to try it"]


def test_advice_takes_few_narrow_lines() -> None:
    long = "a_product_with_a_name_that_fills_half_of_a_terminal"
    suspects = (
        *(Suspect("same", image(f"leek/{at}.jpg"), "leek", long, image(f"{long}/{at}.jpg")) for at in range(20)),
        *(Suspect("wrong class", image(f"{long}/x{at}.jpg"), long, "leek") for at in range(30)),
        Suspect("blurred", SOON, "leek"),
        Suspect("dark", image("leek/9.jpg"), "leek"),
    )
    confused = tuple(ConfusedPair(long, f"{long}_{at}", (SOON,), 6) for at in range(9))
    needed = (NeededImages("garlic", 8, 0, 0), NeededImages("kiwi", 40, 3, 8))
    advice = Advice(99, suspects, confused, (AlikePair("leek", "porre", 20, 40),), needed, {})
    lines = [*advice_lines(advice)]
    assert len(lines) <= LINES + 2
    assert max(map(len, lines)) <= 80
    assert "  1 image blurred: leek/003.jpg" in lines
    assert "  one class under two names? leek and porre" in lines
    assert lines[1].startswith("  20 images in two classes: leek/0.jpg =")
    assert [*advice_lines(replace(advice, suspects=(), confused=(), alike=()))][1:] == [
        "  add images of garlic (has 8), kiwi (3 of 8 right)"
    ]
    assert [*advice_lines(replace(advice, suspects=(), confused=(), alike=(), needed=()))] == []


def test_names_can_not_control_the_terminal() -> None:
    assert listed("x: ", ["a\x1b[2J"]) == ["x: a\\x1b[2J"]
