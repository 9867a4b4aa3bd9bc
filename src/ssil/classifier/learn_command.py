"""An update of a model directory, from pictures to the published version."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ssil.classifier.classifier import Update, changed, update
from ssil.classifier.classifier_settings import ModelSettings, make_settings
from ssil.classifier.feature_extraction import sight_of
from ssil.classifier.holdout import Marks
from ssil.classifier.images import Labelled, from_data
from ssil.classifier.model_directory import ModelDirectory, ModelVersion
from ssil.core import __version__
from ssil.core.errors import RefusedError, UserError
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Remark
from ssil.learning.task import Watch
from ssil.nn.backbones import find_backbone
from ssil.nn.pretrained import Pretrained, read_pretrained


@dataclass(frozen=True)
class Limits:
    """How many points of accuracy an update may cost, on the old classes pooled and on any one of them."""

    drop: float | None = None
    class_drop: float | None = None


@dataclass(frozen=True)
class Published:
    """A version that was made, the update behind it, and remarks on the pictures."""

    version: ModelVersion
    update: Update
    remarks: tuple[Remark, ...]


def learn(
    folder: Path,
    images: str,
    given: Mapping[str, Any],
    limits: Limits | None = None,
    on_progress: ProgressCallback | None = None,
    watch: Watch | None = None,
    init: str | None = None,
    minutes: float | None = None,
    trusted: Sequence[str] = (),
) -> Published:
    """Learn what is in `images`, and publish it; all is as it was if anything goes wrong, or a limit is passed."""
    if "memory" in given and given.get("memory_mb") is not None:
        raise UserError("memory: give a number of pictures or of megabytes, not both")
    directory = ModelDirectory(folder, [*trusted, *(str(given.get(kind)) for kind in ("method", "backbone"))])
    weights = read_pretrained(init) if init and not directory.exists else None
    if not directory.exists:
        _refuse_early(make_settings({**given}), weights)
    arrived, remarks = from_data(images, on_progress)
    with directory.locked():
        before = directory.load() if directory.exists else None
        if before and init:
            raise UserError("init: the model has learnt already; first weights are for a new one")
        settings = changed(before.classifier.settings, given) if before else make_settings({**given})
        started = time.monotonic()
        made = update(before.classifier if before else None, settings, arrived, watch, weights, minutes)
        _guard(made, limits or Limits())
        entry = _entry(images, arrived, before, made, time.monotonic() - started)
        version = directory.publish(made.classifier, [*(before.history if before else ()), entry])
    return Published(version, made, remarks)


def _refuse_early(settings: ModelSettings, weights: Pretrained | None) -> None:
    """What is wrong with a new model's settings is said before thousands of pictures are looked at."""
    settings.configured()
    find_backbone(settings.backbone)
    sight_of(settings, None, weights)


def _guard(made: Update, limits: Limits) -> None:
    if not made.known or limits == Limits():
        return
    if made.before is None or made.after is None:
        raise RefusedError(
            "no old class has a picture in the quiz, so what it costs them can't be told; the model is as it was"
        )
    old = made.known
    was, now = (marks.accuracy(old) for marks in (made.before, made.after))
    if limits.drop is not None and was is not None and now is not None and was - now > limits.drop:
        raise RefusedError(
            f"accuracy on the old classes falls from {was:.1f} % to {now:.1f} %, by more than {limits.drop:g}; "
            "the model is as it was"
        )
    for name, drop in drops(made.before, made.after, old).items():
        if limits.class_drop is not None and drop > limits.class_drop:
            raise RefusedError(
                f"accuracy on {name!r} falls by {drop:.1f} points, by more than {limits.class_drop:g}; "
                "the model is as it was"
            )


def drops(before: Marks, after: Marks, names: Sequence[str]) -> dict[str, float]:
    """By how many points each class got worse, the worst first; without those that did not."""
    both = ((name, before.accuracy([name]), after.accuracy([name])) for name in names)
    found = {name: was - now for name, was, now in both if was is not None and now is not None and was > now}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _entry(images: str, arrived: Labelled, before: ModelVersion | None, made: Update, seconds: float) -> dict[str, Any]:
    """A line of the history."""
    known = made.known
    names = dict.fromkeys(name for _, name in arrived)
    return {
        "parent": before.number if before else None,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "ssil": __version__,
        "images": images,
        "new": [name for name in made.classifier.classes.names if name not in known],
        "more": [name for name in names if name in known],
        "pictures": made.learnt,
        "epochs": made.epochs,
        "seconds": round(seconds, 1),
        "old_before": made.before.accuracy(known) if made.before else None,
        "old_after": made.after.accuracy(known) if made.after else None,
        "new_after": made.after.accuracy(set(made.classifier.classes.names) - set(known)) if made.after else None,
        "temperature": made.classifier.temperature,
        "calibration_error": made.after.calibration_error if made.after else None,
        "calibration_error_plain": made.plain.calibration_error if made.plain else None,
        "score_gap": made.after.score_gap if made.after else None,
    }
