"""Images of no known class are called unknown, at a threshold that loses few images of known ones."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from frozen_classifiers import backbone, frozen
from ssil.classifier.cross_validation import ValidatedUpdate, validate_update
from ssil.classifier.estimator import IncrementalClassifier
from ssil.classifier.exported_model import load_predictor
from ssil.classifier.holdout import holdout_scores
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_files import write_checked_json
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.prediction_inputs import read_inputs
from ssil.classifier.unknown import RIVALS, Threshold, are_unknown, fit_threshold, leads
from ssil.classifier.update import update
from ssil.cli import main
from ssil.core.errors import UserError
from tiny_classifiers import folder, labelled_images, settings

NAMES = ["ant", "bee", "cat", "dog"]
ENOUGH = 30
"""Images of a class, so that 24 are held out in all."""


def literal_leads(scores: list[list[float]], rivals: int) -> list[float]:
    ranked = [sorted(row, reverse=True) for row in scores]
    return [row[0] - sum(row[1 : rivals + 1]) / len(row[1 : rivals + 1]) for row in ranked]


def literal_leads_over_all(scores: list[list[float]]) -> list[float]:
    return [max(row) - sum(row) / len(row) for row in scores]


@given(st.lists(st.lists(st.floats(-50, 50), min_size=8, max_size=8), min_size=1, max_size=80), st.floats(0, 50))
def test_no_more_images_are_lost_than_asked_for(rows: list[list[float]], percent: float) -> None:
    scores = np.array(rows)
    assert leads(scores) == pytest.approx(literal_leads(rows, RIVALS))
    assert leads(scores, None) == pytest.approx(literal_leads_over_all(rows))
    threshold = fit_threshold(scores, percent)
    lost = int(are_unknown(scores, threshold).sum())
    assert lost <= len(rows) * percent / 100
    assert (threshold is None) == (len(rows) * percent < 100)


def test_adding_to_all_scores_changes_nothing() -> None:
    scores = np.random.default_rng(0).normal(size=(40, 5))
    threshold = fit_threshold(scores, 10)
    assert are_unknown(scores, threshold).sum() == 4
    assert (are_unknown(scores + 7, threshold) == are_unknown(scores, threshold)).all()


def learnt(method: str, **given_settings: object) -> Classifier:
    own = frozen(method=method, memory=400, **given_settings)
    return update(None, own, labelled_images(NAMES, ENOUGH), init=backbone()).classifier


@pytest.mark.parametrize("method", ["slda", "ncm", "fecam", "ranpac", "eeil", "bic"])
def test_every_method_has_a_threshold(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed forms by the scores of cross-validation, others by those of the hold-out set."""
    validated: list[torch.Tensor] = []

    def watched(*given: Any) -> ValidatedUpdate:
        found = validate_update(*given)
        validated.append(found.scores)
        return found

    monkeypatch.setattr("ssil.classifier.update_accuracy.validate_update", watched)
    classifier = learnt(method)
    assert classifier.threshold is not None
    scores = validated[0] if validated else holdout_scores(classifier, classifier.holdout)[0]
    assert len(scores) == (24 if method in {"eeil", "bic"} else 120)
    lost = are_unknown(scores.numpy(), classifier.threshold).sum()
    assert lost == len(scores) // 20
    known = [image for image, _ in labelled_images(NAMES, 10, first=100)]
    assert sum(one.unknown for one in predict(classifier, known)) <= 8


def test_another_kind_of_image_is_unknown() -> None:
    classifier = learnt("slda")
    strange = [image for image, _ in labelled_images(["yak", "zebu", "gnu"], 10)]
    known = [image for image, _ in labelled_images(NAMES, 10, first=100)]
    assert sum(one.unknown for one in predict(classifier, strange)) >= 15
    assert sum(one.unknown for one in predict(classifier, known)) <= 8


