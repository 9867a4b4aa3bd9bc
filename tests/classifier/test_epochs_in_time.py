"""The epochs that fit into a time, with a training whose speed is known."""

from types import SimpleNamespace

import pytest

from ssil.classifier import epochs_in_time
from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.classifier.epochs_in_time import EVALUATION, EXPORT_SECONDS, MARGIN, time_limit, with_fitting_epochs
from ssil.learning.snapshot import Snapshot
from ssil.learning.task import Observer, Progress, ProgressReport
from tiny_classifiers import settings


class Training:
    """A training of 100 images an epoch, ten steps of half a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.steps, self.slow = 7.0, 0, 1.0
        clock = SimpleNamespace(monotonic=lambda: self.now, process_time=lambda: self.now / self.slow)
        monkeypatch.setattr(epochs_in_time, "time", clock)

    def __call__(self, under: ClassifierSettings, observer: Observer) -> Snapshot:
        for step in range(10 * under.epochs):
            self.now, self.steps = self.now + 0.5, self.steps + 1
            report = ProgressReport("main", step // 10, under.epochs, step % 10, 10, 10 * step)
            observer(Progress(None, {}), report)  # type: ignore[arg-type]
        raise AssertionError("the probe did not stop it")


@pytest.mark.parametrize(("minutes", "evaluated"), [(2.0, 0), (2.0, 400), (10.0, 400)])
def test_all_that_an_update_does_counts(monkeypatch: pytest.MonkeyPatch, minutes: float, evaluated: int) -> None:
    training = Training(monkeypatch)
    limit = time_limit(minutes)
    training.now += 20  # for features
    found = with_fitting_epochs(settings(epochs=30), limit, training, first=True, evaluated=evaluated).epochs
    probed = 0.5 * training.steps
    left = MARGIN * (60 * minutes - 20 - probed - EXPORT_SECONDS - EVALUATION * evaluated * 0.05)
    assert found == pytest.approx(left / 5, abs=1)
    assert 5 * found < left + 0.01


def test_beside_other_programs_the_export_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for slow in (1.0, 4.0):
        training = Training(monkeypatch)
        training.slow = slow
        found.append(
            with_fitting_epochs(settings(epochs=30), time_limit(9.0), training, first=True, evaluated=0).epochs
        )
    assert found[0] - found[1] == pytest.approx(MARGIN * 3 * EXPORT_SECONDS / 5, abs=1)


def test_one_epoch_is_the_least_and_no_limit_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    training, usual = Training(monkeypatch), settings(epochs=30)
    assert with_fitting_epochs(usual, time_limit(0.0), training, first=True, evaluated=9).epochs == 1
    assert with_fitting_epochs(usual, time_limit(None), training, first=True, evaluated=9) is usual
