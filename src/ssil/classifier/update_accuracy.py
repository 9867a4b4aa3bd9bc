"""How accurate a classifier is after an update, and was before: by its hold-out set, or by cross-validation."""

from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from ssil.classifier.cross_validation import ValidatedImages, validate_update
from ssil.classifier.holdout import HoldoutResult, evaluate, evaluate_scores, image_scores, validated_result
from ssil.classifier.prediction import Classifier
from ssil.classifier.temperature_scaling import fit_temperature
from ssil.classifier.unknown import Threshold, fit_threshold
from ssil.learning.feature_statistics import ClosedForm
from ssil.learning.snapshot import MAIN


class MeasuredUpdate(NamedTuple):
    """A classifier after an update, with its temperature and threshold, and results of before and after."""

    classifier: Classifier
    before: HoldoutResult | None
    """On the classes that were known before."""
    after: HoldoutResult | None
    after_unscaled: HoldoutResult | None
    """At a temperature of 1."""


class LearntFeatures(NamedTuple):
    """The features of the images that an update has brought, and their classes."""

    features: Tensor
    labels: Tensor


def measure_update(
    previous: Classifier | None, unscaled: Classifier, learnt: LearntFeatures | None, most: int
) -> MeasuredUpdate:
    """Fit the temperature and the threshold of unknown images to the hold-out set, and measure the accuracy.

    A closed form on frozen features is cross-validated, unless it was made before that was done, and its threshold is
    fitted to the scores of cross-validation, which are of more images; other methods are evaluated on the hold-out set.

    Args:
        previous: The classifier before the update.
        unscaled: The one after it.
        learnt: Features of the images that a closed form has learnt; None for other methods.
        most: How many images are validated at most.
    """
    validated = learnt is not None and not (previous and previous.validated is None)
    before = evaluate(previous, unscaled.holdout) if previous and not validated else None
    scored = image_scores(unscaled, unscaled.holdout) if any(unscaled.holdout) else None
    scaled = _scaled(unscaled, scored)
    if learnt and validated:
        return _cross_validated(previous, scaled, learnt, most)
    after, plain = (evaluate_scores(one, scored) if scored else None for one in (scaled, unscaled))
    return MeasuredUpdate(scaled, before, after, plain)


def _scaled(unscaled: Classifier, scored: tuple[Tensor, Tensor] | None) -> Classifier:
    """Return the classifier with a temperature and a threshold that are fitted to its scores of the hold-out set.

    The threshold of unknown images is fitted to all of them, whatever they are taken for.
    """
    if scored is None:
        return unscaled
    threshold = fit_threshold(scored[0].numpy(), unscaled.settings.unknown_loss)
    return replace(unscaled, temperature=fit_temperature(unscaled.snapshot.scorers[MAIN], *scored), threshold=threshold)


def _cross_validated(
    previous: Classifier | None, scaled: Classifier, learnt: LearntFeatures, most: int
) -> MeasuredUpdate:
    scorer, classes = _closed_form(scaled), scaled.classes
    earlier = None
    if previous and previous.validated is not None:
        earlier = _closed_form(previous), previous.classes, previous.validated
    found = validate_update(scorer, classes, *learnt, earlier, most)
    images = [_at_temperature(found.images, found.scores, at) for at in (scaled.temperature, 1.0)]
    gap = evaluate_scores(scaled, (found.scores, found.images.labels)).score_gap if len(found.images) else None
    before = validated_result(found.before, previous.classes.names) if previous else None
    after, plain = (validated_result(one, classes.names, gap) for one in images)
    final = replace(scaled, validated=images[0], threshold=_validated_threshold(scaled, found.scores))
    return MeasuredUpdate(final, before, after, plain)


def _validated_threshold(scaled: Classifier, scores: Tensor) -> Threshold | None:
    """Return the threshold of unknown images for scores by cross-validation, if they are more than the hold-out set.

    Scores of a model that had no image left of some class (minus infinity) don't count.
    """
    complete = scores[scores.isfinite().all(1)]
    if len(complete) <= sum(map(len, scaled.holdout)):
        return scaled.threshold
    return fit_threshold(complete.numpy(), scaled.settings.unknown_loss)


def _closed_form(classifier: Classifier) -> ClosedForm:
    scorer = classifier.snapshot.scorers[MAIN]
    assert isinstance(scorer, ClosedForm)
    return scorer


def _at_temperature(images: ValidatedImages, scores: Tensor, temperature: float) -> ValidatedImages:
    return replace(images, confidence=(scores / temperature).softmax(1).amax(1).float()) if len(images) else images
