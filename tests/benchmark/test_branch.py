"""A branch learns each task from the chain's last model and is dropped: the same biased teacher of Fig. 9."""

from pathlib import Path
from typing import Any

import pytest

import tiny_runs
from followed_methods import IMAGES, SETTINGS
from ssil.benchmark.record import read_record
from ssil.benchmark.runner import RunObserver, run
from ssil.core.errors import UserError


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("branch") / "patterns.npz", IMAGES)


def branched(dataset: Path, out: Path, branch: str | None, observer: RunObserver | None = None, **more: Any) -> Path:
    run(tiny_runs.config(dataset, **SETTINGS | more, method="ce_gkd", branch=branch, out=out), observer)
    return out


@pytest.fixture(scope="module")
def undisturbed(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return branched(dataset, tmp_path_factory.mktemp("undisturbed"), "ce_tkd")


def results(folder: Path) -> dict[str, Any]:
    """All but the settings, which differ by the branch's and the chain's names."""
    return {name: value for name, value in tiny_runs.timeless(read_record(folder)).items() if name != "config"}


def test_a_branch_of_the_chains_own_method_is_the_chain(dataset: Path, tmp_path: Path) -> None:
    out = branched(dataset, tmp_path, "ce_gkd")
    assert results(out / "ce_gkd") == results(out)


def test_the_chain_does_not_notice_its_branch(undisturbed: Path, dataset: Path, tmp_path: Path) -> None:
    assert results(branched(dataset, tmp_path, None)) == results(undisturbed)


def test_a_branch_differs_from_the_chain_where_the_losses_do(undisturbed: Path) -> None:
    """Of one old task both distillations are the same."""
    chain, branch = (read_record(folder).tasks for folder in (undisturbed, undisturbed / "ce_tkd"))
    same = [a.loss["main"]["kd"] == b.loss["main"]["kd"] for a, b in zip(chain[1:], branch[1:], strict=True)]
    assert same == [True, False]
    assert [a.teacher_ratio for a in chain] == [b.teacher_ratio for b in branch]


def test_a_branch_says_what_it_is(undisturbed: Path) -> None:
    record = read_record(undisturbed / "ce_tkd")
    assert record.label == "ce_tkd (from ce_gkd)"
    assert record.config["options"]["batches"] == "mixed"
    assert "branch" not in record.config


@pytest.mark.parametrize("steps", [3, 12, 17, 22, 28])
def test_a_stopped_run_goes_on_to_the_same_end(steps: int, undisturbed: Path, dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        branched(dataset, tmp_path, "ce_tkd", tiny_runs.Stopper(steps))
    out = branched(dataset, tmp_path, "ce_tkd")
    for folder in ("", "ce_tkd"):
        assert tiny_runs.timeless(read_record(out / folder)) == tiny_runs.timeless(read_record(undisturbed / folder))


def test_another_branch_is_another_run(undisturbed: Path, dataset: Path) -> None:
    with pytest.raises(UserError, match="holds a run with other settings"):
        branched(dataset, undisturbed, "ce")


@pytest.mark.parametrize(
    ("branch", "reason"),
    [
        ("lucir", "another kind of head"),
        ("bic", "another kind of scorer"),
        ("il2m", "kind of scorer"),
        ("der", "another kind of network"),
        ("ce_tdk", "did you mean 'ce_tkd'"),
    ],
)
def test_what_cant_branch_is_refused(branch: str, reason: str, dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        branched(dataset, tmp_path / "none", branch)
    assert not (tmp_path / "none").exists()
