from pathlib import Path
from typing import Any

import pytest

from ssil.benchmark.config import RunConfig, checkpoint_interval, make_config, read_toml
from ssil.core.errors import UserError
from ssil.core.settings import setting, validated
from ssil.learning.learning_settings import TrainingSettings
from ssil.learning.schedule import Training

ANOTHER: dict[str, Any] = {
    "dataset": "digits",
    "classes": 5,
    "class_list": Path("somewhere"),
    "min_per_class": 5,
    "max_per_class": 5,
    "least": 0.5,
    "train_per_class": 5,
    "test_per_class": 5,
    "split_seed": 5,
    "image_size": 16,
    "augment": "none",
    "stream": "blurry:10",
    "stream_name": "mine",
    "validation": 0.25,
    "tasks": 3,
    "task_sizes": (2, 2),
    "large_base": True,
    "class_order": 7,
    "memory": 50,
    "memory_per_class": 5,
    "memory_mb": 5.0,
    "selection": "herding",
    "method": "ft",
    "branch": "ce_tkd",
    "profile": "quick",
    "options": {"temperature": 3.0},
    "epochs": 3,
    "later_epochs": 2,
    "lr": 0.2,
    "lr_by_task": True,
    "milestones": (2,),
    "decay": 0.5,
    "batch": 9,
    "momentum": 0.5,
    "weight_decay": 0.5,
    "later_milestones": (2,),
    "later_weight_decay": 0.5,
    "optimizer": "adamw",
    "brightness": 0.25,
    "new_head_init": "zero",
    "backbone": "resnet14",
    "norm": "group",
    "init": "resnet18.safetensors",
    "freeze": True,
    "input": {"size": 64},
    "seed": 3,
    "precision": "64-true",
    "out": Path("somewhere"),
    "name": "mine",
    "data_root": Path("somewhere"),
    "strict": True,
    "in_memory": False,
    "hold_exemplars": "bytes",
    "device": "cpu",
    "devices": 2,
    "nodes": 2,
    "epoch_scale": 0.5,
    "accumulate": 2,
    "compile": True,
    "threads": 2,
    "checkpoint_every": "7s",
    "track": "tensorboard",
}
"""For each setting a value that is not the default."""


@pytest.mark.parametrize("field", RunConfig.model_fields)
def test_what_and_how(field: str) -> None:
    """A record's config holds every setting but those that say how, and those that it states resolved."""
    changed = make_config({field: ANOTHER[field]})
    assert changed != make_config({})
    assert (changed.what() == make_config({}).what()) == (
        field in {*RunConfig.names(how=True), *RunConfig.names(resolved=True)}
    )


def test_the_training_settings_are_those_of_training() -> None:
    """Beside `epoch_scale`, which changes other fields."""
    assert {*TrainingSettings.model_fields} - {"epoch_scale"} == {*Training.__dataclass_fields__} - {"increments"}
    assert make_config({"epochs": 3, "lr": [0.1, 0.01], "milestones": [2]}).training == {
        "epochs": 3,
        "lr": (0.1, 0.01),
        "milestones": (2,),
    }
    assert make_config({}).training == {}


HOW = {
    "out",
    "name",
    "stream_name",
    "data_root",
    "class_list",
    "strict",
    "in_memory",
    "hold_exemplars",
    "device",
    "devices",
    "nodes",
    "accumulate",
    "compile",
    "threads",
    "checkpoint_every",
    "track",
}
"""Settings that must not decide whether a directory can be resumed."""


def test_the_settings_that_say_how() -> None:
    assert {*RunConfig.names(how=True)} == HOW


def test_a_new_setting_is_one_line(tmp_path: Path) -> None:
    """A field of a model is known to TOML files and to records; `tests/cli/test_flags.py` finds its flag."""

    class Patient(RunConfig):
        patience: int = setting(3, "epochs without progress", group="Training", ge=1)

    file = tmp_path / "run.toml"
    file.write_text("patience = 5")
    config = validated(Patient, read_toml(file))
    assert config.patience == 5
    assert config.what() == {**make_config({}).what(), "patience": 5}
    with pytest.raises(UserError, match=r"^patience: 0 does not fit: input should be greater than or equal to 1$"):
        validated(Patient, {"patience": 0})


