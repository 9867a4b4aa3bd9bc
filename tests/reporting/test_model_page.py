"""The page of a model: what the last update did, class by class, with names as text."""

from pathlib import Path

import pytest

from browser import Browser
from ssil.classifier.holdout import ClassResult, HoldoutResult
from ssil.classifier.model_directory import ModelVersion
from ssil.classifier.update import update
from ssil.cli import main
from ssil.reporting.model_page import EvaluatedVersion, findings, model_page
from tiny_classifiers import folder, labelled_images, settings

LONG = "a class with a name that is longer than a telephone is wide, or so one should hope"


@pytest.fixture(scope="module")
def model() -> EvaluatedVersion:
    one = update(None, settings(epochs=1), labelled_images(["ant", "bee", "<b>"])).classifier
    two = update(one, settings(later_epochs=1), labelled_images([LONG])).classifier
    first = {"new": ["ant", "bee", "<b>"], "more": [], "pictures": 24, "new_after": 90.0}
    last = {"new": [LONG], "more": [], "pictures": 8, "old_before": 80.0, "old_after": 60.0, "new_after": 50.0}
    after = HoldoutResult(
        {"ant": ClassResult(1, 2), "bee": ClassResult(2, 2), "<b>": ClassResult(0, 2), LONG: ClassResult(1, 2)},
        12.3,
        0.4,
    )
    before = HoldoutResult({"ant": ClassResult(2, 2), "bee": ClassResult(1, 2), "<b>": ClassResult(0, 2)}, 10.0, None)
    return EvaluatedVersion(ModelVersion(2, two, (first, last)), after, before)


def test_findings_of_an_update(model: EvaluatedVersion) -> None:
    assert findings(model) == [
        "The last update learnt 8 images; classes: 1 new.",
        "Hold-out accuracy, old classes: 50.0 % before the update, 50.0 % after it.",
        "Hold-out accuracy, new classes: 50.0 %.",
        "1 of 3 old classes got worse: ant (−50 points).",
        "Scores lean to the new classes by 0.40 standard deviations.",
        "Confidence is off by 12 points on average (calibration error).",
    ]
    assert "There is no hold-out set" in findings(model._replace(after=None))[-1]


def test_names_are_text(model: EvaluatedVersion) -> None:
    page = model_page("<i>birds</i>", model)
    assert "<i>" not in page
    assert "<td" in page
    assert "&lt;b&gt;</td>" in page


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_all_is_drawn(model: EvaluatedVersion, width: int, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(model_page("birds", model))
    with Browser(tmp_path / "profile") as browser:
        browser.open(file, width)
        browser.wait("document.documentElement.dataset.drawn === 'all'")
        assert browser.ask("document.querySelectorAll('.plot svg.main-svg').length") >= 2
        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.trouble == []


@pytest.mark.slow
def test_learn_and_inspect_write_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, photos = str(tmp_path / "birds"), str(folder(tmp_path / "photos", ["ant", "bee"]))
    small = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--epochs", "1"]
    assert main(["learn", directory, photos, *small, "--html", str(tmp_path / "one.html")]) == 0
    assert main(["inspect", directory, "--html", str(tmp_path / "two.html")]) == 0
    for name in ("one.html", "two.html"):
        assert "<h1>birds, version 1</h1>" in (tmp_path / name).read_text()
    assert main(["inspect", directory, "--html", str(tmp_path / "one.html" / "below")]) == 2
    assert "html: " in capsys.readouterr().err
