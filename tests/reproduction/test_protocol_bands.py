"""A run that follows a protocol of published tables to the letter is compared with what was published for it."""

from typing import Any

import pytest

from report_runs import record
from ssil.benchmark.record import Record
from ssil.benchmark.run_setup import expected_record
from ssil.reproduction.field_protocols import PROTOCOLS, find_protocol, protocol_config
from ssil.reproduction.protocol_bands import protocol_of, published_band


def recorded(protocol: str, **given: Any) -> Record:
    """The record that a run by a protocol begins with, for a data set of 100 classes."""
    config = protocol_config(find_protocol(protocol), given)
    return expected_record(config, record(top1=(), sizes=(1,) * 100))[1]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_run_is_known_by_its_settings(name: str) -> None:
    found = protocol_of(recorded(name, method="icarl", seed=3))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "changed",
    [
        {"epoch_scale": 0.1},
        {"memory": 500},
        {"class_order": 1993},
        {"backbone": "resnet14"},
        {"options": {"loss": "bce"}},
    ],
)
def test_a_changed_run_follows_none(changed: dict[str, Any]) -> None:
    assert protocol_of(recorded("cifar100-b0-10", method="icarl", **changed)) is None


def test_precision_is_left_to_the_user() -> None:
    assert protocol_of(recorded("cifar100-b0-10", method="icarl", precision="bf16-mixed")) is not None


def test_the_band_of_a_method_names_its_sources() -> None:
    band = published_band(recorded("cifar100-b0-10", method="icarl"))
    assert band is not None
    assert (band.low, band.high) == (60.0, 65.5)
    assert band.text == (
        "published averages of icarl with cifar100-b0-10: 60 to 65.5 in several tables, 64.4 and 49.5 at the end in "
        "arXiv 2302.03648"
    )


def test_fine_tuning_with_exemplars_is_called_replay() -> None:
    band = published_band(recorded("cifar100-b0-10", method="ft"))
    assert band is not None
    assert band.text.startswith("published averages of replay ")


@pytest.mark.parametrize(
    ("protocol", "method"), [("cifar100-b0-10", "ssil"), ("cifar100-b0-5", "icarl")], ids=["no row", "no table"]
)
def test_there_is_no_band_without_published_accuracies(protocol: str, method: str) -> None:
    assert published_band(recorded(protocol, method=method)) is None


def test_other_scorers_and_lost_methods_have_none() -> None:
    icarl = recorded("cifar100-b0-10", method="icarl")
    assert published_band(icarl.model_copy(update={"config": icarl.config | {"scorer": "cnn"}})) is None
    assert published_band(icarl.model_copy(update={"config": icarl.config | {"method": "gone.py:mine"}})) is None
