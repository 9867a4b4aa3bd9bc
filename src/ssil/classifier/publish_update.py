"""Update a model directory: learn new images, refuse an update that costs too much, publish the new version."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ssil.classifier.advice.advise import Advice, advise
from ssil.classifier.advice.earlier_suspects import earlier_suspects, suspects_to_remember
from ssil.classifier.classifier_settings import (
    ClassifierSettings,
    make_settings,
    with_start_settings,
    with_weights_settings,
)
from ssil.classifier.examination import Examination, TestFolder, examine, folder_to_judge_by
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.holdout import accuracy_drops
from ssil.classifier.image_file import LabelledImages
from ssil.classifier.images import check_classes, load_images
from ssil.classifier.model_directory import ModelDirectory, ModelVersion
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import Update, changed_settings, update
from ssil.classifier.update_report import UpdateReport
from ssil.core.errors import RefusedError, UserError
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Remark, as_utf8
from ssil.learning.task import Observer, ignore_progress
from ssil.nn.backbones import find_backbone
from ssil.nn.first_weights import find_first_weights, read_first_weights
from ssil.nn.pretrained import Pretrained

TRAINING_SETTINGS = ("epochs", "later_epochs", "batch", "lr", "minutes")
"""Of no effect on a method that trains nothing."""


@dataclass(frozen=True)
class Limits:
    """How many points of accuracy an update may cost; None for any number."""

    drop: float | None = None
    """On all old classes together."""
    class_drop: float | None = None
    """On any single old class."""

    def __post_init__(self) -> None:
        for name, points in (("max_drop", self.drop), ("max_class_drop", self.class_drop)):
            if points is not None and not 0 <= points <= 100:
                raise UserError(f"{name}: {points} is no number of points of accuracy; give 0 to 100")


@dataclass(frozen=True)
class PublishedUpdate:
    """A version, the update that made it, remarks on images that were left out, and all of it as a report."""

    version: ModelVersion
    update: Update
    remarks: tuple[Remark, ...]
    report: UpdateReport


class RefusedUpdateError(RefusedError):
    """An update that exceeds a limit, with its report; it is kept as the model's candidate."""

    def __init__(self, reason: str, report: UpdateReport) -> None:
        super().__init__(reason)
        self.report = report

    @classmethod
    def of(cls, reason: str, folder: Path, report: UpdateReport) -> "RefusedUpdateError":
        """Return the error with a message that says what can be done."""
        told = f"{reason}; the model is as it was"
        cure = f"to publish the update all the same: ssil accept {folder}"
        return cls(f"{told}; {cure}", replace(report, refused=f"{told[0].upper()}{told[1:]}."))


def publish_update(
    folder: Path,
    images: str,
    given: Mapping[str, Any],
    limits: Limits | None = None,
    *,
    init: str | None = None,
    scratch: bool = False,
    minutes: float | None = None,
    began: float | None = None,
    test: Path | None = None,
    trusted: Sequence[str] = (),
    on_progress: ProgressCallback | None = None,
    observer: Observer = ignore_progress,
) -> PublishedUpdate:
    """Update a model, or make a first version, and publish it; if anything fails, the directory stays as it was.

    Args:
        folder: The model directory.
        images: A folder with one sub-folder per class, a manifest or a store.
        given: The settings that the user gave.
        limits: The largest drops of accuracy with which the update is published.
        init: First weights of a new model: a name of `ssil weights`, a file, or a name on the hub. By default those
            of `with_start_settings`.
        scratch: Whether a new model starts from random weights.
        minutes: Be done after about this time, from reading the images to the export, instead of training for a
            number of epochs.
        began: When this time began, by `time.monotonic`; by default now.
        test: A test folder by which the update is judged; by default the one that the model remembers, if any.
        trusted: Methods and backbones from files that may be loaded.
        on_progress: Called while the image files are validated.
        observer: Called after every training step.

    Raises:
        UserError: The settings or the images are not valid.
        RefusedUpdateError: A limit is exceeded.
    """
    _refuse_contradictions(given, minutes)
    began = time.monotonic() if began is None else began
    directory = ModelDirectory(folder, [*trusted, *(str(given.get(kind)) for kind in ("method", "backbone"))])
    weights, asked = None, [*given, *(["minutes"] if minutes else [])]
    if not directory.exists:
        given, weights = first_settings(given, init, scratch=scratch)
        _refuse_training_settings(make_settings(given), asked)
        _check_settings(make_settings(given), weights)
    tests = folder_to_judge_by(folder, test)
    arrived, remarks = _arrived_images(images, tests, on_progress)
    with directory.locked():
        before = directory.load() if directory.exists else None
        if before and (init or scratch):
            named = "init" if init else "scratch"
            raise UserError(f"{named}: the model has learnt already; first weights are for a new one")
        known = before.classifier if before else None
        remarks += check_classes(arrived, remarks, known.classes.names if known else ())
        settings = changed_settings(known.settings, given) if known else make_settings(given)
        _refuse_training_settings(settings, asked)
        started = time.monotonic()
        left = None if minutes is None else max(0.0, minutes - (started - began) / 60)
        result = update(known, settings, arrived, observer, weights, left)
        advice = advise(known, result)
        facts = _history_facts(images, arrived, result, time.monotonic() - started)
        judged, tested = _judged(known, result, tests)
        facts |= tested | {"suspects": suspects_to_remember(advice)}
        report = _report(folder, before, arrived, result, facts, advice, remarks)
        if before and (reason := _excess(judged, limits or Limits())):
            directory.keep_candidate(before, result.classifier, **facts, refused=reason)
            raise RefusedUpdateError.of(reason, folder, report)
        version = directory.publish_change(before, result.classifier, **facts)
    return PublishedUpdate(version, result, remarks, report.published(version))


