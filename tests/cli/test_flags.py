"""From a command line to a configuration."""

import re
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App

from ssil.benchmark.config import RunConfig, by_field_name, make_config, to_flags
from ssil.cli import app
from ssil.cli.flags import GROUPS, parsed, with_flags
from ssil.core.settings import setting
from ssil.reproduction.paper_scenarios import find


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[RunConfig]:
    """The configurations that commands would have run."""
    seen: list[RunConfig] = []
    monkeypatch.setattr("ssil.cli.run_display.run_and_show", lambda config, json: seen.append(config))
    return seen


EVERY_FLAG: dict[str, tuple[str, Any]] = {
    "--dataset": ("digits", "digits"),
    "--classes": ("8", 8),
    "--train-per-class": ("7", 7),
    "--test-per-class": ("6", 6),
    "--image-size": ("16", 16),
    "--validate": ("0.1", 0.1),
    "--tasks": ("4", 4),
    "--task-sizes": ("4,3,1", (4, 3, 1)),
    "--class-order": ("5", 5),
    "--stream": ("blurry:10", "blurry:10"),
    "--memory": ("100", 100),
    "--memory-per-class": ("3", 3),
    "--memory-mb": ("23.5", 23.5),
    "--selection": ("herding", "herding"),
    "--method": ("ft", "ft"),
    "--profile": ("quick", "quick"),
    "--epoch-scale": ("0.2", 0.2),
    "--epochs": ("9", 9),
    "--later-epochs": ("5", 5),
    "--lr": ("0.1,0.03,0.01", (0.1, 0.03, 0.01)),
    "--milestones": ("4,7", (4, 7)),
    "--decay": ("0.2", 0.2),
    "--batch": ("32", 32),
    "--momentum": ("0.8", 0.8),
    "--weight-decay": ("5e-4", 5e-4),
    "--new-head-init": ("zero", "zero"),
    "--later-milestones": ("3,4", (3, 4)),
    "--later-weight-decay": ("2e-4", 2e-4),
    "--optimizer": ("adamw", "adamw"),
    "--backbone": ("resnet20", "resnet20"),
    "--norm": ("group", "group"),
    "--init": ("resnet18.safetensors", "resnet18.safetensors"),
    "--seed": ("2", 2),
    "--precision": ("64-true", "64-true"),
    "--out": ("runs/a", Path("runs/a")),
    "--name": ("mine", "mine"),
    "--stream-name": ("small", "small"),
    "--data-root": ("data", Path("data")),
    "--class-list": ("animals.txt", Path("animals.txt")),
    "--min-per-class": ("2", 2),
    "--max-per-class": ("9", 9),
    "--augment": ("crop", "crop"),
    "--brightness": ("0.25", 0.25),
    "--branch": ("ce_tkd", "ce_tkd"),
    "--imbalance": ("0.5", 0.5),
    "--split-seed": ("4", 4),
    "--hold-exemplars": ("decoded", "decoded"),
    "--device": ("cpu", "cpu"),
    "--devices": ("2", 2),
    "--nodes": ("3", 3),
    "--accumulate": ("4", 4),
    "--threads": ("1", 1),
    "--checkpoint-every": ("90s", "90s"),
    "--track": ("mlflow", "mlflow"),
}


SWITCHES = {"compile", "freeze", "large_base", "lr_by_task", "strict", "in_memory"}


def test_there_is_a_flag_for_every_field() -> None:
    named = {flag.lstrip("-").replace("-", "_") for flag in EVERY_FLAG}
    aliases = {field.alias or name for name, field in RunConfig.model_fields.items()}
    assert named == aliases - SWITCHES - {"options", *RunConfig.names(hidden=True)}


@pytest.mark.parametrize("flag", EVERY_FLAG)
def test_a_flag_sets_its_field(flag: str, resolved: list[RunConfig]) -> None:
    text, value = EVERY_FLAG[flag]
    app(["run", flag, text])
    (field,) = by_field_name({flag.lstrip("-").replace("-", "_"): value})
    assert getattr(resolved[0], field) == value
    assert type(getattr(resolved[0], field)) is type(value)
    assert resolved[0].model_fields_set == {field}


