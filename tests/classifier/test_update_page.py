"""The page of an update: what the last update did, class by class, in plain words, with names as text."""

import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from browser import Browser
from ssil.classifier.accuracy import ClassResult
from ssil.classifier.advice.advise import AlikePair, advise
from ssil.classifier.advice.earlier_suspects import EarlierSuspect
from ssil.classifier.holdout import HoldoutResult
from ssil.classifier.image_file import ImageFile
from ssil.classifier.update import update
from ssil.classifier.update_page import breakable, cut, notebook_frame, update_page
from ssil.classifier.update_report import UpdateReport
from ssil.cli import main
from ssil.data.image_index import Remark
from tiny_classifiers import folder, labelled_images, png, settings

LONG = (
    "a class with a name that is longer than a telephone is wide, or so one should hope, if it is to be cut somewhere"
)
JARGON = ("deviation", "calibration", "temperature", "exemplar", "distill", "logit", "scores lean", "hold-out", "%")


def noise(*seed: int) -> bytes:
    """Return an image that no JPEG makes small."""
    file, pixels = BytesIO(), np.random.default_rng(seed).integers(0, 256, (112, 112, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


@pytest.fixture(scope="module")
def report() -> UpdateReport:
    closed = settings(method="slda", unknown_loss=0, memory=200)
    one = update(None, closed, labelled_images(["ant", "bee", "<b>"], 20)).classifier
    wrong = [
        (ImageFile.from_bytes("<i>.png", png("ant", 91)), LONG),
        (ImageFile.from_bytes("x.png", png("ant", 3)), LONG),
    ]
    result = update(one, closed, [*labelled_images([LONG], 20), *wrong])
    first = {"new": ["ant", "bee", "<b>"], "more": [], "pictures": 60, "new_after": 90.0, "seconds": 1.0}
    last = {"new": [LONG], "more": [], "pictures": 22, "old_after": 60.0, "new_after": 50.0, "seconds": 75.2}
    after = HoldoutResult(
        {"ant": ClassResult(1, 2), "bee": ClassResult(2, 2), "<b>": ClassResult(0, 2), LONG: ClassResult(1, 2)},
        12.3,
        0.4,
    )
    before = HoldoutResult({"ant": ClassResult(2, 2), "bee": ClassResult(1, 2), "<b>": ClassResult(0, 2)}, 10.0, None)
    remarks = (Remark("<u>.png", "not an image"),)
    return UpdateReport(
        "<s>birds", result.classifier, (first, last), after, before, 2, "", advise(one, result), remarks
    )


def test_the_page_says_what_the_update_did(report: UpdateReport) -> None:
    page = update_page(report)
    assert '<p class="big">50<small> of 100</small></p>' in page
    assert "Probably between 22 and 78" in page
    assert "1 minute 15 seconds" in page
    assert "update 1: 90 of 100" in page
    assert "1 photo in two classes" in page
    assert "looks like ant" in page
    assert len(page.encode()) < 1_000_000
    text = page[page.index("<body") :].lower()
    assert [
        word
        for word in JARGON
        if word in text.replace("width:50%", "").replace("width:100%", "").replace("width:0%", "")
    ] == []
    shown = re.sub(r"<[^>]*>", "", page[page.index("<body") :].replace("not an image", ""))
    assert "image" not in shown


def test_names_are_text(report: UpdateReport) -> None:
    page = update_page(report)
    for tag in ("<s>", "<b>.", "<i>.", "<u>"):
        assert tag not in page
    assert "&lt;b&gt;" in page
    assert breakable(cut(LONG)) in page
    assert LONG not in page.partition("<body>")[2].replace(LONG + ":", "").partition("What would help")[0]


def test_a_refused_update_says_so(report: UpdateReport) -> None:
    page = update_page(replace(report, number=None, refused="Accuracy falls; the model is as it was."))
    assert "This update was not published." in page
    assert "Accuracy falls" in page
    assert "version 2" not in page
    assert "ssil accept" not in page
    kept = update_page(replace(report, refused="Too much.", folder="birds"))
    assert "To publish it all the same: <code>ssil accept birds</code>" in kept


def test_the_users_own_test_folder_is_shown(report: UpdateReport) -> None:
    first, last = report.history
    test = {"accuracy": 71.0, "interval": [60.2, 80.4], "tried": 90, "old_before": 75.0, "old_after": 70.0}
    page = update_page(replace(report, history=({**first, "test": {**test, "accuracy": 80.0}}, {**last, "test": test})))
    assert "photos in your test folder are recognised" in page
    assert "between 60 and 80; 90 photos were tried. Of classes it knew: 75 before the update, 70 after it." in page
    assert 'class="dashed" points="0.0,20.0 100.0,29.0 "' in page
    assert "test folder" not in update_page(replace(report, history=(first, {**last, "test": {"accuracy": None}})))


def test_how_to_learn_again_is_said(report: UpdateReport) -> None:
    first, last = report.history
    begun = replace(report, history=(first, {**last, "images": "week 2", "parent": 1}), folder="my birds")
    assert begun.again() == ("ssil rollback 'my birds' 1", "ssil learn 'my birds' 'week 2'")
    assert replace(begun, refused="Too much.").again() == ("ssil learn 'my birds' 'week 2'",)
    assert replace(begun, history=({**first, "images": "a"},)).again() == (
        "rm -r 'my birds'",
        "ssil learn 'my birds' a",
    )
    assert "deletes what was learnt, not your photos" in update_page(
        replace(begun, history=({**first, "images": "a"},))
    )
    assert "deletes what" not in update_page(begun)
    assert report.again() == ()
    assert "ssil learn &#39;my birds&#39; &#39;week 2&#39;" in update_page(begun)


def test_classes_under_two_names_get_a_command(report: UpdateReport, tmp_path: Path) -> None:
    assert report.advice
    (tmp_path / "Leek").mkdir()
    advice = replace(report.advice, alike=(AlikePair("leek", "Leek", 0, 9, spelling=True),))
    *past, last = report.history
    begun = replace(report, advice=advice, history=(*past, {**last, "images": str(tmp_path), "parent": 1}), folder="m")
    assert begun.merging() == [f"mv {tmp_path / 'Leek'} {tmp_path / 'leek'}"]
    page = update_page(begun)
    assert "leek and Leek are one class under two names, it seems." in page
    assert f"mv {tmp_path / 'Leek'} {tmp_path / 'leek'}\nssil rollback m 1" in page


def test_what_looked_wrong_before_is_told_with_the_commands(report: UpdateReport) -> None:
    first, last = report.history
    history = ({**first, "images": "week-1", "parent": None}, {**last, "images": "week-2", "parent": 1})
    earlier = (EarlierSuspect(0, "ant/3.jpg", "ant/3.jpg is blurred: take it again, or delete it."),)
    begun = replace(report, history=history, folder="m", earlier=earlier)
    assert begun.earlier_again() == ("rm -r m", "ssil learn m week-1", "ssil learn m week-2")
    page = update_page(begun)
    assert "1 photo that looked wrong in earlier updates is still learnt as before." in page
    assert "<li>ant/<wbr>3.<wbr>jpg is blurred" in page


def test_classes_that_lost_photos_are_listed(report: UpdateReport) -> None:
    assert report.before
    assert "Recognised less than before" not in update_page(report)
    before = replace(report.before, classes={**report.before.classes, "ant": ClassResult(5, 5)})
    assert "Recognised less than before" in update_page(replace(report, before=before))


def test_what_is_not_known_is_not_invented(report: UpdateReport) -> None:
    page = update_page(replace(report, after=None, before=None, advice=None, history=(), remarks=()))
    assert "How much it recognises is not known." in page
    assert "not tried: too few photos" in page


def test_many_images_and_classes_stay_below_a_megabyte(report: UpdateReport) -> None:
    assert report.advice
    many = [
        one._replace(image=ImageFile.from_bytes(f"{LONG}/{kind}-{at}.png", noise(at, len(kind))), kind=kind)
        for one in report.advice.suspects[:1]
        for kind in ("wrong class", "blurred", "dark", "far", "same")
        for at in range(90)
    ]
    advice = replace(report.advice, suspects=tuple(many))
    page = update_page(replace(report, advice=advice, remarks=report.remarks * 999))
    assert 500_000 < len(page.encode()) < 1_000_000
    assert "<summary>78 more</summary>" in page
    assert "And 979 more of the kind." in page


def test_a_notebook_shows_the_page_in_a_frame(report: UpdateReport) -> None:
    frame = notebook_frame(report)
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert frame.count("<") == 2


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(report: UpdateReport, width: int, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(update_page(report))
    with Browser(tmp_path / "profile") as browser:
        browser.open(file, width)
        browser.wait("document.querySelectorAll('dl').length === 1")
        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.ask("document.querySelectorAll('.image').length") >= 2
        browser.ask("document.querySelector('.shot').open = true")
        assert browser.ask("document.querySelector('.image').getBoundingClientRect().width") >= width - 20
        assert browser.trouble == []


@pytest.mark.slow
def test_learn_and_inspect_write_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, photos = str(tmp_path / "birds"), str(folder(tmp_path / "photos", ["ant", "bee"]))
    small = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--epochs", "1"]
    assert main(["learn", directory, photos, *small, "--html", str(tmp_path / "one.html")]) == 0
    assert main(["inspect", directory, "--html", str(tmp_path / "two.html")]) == 0
    for name in ("one.html", "two.html"):
        assert "<h1>birds <small>version 1</small></h1>" in (tmp_path / name).read_text()
    assert main(["inspect", directory, "--html", str(tmp_path / "one.html" / "below")]) == 2
    assert "html: " in capsys.readouterr().err
