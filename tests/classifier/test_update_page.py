"""The page of an update: what the last update did, class by class, in plain words, with names as text."""

import re
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image

from browser import Browser
from ssil.classifier.accuracy import ClassResult
from ssil.classifier.advice.advise import AlikePair, NeededImages, advise
from ssil.classifier.advice.confusions import ConfusedPair
from ssil.classifier.advice.earlier_suspects import EarlierSuspect
from ssil.classifier.advice.thumbnails import Thumbnails
from ssil.classifier.cross_validation import ValidatedImages
from ssil.classifier.holdout import HoldoutResult
from ssil.classifier.image_file import ImageFile
from ssil.classifier.lost_classes import about_lost
from ssil.classifier.update import update
from ssil.classifier.update_page import breakable, cut, notebook_frame, update_page
from ssil.classifier.update_report import UpdateReport
from ssil.classifier.update_steps import update_steps
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
    alone = replace(begun, history=({**first, "images": "a"},))
    assert alone.again() == ("mv 'my birds' 'my birds-old'", "ssil learn 'my birds' a")
    assert "keeps what was learnt so far under another name" in update_page(alone)
    assert "under another name" not in update_page(begun)
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
    assert f"<pre>mv {tmp_path / 'Leek'} {tmp_path / 'leek'}</pre>" in page


def test_pairs_of_names_stand_together(report: UpdateReport) -> None:
    assert report.advice
    pairs = (AlikePair("leek", "Leek", 0, 9, spelling=True), AlikePair("pear", "poire", 9, 18))
    first, *others = update_steps(replace(report, advice=replace(report.advice, alike=pairs)))
    assert [item.text.partition(" ")[0] for item in first.items] == ["leek", "pear"]
    assert not [step for step in others if "names" in step.text]


def test_photos_of_earlier_updates_are_shown_and_one_way_to_learn_again_is_said(
    report: UpdateReport, tmp_path: Path
) -> None:
    first, last = report.history
    week = tmp_path / "week-1"
    week.mkdir()
    (week / "3.png").write_bytes(png("ant", 5))
    history = ({**first, "images": str(week), "parent": None}, {**last, "images": "week-2", "parent": 1})
    image = ImageFile.from_bytes(str(week / "3.png"), png("ant", 5))
    earlier = (EarlierSuspect(0, image.name, "It is blurred: take it again, or delete it.", image.digest),)
    begun = replace(report, history=history, folder="m", earlier=earlier)
    assert begun.again() == ("mv m m-old", f"ssil learn m {week}", "ssil learn m week-2")
    page = update_page(begun)
    assert "1 photo of earlier updates still looks wrong: it is shown below, with what to do." in page
    assert "<h3>1 photo of earlier updates that still looks wrong</h3>" in page
    assert f'title="{image.name}"' in page
    assert page.count("ssil learn m week-2") == 1
    assert "ssil rollback" not in page
    week.rename(tmp_path / "elsewhere")
    assert begun.again() == ("ssil rollback m 1", "ssil learn m week-2")


def test_files_that_were_left_out_are_among_what_would_help(report: UpdateReport) -> None:
    remarks = (Remark("week-2/ant/broken.jpg", "not an image"), Remark("week-2/x", "odd", left_out=False))
    page = update_page(replace(report, remarks=remarks, folder="m"))
    steps = page.partition('id="help"')[2].partition("</section>")[0]
    assert "1 file or folder was not learnt. Mend or delete them:" in steps
    assert "week-2/<wbr>ant/<wbr>broken.<wbr>jpg: not an image" in steps
    assert "week-2/<wbr>x: odd" in page.replace(steps, "")


def test_what_to_add_says_where_and_why(report: UpdateReport) -> None:
    assert report.advice
    needed = (NeededImages("garlic", 8, 0, 0), NeededImages("kiwi", 40, 3, 8))
    page = update_page(replace(report, advice=replace(report.advice, needed=needed)))
    assert "Add photos of 2 classes of which fewer than 60 of 100 are recognised, or of which there are fewer" in page
    assert "inside the next folder that you give to ssil learn" in page
    assert "kiwi (3 of 8 right)" in page


