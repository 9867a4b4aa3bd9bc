"""What is printed of an update: few lines, narrow ones, in plain words."""

from dataclasses import replace
from pathlib import Path

import pytest

from ssil.classifier.accuracy import ClassResult
from ssil.classifier.advice.advise import Advice, AlikePair, NeededImages, Suspect
from ssil.classifier.advice.confusions import ConfusedPair
from ssil.classifier.advice.earlier_suspects import EarlierSuspect
from ssil.classifier.holdout import HoldoutResult
from ssil.classifier.image_file import ImageFile
from ssil.classifier.update import update
from ssil.classifier.update_report import UpdateReport
from ssil.cli.update_lines import LINES, help_lines, listed, update_lines
from ssil.data.image_index import Remark
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
        "version 2: 1 new class, more of 1, 12 photos, 8.0 s",
        "recognises 67 of 100 photos like these (probably 39 to 86)",
        "  tried on 12 photos that were kept back, not learnt",
        "  photos from another place or another day may do worse; to find out, keep some",
        "  that are never learnt, in a folder: ssil test MODEL FOLDER",
        "  classes it knew: 100 before the update, 88 after it; new classes: 25",
        "  (before and after were tried now, on the same photos)",
    ]


def test_classes_that_lost_more_than_one_photo_are_named(report: UpdateReport) -> None:
    assert report.before
    before = replace(report.before, classes={"ant": ClassResult(4, 4), "bee": ClassResult(4, 4)})
    after = HoldoutResult({"ant": ClassResult(3, 4), "bee": ClassResult(1, 4)}, 9.0, None)
    lines = [*update_lines(replace(report, before=before, after=after))]
    assert lines[-2:] == ["recognised less than before:", "  bee (4 of 4, now 1); add photos of bee"]
    pairs = (ConfusedPair("bee", "cat", (), 3, 4),)
    advice = Advice(9, (), pairs, (), (), {})
    (line,) = [
        one for one in update_lines(replace(report, before=before, after=after, advice=advice)) if "now 1" in one
    ]
    assert line == "  bee (4 of 4, now 1): 3 taken for cat; add photos of both"
    alike = Advice(9, (), (), (AlikePair("bee", "cat", 3, 8),), (), {}, taken=pairs)
    (line,) = [one for one in update_lines(replace(report, before=before, after=after, advice=alike)) if "now 1" in one]
    assert line == "  bee (4 of 4, now 1): 3 taken for cat; see two names below"


def test_photos_that_looked_wrong_before_are_told_again_with_the_command(report: UpdateReport, tmp_path: Path) -> None:
    earlier = tuple(EarlierSuspect(0, f"w/ant/{at}.jpg", "Look at it.") for at in range(9))
    history = ({**report.entry, "images": str(tmp_path), "parent": None}, {**report.entry, "images": "w2", "parent": 1})
    *_, line, cure, when, command = update_lines(replace(report, earlier=earlier, history=history, folder="m"))
    assert line.startswith("  9 photos of earlier updates still look wrong: w/ant/0.jpg")
    assert len(line) <= 80
    assert cure == "    mend them too, or leave them if they are right"
    assert when == "when you have mended the folders, learn them again:"
    assert command == f"  mv m m-old && ssil learn m {tmp_path} && ssil learn m w2"


def test_what_was_told_of_the_version_before_is_explained(report: UpdateReport) -> None:
    history = ({"new": ["ant", "bee"], "accuracy": 90.0, "tried": 40}, report.entry)
    lines = " ".join(update_lines(replace(report, history=history)))
    assert "on the same photos; the 90 told of the     version before was on 40 photos, this is on 8)" in lines


def test_what_was_left_out_is_among_what_would_help(report: UpdateReport) -> None:
    lines = [
        *update_lines(replace(report, remarks=(Remark("w/ant/x.jpg", "not an image"), Remark("ant", "odd", False))))
    ]
    assert lines[-2:] == ["what would help:", "  1 not learnt, to mend or delete (why: see above): w/ant/x.jpg"]


def test_what_is_not_known_is_said(report: UpdateReport) -> None:
    lines = [*update_lines(replace(report, after=None, before=None, number=None))]
    assert lines[0].startswith("not published: 1 new class")
    assert lines[1:] == ["how much it recognises is not known: no photo was kept back to try it"]


def test_advice_takes_few_narrow_lines(report: UpdateReport, tmp_path: Path) -> None:
    long = "a_product_with_a_name_that_fills_half_of_a_terminal"
    suspects = (
        *(Suspect("same", image(f"leek/{at}.jpg"), "leek", long, image(f"{long}/{at}.jpg")) for at in range(20)),
        *(Suspect("wrong class", image(f"{long}/x{at}.jpg"), long, "leek") for at in range(30)),
        Suspect("blurred", SOON, "leek"),
        Suspect("dark", image("leek/9.jpg"), "leek"),
    )
    confused = tuple(ConfusedPair(long, f"{long}_{at}", (SOON,), 1, 6) for at in range(9))
    needed = (NeededImages("garlic", 8, 0, 0), NeededImages("kiwi", 40, 3, 8))
    advice = Advice(99, suspects, confused, (AlikePair("leek", "porre", 20, 40),), needed, {})
    (tmp_path / "porre").mkdir()
    entry = {**report.entry, "images": str(tmp_path), "parent": 1}
    full = replace(report, advice=advice, history=(entry,), folder="m")
    *lines, when, command = help_lines(full)
    assert (when, command) == (
        "when you have mended the folders, learn them again:",
        f"  ssil rollback m 1 && ssil learn m {tmp_path}",
    )
    assert len(lines) <= LINES + 2
    assert lines.pop(2) == f"    if so: mv {tmp_path}/porre {tmp_path}/leek"
    assert max(map(len, lines)) <= 80
    at = lines.index("  1 photo blurred: leek/003.jpg")
    assert lines[at + 1] == "    take it again, or delete it"
    assert lines[1] == "  one class under two names? leek = porre"
    assert lines[2].startswith("  20 photos in two classes: leek/0.jpg =")
    assert "    move it if so, leave it if right, delete it if it shows neither or several" in lines
    quiet = replace(advice, suspects=(), confused=(), alike=())
    assert [*help_lines(replace(full, advice=quiet))][1:] == [
        "  add photos of garlic (has 8), kiwi (3 of 8 right)",
        "    into a folder of that name inside the next folder you learn; these have",
        "    fewer than 10 photos, or fewer than 60 of 100 right",
    ]
    assert [*help_lines(replace(full, advice=replace(quiet, needed=())))] == []


def test_names_can_not_control_the_terminal() -> None:
    assert listed("x: ", ["a\x1b[2J"]) == ["x: a\\x1b[2J"]
