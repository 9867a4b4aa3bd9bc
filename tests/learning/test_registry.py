from pathlib import Path
from typing import Any

import pytest

import task_ends
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.learning.batches import Replay
from ssil.learning.method import Method, Phase
from ssil.learning.registry import PROFILES, RECIPES, configure, find_recipe, recipes, register
from ssil.learning.schedule import Training

PAPER = {
    "epochs": 100,
    "lr": 0.1,
    "milestones": (40, 80),
    "decay": 0.1,
    "batch": 128,
    "momentum": 0.9,
    "weight_decay": 1e-4,
}
"""SS-IL's row of Table S1; FT's is the same for the first task."""


@pytest.mark.parametrize("profile", ["paper", "official"])
@pytest.mark.parametrize(("name", "later"), [("ssil", None), ("ft", 25)])
def test_the_paper_and_its_code(name: str, later: int | None, profile: str) -> None:
    """The code divides the rate by the task and starts new rows from (next to) zero."""
    training = configure(name, profile).training
    official = profile == "official"
    expected = PAPER | {"later_epochs": later, "lr_by_task": official, "increments": None}
    assert training.stated() == expected | {"new_head_init": "zero" if official else "default"}


def test_fine_tuning_shortens_later_tasks() -> None:
    later = configure("ft").training.schedule(2)
    assert (later.epochs, later.milestones) == (25, (10, 20))
    assert later.lr == pytest.approx((0.1, 0.01, 0.001))


def test_official_distillation_is_weighed_by_the_squared_temperature() -> None:
    for name in ("ssil", "ce_tkd", "ce_gkd", "lwf"):
        assert not configure(name, "paper").options["kd_tau_sq"]
        assert configure(name, "official").options["kd_tau_sq"]


@pytest.mark.parametrize("name", ["ce_tkd", "ce_gkd", "er", "joint", "lwf", "ce"])
def test_only_ssil_and_ft_divide_the_rate_by_the_task(name: str) -> None:
    assert not configure(name, "official").training.lr_by_task


@pytest.mark.parametrize("name", recipes())
def test_quick_is_the_paper_in_eight_epochs(name: str) -> None:
    quick, paper = (configure(name, profile).training for profile in ("quick", "paper"))
    assert (quick.epochs, quick.batch) == (8, 64)
    shares = [[milestone / each.epochs for milestone in each.milestones] for each in (quick, paper)]
    assert shares[0] == pytest.approx(shares[1], abs=0.5 / 8)


def test_quick_scales_later_epochs_too() -> None:
    assert configure("ft", "quick").training.later_epochs == 2


def test_own_settings_win_over_the_profile() -> None:
    training = configure("ft", "official", {"epochs": 20, "lr": 0.3, "lr_by_task": False}).training
    assert (training.epochs, training.later_epochs, training.milestones) == (20, 5, (8, 16))
    assert (training.lr, training.lr_by_task) == (0.3, False)
    given = configure("ft", training={"epochs": 20, "milestones": (5,), "later_epochs": 7}).training
    assert (given.milestones, given.later_epochs) == ((5,), 7)


@pytest.mark.parametrize(("increments", "replay"), [(20, 16), (10, 32), (5, 64), (None, 32)])
def test_the_replay_batch_reaches_the_phase(increments: int | None, replay: int) -> None:
    classes = ClassTable(("?",) * 4, (0, 2, 4))
    for name, options, expected in (("ssil", {}, replay), ("er", {"replay_batch": 7}, 7)):
        (phase,) = configure(name, options=options, increments=increments).method.plan(classes)
        assert isinstance(phase, Phase)
        assert phase.batches == Replay(128, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temprature": 2}, "options: ssil has no option 'temprature'; did you mean 'temperature'\\?"),
        ({"temperature": "warm"}, "options.temperature: 'warm' does not fit: Input should be a valid number, .*"),
        ({"softmax": "both"}, "options.softmax: 'both' does not fit: Input should be 'separate' or 'joint'"),
        ({"zzz": 1}, "options: ssil has no option 'zzz'; it has: softmax, .*min_group"),
    ],
)
def test_a_bad_option_is_explained_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}$"):
        configure("ssil", options=options)