def test_a_number_that_differs_from_what_was_told_is_explained(report: UpdateReport) -> None:
    first, last = report.history  # before: 3 of 6
    assert "told of the version before" not in update_page(report)
    same = replace(report, history=({**first, "accuracy": 50.2, "tried": 60}, last))
    assert same.retold() == ""
    other = replace(report, history=({**first, "accuracy": 61.0, "tried": 60}, last))
    assert other.retold() == "the 61 told of the version before was on 60 photos, this is on 6"
    assert other.retold() in update_page(other)
    assert replace(other, before=None).retold() == ""


def test_single_mistakes_are_not_listed_as_pairs(report: UpdateReport) -> None:
    assert report.advice
    pairs = (
        ConfusedPair("ant", "bee", (), 2, 30),
        ConfusedPair("bee", "ant", (), 1, 30),
        ConfusedPair("cat", "ant", (), 1, 5),
    )
    page = update_page(replace(report, advice=replace(report.advice, confused=pairs)))
    section = page.partition('id="taken"')[2].partition("</section>")[0]
    assert section.count("<figcaption>") == 2
    assert "<b>bee</b> taken for" not in section


def test_what_is_kept_is_told_apart_from_what_was_tried(report: UpdateReport) -> None:
    kept, none = sum(map(len, report.classifier.holdout)), torch.zeros(7, dtype=torch.long)
    assert f"small copies of {kept} photos, with which later updates are tried" in update_page(report)
    tried = replace(report.classifier, validated=ValidatedImages.of(torch.zeros(7, 3), none, none))
    text = "of the 7 photos that were tried a list of numbers each, with which later updates are tried; "
    assert text + f"and small copies of {kept} photos" in update_page(replace(report, classifier=tried))


def test_many_classes_are_folded(report: UpdateReport) -> None:
    assert '<details class="more" open><summary>4 classes</summary>' in update_page(report)
    with patch("ssil.classifier.update_page.UNFOLDED", 3):
        assert '<details class="more"><summary>4 classes</summary>' in update_page(report)


def test_every_link_leads_to_a_part_of_the_page(report: UpdateReport) -> None:
    page = update_page(report)
    links = re.findall(r'<a href="#(\w+)"', page)
    assert len(links) >= 4
    assert all(f'id="{link}"' in page for link in links)


def test_a_thumbnail_shows_the_whole_photo() -> None:
    file = BytesIO()
    Image.new("RGB", (400, 100)).save(file, "PNG")
    thumbnails = Thumbnails()
    assert thumbnails.add(ImageFile.from_bytes("wide.png", file.getvalue())) == "t0"
    ((_, source),) = thumbnails.rules()
    assert Image.open(BytesIO(b64decode(source))).size == (200, 50)


def test_classes_that_lost_photos_are_listed(report: UpdateReport) -> None:
    assert report.before
    assert "Recognised less than before" not in update_page(report)
    before = replace(report.before, classes={**report.before.classes, "ant": ClassResult(5, 5)})
    assert "Recognised less than before" in update_page(replace(report, before=before))
    assert report.advice
    pairs = (
        ConfusedPair("ant", "bee", (), 3, 5),
        ConfusedPair("ant", LONG, (), 2, 5),
        ConfusedPair("ant", "ant", (), 1, 5),
    )
    advice = replace(report.advice, confused=pairs, alike=())
    (row,) = replace(report, before=before, advice=advice).lost()
    assert about_lost(row) == f"Now 2 taken for {LONG}, 3 for bee. Add photos of all that show how they differ."
    twice = replace(advice, confused=(), taken=pairs[:1], alike=(AlikePair("ant", "bee", 9, 9),))
    changed = replace(report, before=before, advice=twice)
    assert "Now 3 taken for bee: one class under two names? Then put both under one name." in update_page(changed)
    assert "Add photos of ant." in update_page(replace(report, before=before, advice=replace(advice, confused=())))


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
    assert "And 793 more of the kind." in page


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
        for part, text in (("::before", "close"), ("::after", "png")):
            shown = f"getComputedStyle(document.querySelector('.image'), '{part}').content"
            assert text in browser.ask(shown)
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