def test_a_new_setting_is_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """One line in a model: `tests/benchmark/test_config.py` finds it in files and records."""

    class Patient(RunConfig):
        patience: int = setting(3, "epochs without progress", group="Training", ge=1)

    seen: list[dict[str, Any]] = []
    command = App(name="try", result_action="return_value", help_format="plaintext")

    @command.default
    @with_flags(Patient)
    def run(**flags: Any) -> None:
        seen.append(parsed(Patient, flags))

    command(["--patience", "5"])
    assert seen == [{"patience": "5"}]
    command(["--help"])
    training = capsys.readouterr().out.partition("Training")[2].partition("How")[0]
    assert re.search(r"--patience N +epochs without progress \[default: 3\]", training)


def test_every_flag_belongs_to_a_group_of_the_help() -> None:
    assert {RunConfig.properties(name)["group"] for name in RunConfig.model_fields} == set(GROUPS)


@pytest.mark.parametrize("flag", ["--least", "--imbalance"])
def test_the_old_name_of_a_flag_is_understood_but_not_listed(
    flag: str, resolved: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    app(["run", flag, "0.5"])
    assert resolved[0].least == 0.5
    app(["run", "--help"])
    assert (flag in capsys.readouterr().out) == (flag == "--imbalance")


def test_switches_options_and_a_single_rate(resolved: list[RunConfig]) -> None:
    app(
        ["run", "--large-base", "--no-lr-by-task", "--lr", "0.5", "--option", "temperature=4", "--option", "distil=gkd"]
    )
    assert (resolved[0].large_base, resolved[0].lr_by_task) == (True, False)
    assert resolved[0].lr == 0.5
    assert resolved[0].options == {"temperature": 4, "distil": "gkd"}


def test_flags_override_the_file(tmp_path: Path, resolved: list[RunConfig]) -> None:
    file = tmp_path / "a.toml"
    file.write_text("tasks = 5\nseed = 3\nvalidate = 0.2\nmemory = 99\n[options]\ntemperature = 2\nmin_group = 3\n")
    app(["run", str(file), "--tasks", "4", "--validate", "0.1", "--memory-per-class", "7", "--option", "temperature=9"])
    config = resolved[0]
    assert (config.tasks, config.seed, config.validation) == (4, 3, 0.1)
    assert (config.memory, config.memory_per_class) == (None, 7)
    assert config.options == {"temperature": 9, "min_group": 3}


@pytest.mark.parametrize("key", ["32", "imagenet-largebase-fixed-t10-10k"])
def test_scenario(key: str, resolved: list[RunConfig]) -> None:
    app(["run", "--scenario", key, "--dataset", "elsewhere"])
    config, scenario = resolved[0], find(key)
    assert config.dataset == "elsewhere"
    for name in ("classes", "tasks", "large_base", "memory", "memory_per_class"):
        assert getattr(config, name) == getattr(scenario, name)


def test_scenario_in_a_file_gives_way_to_all_else(tmp_path: Path, resolved: list[RunConfig]) -> None:
    file = tmp_path / "a.toml"
    file.write_text('scenario = 1\nmemory_per_class = 3\ndataset = "digits"\n')
    app(["run", str(file), "--task-sizes", "5,5"])
    config = resolved[0]
    assert (config.dataset, config.memory, config.memory_per_class) == ("digits", None, 3)
    assert (config.task_sizes, config.large_base) == ((5, 5), False)


def test_flags_say_what_the_settings_say(resolved: list[RunConfig]) -> None:
    """What a grid types for a run is read back as it was meant."""
    settings = {
        "dataset": "digits",
        "validation": 0.2,
        "task_sizes": (5, 3, 2),
        "lr": (0.1, 0.01),
        "milestones": (3,),
        "lr_by_task": True,
        "in_memory": False,
        "options": {"kd_tau_sq": True, "batches": "mixed", "temperature": 2.5},
        "class_order": 3,
        "seed": 4,
    }
    one_stretch = {"lr": (0.1,), "milestones": (), "options": {"list": [1, 2], "text": "3", "quoted": 'a "b"'}}
    app(["run", *to_flags(settings)])
    app(["run", *to_flags(one_stretch)])
    assert resolved == [make_config(settings), make_config(one_stretch)]
