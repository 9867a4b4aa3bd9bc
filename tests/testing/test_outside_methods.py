"""Methods in files outside the package, written with the documentation alone, meet the contract."""

from pathlib import Path

import pytest

import oracles
from ssil.cli import main
from ssil.testing import CheckOutcome, check_method

FOLDER = Path(oracles.__file__).parent / "outside"
NAMES = ("random_projection", "dark_replay", "expanding", "two_optimizers")
NOT_APPLICABLE = {
    "random_projection": {
        "loss_terms_are_finite_and_have_a_gradient",
        "replay_batches_keep_their_ratio",
        "one_seed_gives_the_same_start",
    },
    "dark_replay": set[str](),
    "expanding": {"replay_batches_keep_their_ratio"},
    "two_optimizers": {"replay_batches_keep_their_ratio"},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_method_from_outside_meets_the_contract(name: str) -> None:
    results = check_method(f"{FOLDER / name}.py:{name}")
    skipped = {result.name for result in results if result.outcome is CheckOutcome.NOT_APPLICABLE}
    assert skipped == NOT_APPLICABLE[name]
    assert {result.outcome for result in results if result.name not in skipped} == {CheckOutcome.PASSED}


@pytest.mark.parametrize("name", NAMES)
def test_it_is_described(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["methods", f"{FOLDER / name}.py:{name}"])
    shown = " ".join(capsys.readouterr().out.split())
    assert ("no training" in shown) == (name == "random_projection")
    assert ("a network that grows" in shown) == (name == "expanding")
    assert ("values stored with exemplars" in shown) == (name == "dark_replay")
