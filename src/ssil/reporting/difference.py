"""The difference between two runs: settings, results, and the test images on which they disagree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import numpy as np
import torch

from ssil.benchmark.record import Record, TaskRecord, flat, has_predictions, read_predictions
from ssil.benchmark.results import Run, bootstrap, differences
from ssil.learning.metrics import Predictions
from ssil.reporting.headline_table import COLUMNS

COST: Final = {
    "seconds",
    "seconds_by_phase",
    "images_per_second",
    "peak_memory_mb",
    "score_gap",
    "gradient_steps",
    "task_aware_top1",
}
"""Fields that may differ between equal runs: cost, and what records of earlier versions lack."""

PLACE: Final = ("ssil", "commit", "python", "torch", "platform", "device", "devices", "threads")
"""Entries of the provenance that may change results."""


@dataclass(frozen=True)
class ImageComparison:
    """Predictions of two models for the same test images: their number, disagreements, and the gap in last top-1."""

    count: int
    disagree: int
    difference: float
    """Top-1 of the second run minus that of the first, in points."""
    low: float
    high: float
    """95 % interval of the difference, from a paired bootstrap over the images."""


@dataclass(frozen=True)
class Difference:
    """Two runs compared after the last task that both have finished."""

    done: tuple[int, int]
    """Number of tasks that each run has finished."""
    settings: dict[str, tuple[Any, Any]]
    """Both values of each setting that differs, by its name."""
    results: dict[str, tuple[float, float]]
    """Both values of each result, by its name; empty if a run has finished no task."""
    since: int | None
    """First task after which a result other than cost differs; None if there is none."""
    same_data: bool
    """Whether both runs had the same images and labels, as far as their records state it."""
    images: ImageComparison | None
    """None if predictions were not kept or belong to different images."""

    @property
    def none(self) -> bool:
        """Whether the runs are equal except for cost."""
        differs = self.settings, self.since, self.images and self.images.disagree, self.done[0] - self.done[1]
        return not any(differs)

    @property
    def tasks(self) -> int:
        """Number of tasks that both runs have finished."""
        return min(self.done)


def difference(first: Run, second: Run) -> Difference:
    """Compare two runs."""
    records = first.record, second.record
    done = len(first.record.tasks), len(second.record.tasks)
    tasks = min(done)
    ours, theirs = (_results(record.after(tasks)) for record in records)
    return Difference(
        done=done,
        settings=_settings(records),
        results={name: (ours[name], theirs[name]) for name in ours if name in theirs},
        since=_since(*(record.tasks[:tasks] for record in records)),
        same_data=_same_data(*records),
        images=_images(first, second, tasks),
    )


def _same_data(first: Record, second: Record) -> bool:
    return bool(first.config.get("data_fingerprint") == second.config.get("data_fingerprint"))


def _settings(records: Sequence[Record]) -> dict[str, tuple[Any, Any]]:
    ours, theirs = (_described(record) for record in records)
    return {name: (ours.get(name), theirs.get(name)) for name in differences([ours, theirs])}


def _described(record: Record) -> Mapping[str, Any]:
    stream = {"task_sizes": record.task_sizes, "class_order": record.class_order}
    config = {
        name: value for name, value in record.config.items() if name != "riders"
    }  # methods that share the training have records of their own
    return flat(config | stream) | {name: record.provenance.get(name) for name in PLACE}


def _results(record: Record) -> dict[str, float]:
    """Return the results that the record has, by name."""
    found = {key: column.value(record) for key, column in COLUMNS.items()} if record.tasks else {}
    return {key: value for key, value in found.items() if not isnan(value)}


def _since(ours: Sequence[TaskRecord], theirs: Sequence[TaskRecord]) -> int | None:
    pairs = zip(ours, theirs, strict=True)
    return next((a.task for a, b in pairs if a.model_dump(exclude=COST) != b.model_dump(exclude=COST)), None)


def _images(first: Run, second: Run, task: int) -> ImageComparison | None:
    """Compare predictions if the runs have the same test images and labels; the order of classes may differ."""
    if not _same_data(first.record, second.record):
        return None
    if not all(has_predictions(run.folder, task) for run in (first, second)):
        return None
    (truth, ours), (others, theirs) = (_classes(run, read_predictions(run.folder, task)) for run in (first, second))
    if not torch.equal(truth, others):
        return None
    gains = 100 * ((theirs == truth).double() - (ours == truth).double()).numpy()
    low, high = bootstrap(gains)
    return ImageComparison(len(truth), int((ours != theirs).sum()), float(np.mean(gains)), low, high)


def _classes(run: Run, predictions: Predictions) -> tuple[torch.Tensor, torch.Tensor]:
    """Return true and predicted classes as numbered in the data set."""
    number = torch.tensor(run.record.class_order)
    return number[predictions.labels], number[predictions.top[:, 0]]