def test_switched_off_or_too_few_images() -> None:
    assert learnt("slda", unknown_loss=0).threshold is None
    few = update(None, frozen(method="slda"), labelled_images(NAMES, 4), init=backbone()).classifier
    assert few.threshold is None
    assert not any(one.unknown for one in predict(few, [image for image, _ in labelled_images(["gnu"])]))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = ModelDirectory(tmp_path / "model", (frozen().backbone,))
    with directory.locked():
        directory.publish_change(None, learnt("slda"))
    return tmp_path / "model"


def described(model: Path, **changed: object) -> None:
    path = model / "versions/0001/model.json"
    description = json.loads(path.read_text())
    description.pop("checksum")
    kept = {name: value for name, value in (description | changed).items() if value != "absent"}
    write_checked_json(path, kept)


def test_a_version_stores_it(model: Path, tmp_path: Path) -> None:
    """And both ways to predict agree on who is unknown."""
    loaded = ModelDirectory(model, (frozen().backbone,)).load().classifier
    assert loaded.threshold == learnt("slda").threshold
    images = folder(tmp_path / "images", ["ant", "gnu"], 6)
    predictor = load_predictor(model)
    (batch,) = read_inputs([str(images)], None, predictor.preprocessing)  # type: ignore[arg-type]  # no image is on stdin
    by_onnx = [one.unknown for one in predictor.predict(batch.names, batch.views, 1)]
    by_torch = [one.unknown for one in predict(loaded, [image for image, _ in labelled_images(["ant", "gnu"], 6)])]
    assert by_onnx == by_torch
    assert any(by_onnx)


def test_a_version_from_before_calls_no_image_unknown(model: Path, tmp_path: Path) -> None:
    described(model, unknown_below="absent")
    assert ModelDirectory(model, (frozen().backbone,)).load().classifier.threshold is None
    assert main(["predict", str(model), str(folder(tmp_path / "images", ["gnu"]))]) == 0


def test_a_version_with_the_rule_of_before_keeps_it(model: Path, tmp_path: Path) -> None:
    described(model, unknown_below=1.5)
    loaded = ModelDirectory(model, (frozen().backbone,)).load().classifier
    assert loaded.threshold == Threshold(1.5, rivals=None)
    scores = holdout_scores(loaded, loaded.holdout)[0].numpy()
    assert (are_unknown(scores, loaded.threshold) == (np.array(literal_leads_over_all(scores.tolist())) < 1.5)).all()


STRANGE = [{}, {"lead": "1"}, {"lead": 1, "rivals": 0}, {"lead": 1, "rivals": 1.5}, {"lead": 1, "more": 2}]


@pytest.mark.parametrize("value", ["0", "nan", True, [1.0], *STRANGE])
def test_a_strangers_threshold(value: object, model: Path) -> None:
    described(model, unknown_below=value)
    with pytest.raises(UserError, match="is not what it should be"):
        load_predictor(model)
    with pytest.raises(UserError, match="is not what it should be"):
        ModelDirectory(model, (frozen().backbone,)).load()


def test_predictions_say_so(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = str(folder(tmp_path / "images", ["gnu"], 6))
    assert main(["predict", str(model), images, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(one["unknown"] for one in found)
    assert all((one["classes"][0]["class"] == "unknown") == one["unknown"] for one in found)
    assert all(one["classes"][-1]["class"] in NAMES for one in found)
    assert main(["predict", str(model), images, "--csv"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "picture,rank,class,probability,unknown"
    assert sum(row.endswith(",yes") for row in rows) == 2 * sum(one["unknown"] for one in found)
    assert main(["predict", str(model), images, "--unknown", "0"]) == 0
    assert "unknown" not in capsys.readouterr().out


def test_the_estimator() -> None:
    given_settings = {**settings(memory=400, epochs=4).model_dump(), "unknown_loss": 10.0}
    data = labelled_images(NAMES, ENOUGH)
    model = IncrementalClassifier(**{name: value for name, value in given_settings.items() if name != "input"})
    paths = [np.asarray(Image.open(BytesIO(image.read()))) for image, _ in data]
    model.fit(np.stack(paths), [name for _, name in data])
    assert model.classifier_.threshold is not None
    unknown = model.is_unknown(np.stack(paths[:5]))
    assert unknown.dtype == bool
    assert unknown.shape == (5,)
