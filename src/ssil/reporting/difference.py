"""What differs between two runs: settings, results, and the test images on which they disagree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from ssil.benchmark.estimates import bootstrap
from ssil.benchmark.record import Record, TaskRecord, flat, read_predictions
from ssil.benchmark.results import Run, differences
from ssil.core.errors import UserError
from ssil.learning.metrics import Predictions
from ssil.reporting.headline_table import COLUMNS

COST: Final = {"seconds", "seconds_by_phase", "images_per_second", "peak_memory_mb", "score_gap"}
"""What two equal runs need not share; the gap follows from other scores, and records of version 1 lack it."""

PLACE: Final = ("ssil", "commit", "python", "torch", "platform", "device", "devices", "threads")
"""Of the provenance, what may change results."""


@dataclass(frozen=True)
class ImageComparison:
    """The same test images under two models: how many there are, on how many the two disagree, and last top-1."""

    count: int
    disagree: int
    difference: float
    """Of top-1 in points, the second run's minus the first's."""
    low: float
    high: float
    """The ends of a 95 % interval of the difference, from a paired bootstrap over the images."""


@dataclass(frozen=True)
class Difference:
    """Two runs side by side, as they were after the last task that both have done."""

    done: tuple[int, int]
    """The tasks that each has done."""
    settings: dict[str, tuple[Any, Any]]
    """The settings that differ, by name."""
    results: dict[str, tuple[float, float]]
    """All results, by name; none if a run has no task done."""
    since: int | None
    """The first task after which anything but the cost differs."""
    images: ImageComparison | None
    """None where the predictions are not kept, or not of the same images."""

    @property
    def none(self) -> bool:
        """Whether both are the same but for time and memory."""
        differs = self.settings, self.since, self.images and self.images.disagree, self.done[0] - self.done[1]
        return not any(differs)

    @property
    def tasks(self) -> int:
        """The tasks that both have done."""
        return min(self.done)


def difference(first: Run, second: Run) -> Difference:
    """What differs between the first run and the second."""
    records = first.record, second.record
    done = len(first.record.tasks), len(second.record.tasks)
    tasks = min(done)
    ours, theirs = (_results(record.after(tasks)) for record in records)
    return Difference(
        done=done,
        settings=_settings(records),
        results={name: (ours[name], theirs[name]) for name in ours},
        since=_since(*(record.tasks[:tasks] for record in records)),
        images=_images(first, second, tasks),
    )


def _settings(records: Sequence[Record]) -> dict[str, tuple[Any, Any]]:
    ours, theirs = (_said(record) for record in records)
    return {name: (ours.get(name), theirs.get(name)) for name in differences([ours, theirs])}


def _said(record: Record) -> Mapping[str, Any]:
    stream = {"task_sizes": record.task_sizes, "class_order": record.class_order}
    config = {name: value for name, value in record.config.items() if name != "riders"}  # runs of their own
    return flat(config | stream) | {name: record.provenance.get(name) for name in PLACE}


def _results(record: Record) -> dict[str, float]:
    return {column.key: column.value(record) for column in COLUMNS} if record.tasks else {}


def _since(ours: Sequence[TaskRecord], theirs: Sequence[TaskRecord]) -> int | None:
    pairs = zip(ours, theirs, strict=True)
    return next((a.task for a, b in pairs if a.model_dump(exclude=COST) != b.model_dump(exclude=COST)), None)


def _images(first: Run, second: Run, task: int) -> ImageComparison | None:
    """Compared if both data sets and the classes of all images are the same, in whatever order classes came."""
    if first.record.config.get("data_fingerprint") != second.record.config.get("data_fingerprint"):
        return None
    try:
        (truth, ours), (others, theirs) = (_classes(run, read_predictions(run.folder, task)) for run in (first, second))
    except UserError:
        return None
    if not torch.equal(truth, others):
        return None
    gains = 100 * ((theirs == truth).double() - (ours == truth).double()).numpy()
    low, high = bootstrap(gains)
    return ImageComparison(len(truth), int((ours != theirs).sum()), float(np.mean(gains)), low, high)


def _classes(run: Run, predictions: Predictions) -> tuple[torch.Tensor, torch.Tensor]:
    """True and predicted classes by their numbers in the data set."""
    number = torch.tensor(run.record.class_order)
    return number[predictions.labels], number[predictions.top[:, 0]]