def test_a_setting_with_an_alias_is_also_called_by_its_name() -> None:
    assert make_config({"validate": 0.1}) == make_config({"validation": 0.1})
    assert make_config({"imbalance": 0.1}) == make_config({"least": 0.1})
    assert make_config({"imbalance": 0.1}).what()["least"] == 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epoks": 3}, "epoks: no such setting; did you mean 'epochs'\\?"),
        ({"qqq": 3}, "qqq: no such setting; see `ssil run --help`"),
        ({"epochs": 0}, "epochs: 0 does not fit: input should be greater than or equal to 1"),
        ({"epochs": "many"}, "epochs: 'many' does not fit: input should be a valid integer, .*"),
        ({"profile": "slow"}, "profile: 'slow' does not fit: input should be 'paper', 'official' or 'quick'"),
        ({"lr": "high"}, "lr: 'high' does not fit: .*"),
        ({"validate": 1.0}, "validate: 1.0 does not fit: input should be less than 1"),
        ({"momentum": 1.0}, "momentum: 1.0 does not fit: input should be less than 1"),
        ({"seed": -1}, "seed: -1 does not fit: input should be greater than or equal to 0"),
        ({"task_sizes": [2, 0]}, "task_sizes: 0 does not fit: input should be greater than or equal to 1"),
        ({"memory": 10, "memory_per_class": 2}, "memory: give --memory .* --memory-per-class .*, not several"),
        ({"task_sizes": [2, 2], "large_base": True}, "task_sizes: give --task-sizes alone, or --tasks .*"),
        ({"task_sizes": [2, 2], "tasks": 2}, "task_sizes: give --task-sizes alone, or --tasks .*"),
        ({"lr": -1}, "lr: -1 does not fit: .*"),
        ({"epoch_scale": 0.2, "epochs": 20}, "epoch_scale: give --epoch-scale .* or --epochs, not both"),
        ({"epoch_scale": 0}, "epoch_scale: 0 does not fit: input should be greater than 0"),
        ({"epoch_scale": float("nan")}, "epoch_scale: nan does not fit: .*"),
        ({"decay": float("nan")}, "decay: nan does not fit: .*"),
        ({"checkpoint_every": "often"}, "checkpoint_every: 'often' is not a number of steps .*"),
    ],
)
def test_a_bad_setting_is_explained_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}$") as caught:
        make_config(settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("1", (1, None)),
        ("200", (200, None)),
        ("90s", (None, 90.0)),
        ("0.5s", (None, 0.5)),
        ("2m", (None, 120.0)),
        ("1.5min", (None, 90.0)),
        ("5 min", (None, 300.0)),
    ],
)
def test_checkpoint_interval(text: str, interval: tuple[int | None, float | None]) -> None:
    assert checkpoint_interval(text) == interval


@pytest.mark.parametrize("text", ["", "0", "-5", "1.5", "often", "5h", "5sm", "min", "-5s", "0min", "nans"])
def test_no_checkpoint_interval(text: str) -> None:
    with pytest.raises(ValueError, match=r"^checkpoint_every: .* is not a number of steps \(200\), 90s or 5min$"):
        checkpoint_interval(text)


def test_toml(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        'method = "ssil"\ntask_sizes = [5, 3, 2]\nlr = [0.1, 0.01]\nmilestones = [3]\n[options]\nmin_group = 3'
    )
    config = make_config(read_toml(file))
    assert (config.task_sizes, config.lr, config.options) == ((5, 3, 2), (0.1, 0.01), {"min_group": 3})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "config: .*run.toml can't be read \\(No such file or directory\\); check the path"),
        (b"epochs = ?", "config: .*run.toml is not valid TOML: .*line 1.*"),
        (b"\xff\xfe", "config: .*run.toml is not valid TOML: .*"),
        (b"a = " + b"[" * 50_000, "config: .*run.toml is not valid TOML: .*"),
        (b"tasks = " + b"9" * 5_000, "config: .*run.toml is not valid TOML: .*"),
    ],
)
def test_a_bad_file_is_explained_in_one_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "run.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=f"^{message}$"):
        read_toml(file)


def test_the_files_that_come_with_the_package_are_valid() -> None:
    files = sorted((Path(__file__).parents[2] / "configs").glob("*.toml"))
    assert files
    for file in files:
        make_config(read_toml(file))


def test_a_directory_whose_name_is_no_text_is_refused() -> None:
    with pytest.raises(UserError, match=r"^out: .* is no text in UTF-8, which records are; give another directory$"):
        make_config({"out": "caf\udce9"})
