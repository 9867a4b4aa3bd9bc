"""A card lists the settings of a run, and where they differ from the paper's."""

from pathlib import Path

from report_runs import TRAINING, run
from ssil.benchmark.results import Run
from ssil.learning.registry import configure
from ssil.reporting.protocol_card import card, departures, deviations


def test_what_a_card_says() -> None:
    found = card(run("ft", seed=3, folder="runs/mine"))
    assert found["folder"] == ["runs/mine"]
    assert found["method"][1].startswith("FT: fine-tuning")
    assert found["state"] == ["finished"]
    assert found["stream"] == ["6 classes in 3 tasks: 2 each"]
    assert found["class order"] == ["task 1: class 0, class 1", "task 2: class 2, class 3", "task 3: class 4, class 5"]
    assert found["memory"] == ["12 exemplars, chosen at random, 0.00 MB as raw pixels"]
    assert found["schedule"][0].startswith(
        "8 epochs a task; rate 0.1, 0.03, 0.01, changed before epochs 4, 7; batch 128"
    )
    assert found["seed"] == ["3"]
    assert found["versions"] == ["ssil 0.1.0, torch 2.13"]
    assert found["command"] == ["ssil run --method ft"]


def test_an_unfinished_run_and_many_classes() -> None:
    found = card(run("ft", (), sizes=(100, 1)))
    assert found["state"] == ["0 of 2 tasks done"]
    assert found["class order"] == [
        "task 1: class 0, class 1, class 2, class 3, class 4 and 95 more",
        "task 2: class 100",
    ]


def test_deviations_are_the_settings_that_the_paper_has_otherwise() -> None:
    options = configure("ssil").options | {"kd_tau_sq": True}
    record = run("ssil", options=options, backbone="resnet14", dataset="imagenet").record
    assert deviations(record) == [
        "backbone resnet14 (paper: resnet18)",
        "epochs 8 (paper: 100)",
        "lr 0.1, 0.03, 0.01 (paper: 0.1)",
        "milestones 4, 7 (paper: 40, 80)",
        "kd_tau_sq True (paper: False)",
    ]


def test_uneven_data_and_weights_from_elsewhere_are_deviations() -> None:
    record = run("ft", dataset="imagenet", least=0.2, freeze=True, validation=0.1, options={}).record
    record.provenance["init"] = "first.safetensors"
    found = deviations(record)
    for line in ("least 0.2 (paper: none)", "init first.safetensors (paper: none)", "freeze True (paper: none)"):
        assert line in found
    assert "validation 0.1 (paper: 0)" in found
    lines = card(Run(Path(), record))
    assert "least 0.2" in lines["data"]
    assert lines["network"] == ["backbone resnet18, init first.safetensors, freeze True"]


def test_the_paper_has_no_deviation_from_itself() -> None:
    training = TRAINING | {"epochs": 100, "lr": 0.1, "milestones": [40, 80]}
    record = run("ssil", training=training, options=configure("ssil").options, dataset="imagenet").record
    assert deviations(record) == []


def test_an_option_that_came_later_has_its_default() -> None:
    assert not any("ft_head" in line for line in deviations(run("ft", options={}).record))


def test_code_that_a_record_names_is_not_loaded() -> None:
    found = card(run("nowhere/mine.py:mine"))
    assert found["deviations from the paper"][-1].startswith("The method is none of this package")


def test_departures_are_those_of_the_docstring() -> None:
    (found,) = departures("ssil")
    assert found.startswith("min_group: A departure from the paper. A softmax over a single class")
    assert found.endswith("share one softmax.")
    assert departures("ft") == departures("a.py:b") == []