def _refuse_contradictions(given: Mapping[str, Any], minutes: float | None) -> None:
    """Raise UserError if the time is no time, or the memory is given in two units."""
    if minutes is not None and not 0 < minutes < math.inf:
        raise UserError(f"minutes: {minutes} is no time to train; give a number above 0")
    if "memory" in given and given.get("memory_mb") is not None:
        raise UserError("memory: give a number of images or of megabytes, not both")


def _arrived_images(
    images: str, tests: TestFolder | None, on_progress: ProgressCallback | None
) -> tuple[LabelledImages, tuple[Remark, ...]]:
    """Return the images to learn, without those of the test folder, and remarks on those left out."""
    arrived, remarks = load_images(images, on_progress)
    if not tests:
        return arrived, remarks
    arrived, left_out = tests.without_tested(arrived)
    return arrived, (*remarks, *left_out, *tests.remarks)


def _judged(known: Classifier | None, result: Update, tests: TestFolder | None) -> tuple[Update, dict[str, Any]]:
    """Return the update with the results by which it is judged, and what the history keeps of the test folder."""
    if not tests:
        return result, {}
    examined = examine(tests, known, result.classifier)
    facts = examined.facts(result.known_classes, result.classifier.classes.names)
    return judged_by(result, examined), {"test": facts}


def _report(
    folder: Path,
    before: ModelVersion | None,
    arrived: LabelledImages,
    result: Update,
    facts: Mapping[str, Any],
    advice: Advice,
    remarks: tuple[Remark, ...],
) -> UpdateReport:
    """Return the report of an update that is not published yet."""
    past = before.history if before else ()
    return UpdateReport(
        folder.resolve().name,
        result.classifier,
        (*past, facts),
        result.after,
        result.before,
        advice=advice,
        remarks=remarks,
        folder=str(folder),
        earlier=tuple(earlier_suspects(past, result.classifier, arrived)),
    )


def first_settings(
    given: Mapping[str, Any], init: str | None, *, scratch: bool = False
) -> tuple[dict[str, Any], Pretrained | None]:
    """Return the settings of a new model, and its first weights; see `publish_update`."""
    started_with, chosen = with_start_settings(given, init, scratch=scratch)
    found = find_first_weights(chosen) if chosen else None
    return with_weights_settings(started_with, found), read_first_weights(found) if found else None


def _check_settings(settings: ClassifierSettings, weights: Pretrained | None) -> None:
    """Raise what is wrong with a new model's settings before thousands of images are read."""
    settings.configured()
    if settings.backbone == "identity" and settings.image_size > 1:
        raise UserError("backbone: identity is for features of 1 x 1 pixels; name a network, or give --image-size 1")
    find_backbone(settings.backbone)
    trained_network(settings, None, weights)


def _refuse_training_settings(settings: ClassifierSettings, given: Iterable[str]) -> None:
    """Raise UserError if the user gave settings of training to a method that trains nothing."""
    unused = [name for name in TRAINING_SETTINGS if name in given]
    if unused and not settings.configured().method.requirements().training:
        raise UserError(
            f"{unused[0]}: {settings.method} trains nothing, so that it would change nothing; leave it out, or name "
            "a method that trains when you make the model, such as --method eeil"
        )


def judged_by(result: Update, examined: Examination) -> Update:
    """Return the update with the results on a test folder, if that has images of classes that were known before."""
    known = result.known_classes
    if not examined.before or not examined.before.result(known).total:
        return result
    return result._replace(before=examined.before, after=examined.after)


def _excess(result: Update, limits: Limits) -> str | None:
    """Return which limit an update exceeds and how; None if it exceeds none."""
    old = result.known_classes
    if not old or limits == Limits():
        return None
    if result.before is None or result.after is None:
        return "no old class has an image in the hold-out set, so its loss can't be measured"
    was, now = result.before.accuracy(old), result.after.accuracy(old)
    if limits.drop is not None and was is not None and now is not None and was - now > limits.drop:
        return f"accuracy on the old classes falls from {was:.1f} % to {now:.1f} %, by more than {limits.drop:g}"
    for name, drop in accuracy_drops(result.before, result.after, old).items():
        if limits.class_drop is not None and drop > limits.class_drop:
            return f"accuracy on {name!r} falls by {drop:.1f} points, by more than {limits.class_drop:g}"
    return None


def _history_facts(images: str, arrived: LabelledImages, result: Update, seconds: float) -> dict[str, Any]:
    """Return the entry of an update in the history."""
    known, names, after = result.known_classes, result.classifier.classes.names, result.after
    return {
        "images": as_utf8(images),
        "new": [name for name in names if name not in known],
        "more": [name for name in dict.fromkeys(name for _, name in arrived) if name in known],
        "pictures": result.trained_images,
        "new_images": result.new_images,
        "all_images": sum(result.classifier.image_counts().values()) or None,
        "epochs": result.epochs,
        "seconds": round(seconds, 1),
        "old_before": result.before.accuracy(known) if result.before else None,
        "old_after": after.accuracy(known) if after else None,
        "new_after": after.accuracy(set(names) - set(known)) if after else None,
        "accuracy": after.accuracy(names) if after else None,
        "interval": after.interval(names) if after else None,
        "tried": after.result(names).total if after else 0,
        "estimate": ("cross-validation" if after.cross_validated else "hold-out set") if after else None,
        "temperature": result.classifier.temperature,
        "unknown_below": result.classifier.threshold and result.classifier.threshold.lead,
        "calibration_error": after.calibration_error if after else None,
        "calibration_error_plain": result.after_unscaled.calibration_error if result.after_unscaled else None,
        "score_gap": after.score_gap if after else None,
    }
