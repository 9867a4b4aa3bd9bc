from collections.abc import Mapping
from typing import Any

import pytest

from ssil.benchmark.scenario import chosen_order, chosen_sizes
from ssil.core.classes import ClassTable
from ssil.learning.method import Phase
from ssil.learning.registry import configure, recipes
from ssil.reproduction.field_protocols import OWN, PROTOCOLS, deviations, find_protocol, protocol_config

SIZES = {
    "cifar100-b0-5": (5,) * 20,
    "cifar100-b0-10": (10,) * 10,
    "cifar100-b0-20": (20,) * 5,
    "cifar100-b50-10": (50, *[10] * 5),
    "imagenet100-b0-10": (10,) * 10,
}
FIRST = [68, 56, 78, 8, 23, 84, 90, 65, 74, 76]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_stream_memory_and_augmentation(name: str) -> None:
    config = protocol_config(find_protocol(name), {"method": "wa"})
    assert chosen_sizes(config, 100) == SIZES[name]
    assert chosen_order(config, [f"c{label}" for label in range(100)], seed=3)[:10] == FIRST
    assert (config.memory, config.selection, config.brightness) == (2000, "herding", 63 / 255)
    assert config.backbone == ("resnet32" if name.startswith("cifar") else "resnet18")
    assert deviations(find_protocol(name), config) == []


@pytest.mark.parametrize(
    ("method", "lengths", "milestones", "options"),
    [
        ("icarl", [200, 170], [(60, 120, 170), (80, 120)], {"distillation": "gkd", "kd_tau_sq": False}),
        ("ft", [200, 70], [(60, 120, 170), (30, 50)], {}),
        ("wa", [200, 170], [(60, 120, 170), (60, 100, 140)], {"weight_clipping": False}),
        ("bic", [170, 170, 170], [(60, 100, 140), (60, 100, 140)], {"bias_lr": 0.1, "bias_momentum": 0.9}),
        ("podnet", [160, 160, 20], [(), ()], {"spatial": 5.0, "flat": 1.0}),
    ],
)
def test_methods_have_pycils_settings(
    method: str, lengths: list[int], milestones: list[tuple[int, ...]], options: Mapping[str, Any]
) -> None:
    """The epochs of the first task and of each phase of a later one."""
    config = protocol_config(find_protocol("cifar100-b0-10"), {"method": method})
    configured = configure(method, config.profile, config.training, config.options)
    parts = configured.method.plan(ClassTable(("?",) * 20, (0, 10, 20)))
    first, later = configured.training.schedule(1), configured.training.schedule(2)
    assert [first.epochs, *(part.schedule.epochs for part in parts if isinstance(part, Phase))] == lengths
    assert [first.milestones, later.milestones] == milestones
    assert configured.options.items() >= options.items()


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"later_milestones": (10, 20)}, ["later_milestones (10, 20) (protocol: (80, 120))"]),
        ({"options": {"loss": "bce"}}, ["loss bce (protocol: its default)"]),
        ({"options": {"distillation": "tkd"}}, ["distillation tkd (protocol: gkd)"]),
        ({"later_epochs": 17}, ["200 of 200 epochs, 17 of 170 in tasks after the first"]),
        ({"epoch_scale": 0.1}, ["20 of 200 epochs, 17 of 170 in tasks after the first"]),
        ({"precision": "bf16-mixed", "seed": 5}, []),
    ],
)
def test_what_differs_from_a_protocol_is_said(given: Mapping[str, Any], lines: list[str]) -> None:
    protocol = find_protocol("cifar100-b0-10")
    assert deviations(protocol, protocol_config(protocol, {"method": "icarl", **given})) == lines


@pytest.mark.parametrize("method", [name for name in recipes() if name not in OWN])
def test_the_schedule_is_the_surveys_whatever_the_method(method: str) -> None:
    config = protocol_config(find_protocol("cifar100-b0-10"), {"method": method})
    training = configure(method, config.profile, config.training, config.options).training
    first, later = training.schedule(1), training.schedule(2)
    assert (first.epochs, first.milestones, first.weight_decay) == (200, (60, 120, 170), 5e-4)
    assert (later.epochs, later.milestones, later.weight_decay) == (170, (80, 120), 2e-4)
    assert first.lr == pytest.approx((0.1, 0.01, 0.001, 0.0001))
    assert later.lr == pytest.approx((0.1, 0.01, 0.001))
    assert training.batch == 128


@pytest.mark.parametrize(
    ("given", "epochs"),
    [({}, [160, 20]), ({"epoch_scale": 0.1}, [16, 2]), ({"epochs": 80}, [80, 10]), ({"later_epochs": 8}, [8, 20])],
)
def test_podnet_has_a_schedule_of_its_own(given: dict[str, object], epochs: list[int]) -> None:
    config = protocol_config(find_protocol("cifar100-b0-10"), {"method": "podnet", **given})
    configured = configure("podnet", config.profile, config.training, config.options)
    parts = configured.method.plan(ClassTable(("?",) * 20, (0, 10, 20)))
    schedules = [part.schedule for part in parts if isinstance(part, Phase)]
    assert [schedule.epochs for schedule in schedules] == epochs
    assert {schedule.weight_decay for schedule in schedules} == {5e-4}


@pytest.mark.parametrize(("method", "epochs"), [("der", [170]), ("memo", [170]), ("foster", [170, 130])])
def test_networks_that_grow_have_pycils_schedules(method: str, epochs: list[int]) -> None:
    config = protocol_config(find_protocol("cifar100-b0-10"), {"method": method})
    configured = configure(method, config.profile, config.training, config.options)
    parts = configured.method.plan(ClassTable(("?",) * 20, (0, 10, 20)))
    first, *later = [part.schedule for part in parts if isinstance(part, Phase)]
    assert [schedule.epochs for schedule in (first, *later)] == epochs
    if method == "foster":
        assert [first.weight_decay, later[0].weight_decay] == [5e-4, 0.0]
        assert first.lr_at(85) == pytest.approx(0.05)
    else:
        assert (first.milestones, first.weight_decay) == ((80, 120, 150), 2e-4)


def test_an_option_of_the_user_stands_over_the_protocols() -> None:
    given = {"method": "podnet", "options": {"balanced_epochs": 3}}
    config = protocol_config(find_protocol("cifar100-b0-10"), given)
    assert config.options == {"spatial": 5.0, "flat": 1.0, "balanced_epochs": 3, "balanced_lr": 0.005}


def test_every_published_number_has_a_source_and_lies_in_its_band() -> None:
    bands = [band for protocol in PROTOCOLS.values() for band in protocol.published]
    assert len(bands) == 11
    for band in bands:
        assert band.source
        assert band.survey is None or band.low <= band.survey[0] <= band.high
