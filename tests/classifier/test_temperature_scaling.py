"""Temperature scaling: fitted to the hold-out set, kept with the model, and without effect on rankings."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession
from PIL import Image

from ssil.classifier import temperature_scaling
from ssil.classifier.holdout import evaluate
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.update import update
from ssil.cli import main
from ssil.learning.snapshot import Scorer
from ssil.methods.il2m import Rectified
from tiny_classifiers import labelled_images, settings


def drawn(truth: float, count: int = 3000) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, and labels as likely as these at that temperature."""
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(count, 5, generator=generator)
    return scores, torch.multinomial((scores / truth).softmax(1), 1, generator=generator).squeeze(1)


@pytest.mark.parametrize("truth", [0.5, 1.0, 3.0])
def test_the_temperature_is_found(truth: float) -> None:
    assert temperature_scaling.fit_temperature(Scorer(), *drawn(truth)) == pytest.approx(truth, rel=0.1)


def test_the_temperature_stays_1_for_few_images() -> None:
    assert temperature_scaling.fit_temperature(Scorer(), *drawn(3.0, temperature_scaling.MIN_IMAGES - 1)) == 1.0


def test_a_faultless_hold_out_set_is_no_proof() -> None:
    scores = torch.eye(2).repeat(50, 1)
    found = temperature_scaling.fit_temperature(Scorer(), scores, torch.tensor([0, 1] * 50))
    assert (scores[0] / found).softmax(0)[0] == pytest.approx(1 - 1 / 102, abs=0.002)


def test_the_temperature_stays_1_if_probabilities_do_not_depend_on_it() -> None:
    scores, labels = drawn(3.0)
    assert temperature_scaling.fit_temperature(Rectified(), scores.softmax(1), labels) == 1.0


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    names = [f"{letter}{letter}" for letter in "abcdefgh"]
    made = update(None, settings(epochs=3, memory=400), labelled_images(names, 40))
    assert made.classifier.temperature != 1.0
    assert made.after is not None
    assert made.after_unscaled is not None
    assert made.after.classes == made.after_unscaled.classes
    assert made.after.calibration_error < made.after_unscaled.calibration_error
    assert evaluate(made.classifier) == made.after
    return made.classifier


def test_the_temperature_is_kept_and_no_ranking_changes(classifier: Classifier, tmp_path: Path) -> None:
    directory = ModelDirectory(tmp_path / "model", (classifier.settings.backbone,))
    with directory.locked():
        directory.publish(classifier, [{}])
    kept = directory.load().classifier
    assert kept.temperature == classifier.temperature
    shown = [image for image, _ in labelled_images(["aa", "bb"], 5, first=50)]
    plain = Classifier(kept.settings, kept.snapshot, kept.exemplars, kept.holdout)
    for one, other in zip(predict(kept, shown, top=8), predict(plain, shown, top=8), strict=True):
        assert [name for name, _ in one.ranking] == [name for name, _ in other.ranking]
        assert [chance for _, chance in one.ranking] != [chance for _, chance in other.ranking]
        assert sum(chance for _, chance in one.ranking) == pytest.approx(1)


@pytest.mark.slow
def test_other_programs_get_the_same_probabilities(classifier: Classifier, tmp_path: Path) -> None:
    own = classifier.settings.model_copy(update={"backbone": "resnet14", "epochs": 1})
    names = [f"{letter}{letter}" for letter in "abcdefgh"]
    made = update(None, own, labelled_images(names, 40)).classifier
    assert made.temperature != 1.0
    directory = ModelDirectory(tmp_path / "model")
    with directory.locked():
        directory.publish(made, [{}])
    assert main(["export", str(directory.folder), str(tmp_path / "model.onnx")]) == 0
    shown = [image for image, _ in labelled_images(["aa", "bb"], 3, first=50)]
    images = np.stack([np.asarray(Image.open(BytesIO(one.read()))) for one in shown])[..., None]
    (found,) = InferenceSession(tmp_path / "model.onnx").run(["probabilities"], {"images": images})
    for row, prediction in zip(found, predict(made, shown, top=8), strict=True):
        assert dict(prediction.ranking) == pytest.approx(dict(zip(made.classes.names, row, strict=True)), abs=1e-4)