def test_a_method_without_options_says_so(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from ssil.methods.ft import ft\ndef mine(training):\n    return ft(training)\n")
    with pytest.raises(UserError, match=r"mine has no option 'tau'; it has: none$"):
        configure(f"{file}:mine", options={"tau": 1})


def test_joint_training_starts_afresh_or_goes_on() -> None:
    second = task_ends.table(3, 1)
    for options, start in (({}, "fresh"), ({"start": "current"}, "current")):
        (phase,) = configure("joint", options=options).method.plan(second)
        assert isinstance(phase, Phase)
        assert phase.start == start


def test_a_misspelt_method() -> None:
    with pytest.raises(UserError, match=r"^method: unknown name 'sil', did you mean 'ssil'.*"):
        configure("sil")


def test_options_from_text_get_their_types() -> None:
    options = configure("ssil", options={"temperature": "3", "kd_tau_sq": "true", "replay_batch": "5"}).options
    assert (options["temperature"], options["kd_tau_sq"], options["replay_batch"]) == (3.0, True, 5)


def test_a_method_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from ssil.methods.ft import ft\n"
        "def mine(training, *, strength: float = 1.0):\n"
        "    'Mine (2024).'\n"
        "    return ft(training)\n"
    )
    configured = configure(f"{file}:mine", "quick", options={"strength": 2})
    assert configured.options == {"strength": 2.0}
    assert configured.training.epochs == 8
    assert find_recipe(f"{file}:mine").summary == "Mine (2024)."


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", recipes())
def test_every_method_has_every_profile(name: str, profile: str) -> None:
    assert isinstance(configure(name, profile).training, Training)


def test_a_built_in_method_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from ssil import register\n"
        "from ssil.methods.ft import ft\n"
        "@register()\n"
        "def ssil(training):\n"
        "    return ft(training)\n"
    )
    before = find_recipe("ssil")
    with pytest.raises(UserError, match="'ssil' is a built-in method; give your function another name"):
        find_recipe(f"{file}:ssil")
    assert find_recipe("ssil") is before
    file.write_text(file.read_text().replace("def ssil", "def my_ssil"))
    assert find_recipe(f"{file}:my_ssil").name == "my_ssil"


def test_methods_from_outside_are_not_listed_as_built_in() -> None:
    @register()
    def somebodys(training: Training) -> Method:
        """Somebody's: a method from outside."""
        return find_recipe("ft").build(training)

    try:
        assert "somebodys" not in recipes()
        assert find_recipe("somebodys").build is somebodys
    finally:
        del RECIPES["somebodys"]


FIFTH: dict[str, list[tuple[str, int]]] = {
    "ssil": [("main", 20)],
    "eeil": [("main", 8), ("balanced", 6)],
    "bic": [("main", 20), ("bias", 40)],
    "lucir": [("main", 18)],
    "podnet": [("main", 18), ("balanced", 4)],
    "icarl": [("main", 12)],
    "ft": [("main", 5)],
    "uw": [("teacher_c", 20), ("main", 16), ("balanced", 4)],
}
"""Phases of a later task and their epochs, a fifth of Table S1's."""


def later_phases(method: Method) -> list[tuple[str, int]]:
    plan = method.plan(ClassTable(("?",) * 4, (0, 2, 4)))
    return [(part.name, part.schedule.epochs) for part in plan if isinstance(part, Phase)]


@pytest.mark.parametrize("name", FIFTH)
def test_a_scale_shortens_every_phase_in_proportion(name: str) -> None:
    assert later_phases(configure(name, training={"epoch_scale": 0.2}).method) == FIFTH[name]


def test_a_scale_shortens_the_first_task_and_moves_the_milestones() -> None:
    training = configure("ft", training={"epoch_scale": 0.2}).training
    assert (training.epochs, training.later_epochs, training.milestones) == (20, 5, (8, 16))
    assert later_phases(configure("eeil", "quick", {"epoch_scale": 0.5}).method) == [("main", 4), ("balanced", 15)]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", recipes())
def test_a_scale_of_one_changes_nothing(name: str, profile: str) -> None:
    plain, scaled = (configure(name, profile, given) for given in ({}, {"epoch_scale": 1.0}))
    assert (scaled.training, scaled.options) == (plain.training, plain.options)


def test_given_settings_are_not_scaled() -> None:
    given = {"epoch_scale": 0.2, "later_epochs": 7, "milestones": (3,)}
    training = configure("ft", training=given).training
    assert (training.epochs, training.later_epochs, training.milestones) == (20, 7, (3,))
    tuned = configure("eeil", training={"epoch_scale": 0.2}, options={"balanced_epochs": 9})
    assert tuned.options["balanced_epochs"] == 9


@pytest.mark.parametrize("name", recipes())
@pytest.mark.parametrize("factor", [0.001, 3.0])
def test_a_scale_leaves_at_least_one_epoch_and_may_lengthen(name: str, factor: float) -> None:
    method = configure(name, training={"epoch_scale": factor}).method
    usual = dict(later_phases(configure(name).method))
    bounds = {phase: (1, 2) if factor < 1 else (3 * epochs, 3 * epochs) for phase, epochs in usual.items()}
    assert all(bounds[phase][0] <= epochs <= bounds[phase][1] for phase, epochs in later_phases(method))
