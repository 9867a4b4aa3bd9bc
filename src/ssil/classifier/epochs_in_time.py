"""How many epochs fit into a given time, for `ssil learn --minutes`."""

import time
from collections.abc import Callable
from contextlib import suppress

from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.learning.snapshot import Snapshot
from ssil.learning.task import Observer, Progress, ProgressReport

PROBE_SECONDS, MAX_EPOCHS = 3.0, 300
"""How long training is timed to choose the number of epochs, and the largest number chosen."""
EVALUATION, EXPORT_SECONDS, MARGIN = 0.5, 5.0, 0.9
"""An image is evaluated in this part of the time of training on it; a model is exported, written and validated in so
many seconds of a core; and this part of the time that is then left is planned for training."""


class Probe:
    """An observer that times training, and stops it after `PROBE_SECONDS`."""

    def __init__(self) -> None:
        self.times, self.shares, self.images = list[float](), list[float](), list[int]()
        self.began = time.monotonic(), time.process_time()

    def __call__(self, _: Progress, report: ProgressReport) -> None:
        """Note the time, the share of training that is done, and the images so far."""
        self.times.append(time.monotonic())
        self.shares.append(report.done)
        self.images.append(report.images)
        if self.times[-1] - self.times[0] > PROBE_SECONDS:
            raise _ProbeDoneError

    @property
    def slowness(self) -> float:
        """How many times as long as its computation the process has taken, beside other programs; 1 at least."""
        wall, own = self.times[-1] - self.began[0], time.process_time() - self.began[1]
        return max(1.0, wall / own) if own > 0 else 1.0

    @property
    def told(self) -> bool:
        """Whether training was seen to go on."""
        return len(self.times) > 1 and self.shares[-1] > self.shares[0]

    @property
    def training_seconds(self) -> float:
        """The time that all of training would take."""
        return (self.times[-1] - self.times[0]) / (self.shares[-1] - self.shares[0])

    @property
    def image_seconds(self) -> float:
        """The time of training on one image once."""
        return (self.times[-1] - self.times[0]) / max(1, self.images[-1] - self.images[0])


def time_limit(minutes: float | None) -> float | None:
    """Return when an update should be done that may take so many minutes from now; None if it may take any time."""
    return None if minutes is None else time.monotonic() + 60 * minutes


def with_fitting_epochs(
    settings: ClassifierSettings,
    deadline: float | None,
    train: Callable[[ClassifierSettings, Observer], Snapshot],
    *,
    first: bool,
    evaluated: int,
) -> ClassifierSettings:
    """Return the settings with as many epochs as fit into the time that is left, after timing `train` a short while.

    Args:
        settings: The settings, whose epochs are replaced.
        deadline: When the whole update should be done, as `time_limit` gives it; None leaves the settings as they are.
        train: Trains under some settings.
        first: Whether it is a first update, which has epochs of its own.
        evaluated: How many images are evaluated after training.
    """
    if deadline is None:
        return settings
    probe = Probe()
    with suppress(_ProbeDoneError):
        train(settings, probe)
    if not probe.told:
        return settings
    name = "epochs" if first else "later_epochs"
    after = EXPORT_SECONDS * probe.slowness + EVALUATION * evaluated * probe.image_seconds
    left = MARGIN * (deadline - time.monotonic() - after)
    fitting = max(1, min(MAX_EPOCHS, int(getattr(settings, name) * left / probe.training_seconds)))
    return settings.model_copy(update={name: fitting})


class _ProbeDoneError(Exception):
    pass
