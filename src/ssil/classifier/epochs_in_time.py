"""How many epochs fit into a given time, for `ssil learn --minutes`."""

import time
from collections.abc import Callable
from contextlib import suppress

from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.learning.snapshot import Snapshot
from ssil.learning.task import Observer, Progress, ProgressReport

PROBE_SECONDS, MAX_EPOCHS = 3.0, 300
"""How long training is timed to choose the number of epochs, and the largest number chosen."""


def with_fitting_epochs(
    settings: ClassifierSettings,
    seconds: float,
    train: Callable[[ClassifierSettings, Observer], Snapshot],
    *,
    first: bool,
) -> ClassifierSettings:
    """Return the settings with as many epochs as fit into `seconds`, after timing `train` for a short while."""
    times, shares = list[float](), list[float]()

    def probe(_: Progress, report: ProgressReport) -> None:
        times.append(time.monotonic())
        shares.append(report.done)
        if times[-1] - times[0] > PROBE_SECONDS:
            raise _ProbeDoneError

    with suppress(_ProbeDoneError):
        train(settings, probe)
    if len(times) < 2 or shares[-1] == shares[0]:
        return settings
    name = "epochs" if first else "later_epochs"
    whole = (times[-1] - times[0]) / (shares[-1] - shares[0])
    fitting = max(1, min(MAX_EPOCHS, int(getattr(settings, name) * seconds / whole)))
    return settings.model_copy(update={name: fitting})


class _ProbeDoneError(Exception):
    pass
