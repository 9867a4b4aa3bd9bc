from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssil.core.errors import UserError
from ssil.learning.schedule import Training, override_settings, scale_epochs, scale_milestones

rising = st.lists(st.integers(1, 100), max_size=4, unique=True).map(lambda milestones: tuple(sorted(milestones)))


def rates(training: Training, task: int) -> list[float]:
    """The learning rate of each epoch of a task."""
    schedule = training.schedule(task)
    return [schedule.lr_at(epoch) for epoch in range(schedule.epochs)]


def test_the_rate_changes_before_the_epoch_of_a_milestone() -> None:
    """Milestones are 0-based epochs."""
    assert rates(Training(epochs=6, milestones=(2, 4)), 1) == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_a_list_of_rates_gives_one_for_each_stretch() -> None:
    assert rates(Training(epochs=4, milestones=(1, 3), lr=(0.3, 0.1, 0.02)), 1) == [0.3, 0.1, 0.1, 0.02]


def test_a_list_of_rates_must_fit_the_milestones() -> None:
    with pytest.raises(UserError, match=r"^lr: \[0.1, 0.01\] has 2 values for 2 milestones; give one number, or one m"):
        Training(lr=(0.1, 0.01))


def test_later_tasks_have_a_schedule_in_proportion() -> None:
    training = Training(later_epochs=25)
    assert (training.schedule(1).epochs, training.schedule(1).milestones) == (100, (40, 80))
    assert (training.schedule(2).epochs, training.schedule(2).milestones) == (25, (10, 20))
    assert training.schedule(2) == training.schedule(3)


@pytest.mark.parametrize("lr", [0.1, (0.1, 0.05, 0.025)])
def test_the_rate_by_task(lr: float | tuple[float, ...]) -> None:
    by_task, constant = (Training(lr=lr, lr_by_task=by_task) for by_task in (True, False))
    for task in (1, 2, 5):
        assert rates(by_task, task) == pytest.approx([rate / task for rate in rates(constant, task)])
        assert rates(constant, task) == rates(constant, 1)


def test_momentum_and_weight_decay_are_handed_on() -> None:
    schedule = Training(momentum=0.5, weight_decay=0.25).schedule(3)
    assert (schedule.momentum, schedule.weight_decay) == (0.5, 0.25)


@settings(max_examples=60, deadline=None)
@given(rising, st.integers(1, 300))
def test_milestones_scale_with_the_epochs(milestones: tuple[int, ...], wanted: int) -> None:
    scaled = scale_milestones(milestones, 100, wanted)
    assert list(scaled) == sorted(scaled)
    assert all(2 * abs(100 * to - was * wanted) <= 100 or to == 1 for was, to in zip(milestones, scaled, strict=True))
    assert scale_milestones(milestones, 100, 100) == milestones


def test_the_shortest_schedule_still_uses_the_first_rate() -> None:
    assert rates(Training(epochs=1, milestones=scale_milestones((40, 80), 100, 1), lr=0.5), 1) == [0.5]


@pytest.mark.parametrize(("increments", "replay"), [(20, 16), (10, 32), (5, 64), (None, 32)])
def test_replay_batch_by_the_number_of_increments(increments: int | None, replay: int) -> None:
    """N_M = 16, 32, 64 for T = 20, 10, 5 at N_D = 128; a quarter of N_D where T is unknown."""
    assert Training(increments=increments).replay == replay


@pytest.mark.parametrize(("batch", "increments"), [(1, 100), (1, None), (2, 1000)])
def test_a_replay_batch_is_never_empty(batch: int, increments: int | None) -> None:
    assert Training(batch=batch, increments=increments).replay == 1


SURVEY: dict[str, Any] = {
    "epochs": 200,
    "later_epochs": 170,
    "milestones": (60, 120, 170),
    "later_milestones": (80, 120),
    "weight_decay": 5e-4,
    "later_weight_decay": 2e-4,
}


def test_later_tasks_may_have_milestones_and_weight_decay_of_their_own() -> None:
    training = Training(**SURVEY)
    first, later = training.schedule(1), training.schedule(2)
    assert (first.epochs, first.milestones, first.weight_decay) == (200, (60, 120, 170), 5e-4)
    assert (later.epochs, later.milestones, later.weight_decay) == (170, (80, 120), 2e-4)
    assert later.lr == pytest.approx((0.1, 0.01, 0.001))
    assert training.tuning(1, of=2, lr=0.1).weight_decay == 2e-4


def test_milestones_of_later_tasks_follow_their_epochs() -> None:
    assert scale_epochs(SURVEY, 0.1)["later_milestones"] == (8, 12)
    assert override_settings(SURVEY, {"epochs": 100})["later_milestones"] == (40, 60)
    assert override_settings(SURVEY, {"epochs": 100, "later_epochs": 34})["later_milestones"] == (16, 24)
    assert override_settings(SURVEY, {"later_epochs": 34, "later_milestones": (5,)})["later_milestones"] == (5,)
    assert override_settings(SURVEY, {"lr": 0.2}) == {**SURVEY, "lr": 0.2}


def test_rates_fit_the_milestones_of_later_tasks_too() -> None:
    with pytest.raises(UserError, match=r"lr: .* has 3 values for 1 milestones"):
        Training(lr=(0.1, 0.01, 0.001), later_milestones=(5,))


def test_a_record_states_no_setting_of_later_tasks_that_is_not_given() -> None:
    """Records made before these settings existed stay equal to those of the same run today."""
    stated = Training().stated()
    assert {"later_epochs", "weight_decay"} <= set(stated)
    assert not {"later_milestones", "later_weight_decay"} & set(stated)
    assert Training(**SURVEY).stated().items() >= SURVEY.items()
