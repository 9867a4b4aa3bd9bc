"""Runs are found on disk, and put together where only chance tells them apart."""

from pathlib import Path

import pytest

from ssil.benchmark.record import Record, read_record, write_record
from ssil.benchmark.results import find_runs, variants
from ssil.core.errors import UserError


def _run(folder: Path, seed: int = 0, method: str = "ssil", batches: str = "replay", total: int = 9) -> None:
    config = {"method": method, "dataset": "digits", "seed": seed, "options": {"batches": batches}}
    record = Record(
        config=config | {"memory": {"kind": "fixed", "total": total}},
        provenance={},
        class_order=[0],
        class_names=["a"],
        task_sizes=[1],
    )
    folder.mkdir(parents=True)
    write_record(folder, record)


def _names(path: Path) -> dict[str, list[str]]:
    return {name: [run.folder.name for run in runs] for name, runs in variants(find_runs([path])).items()}


def test_runs_that_differ_in_seed_alone_are_one_variant(tmp_path: Path) -> None:
    _run(tmp_path / "a", 0)
    _run(tmp_path / "b", 1)
    _run(tmp_path / "b" / "il2m", 1, method="il2m")
    assert _names(tmp_path) == {"ssil": ["a", "b"], "il2m": ["il2m"]}


def test_a_variant_is_named_by_what_tells_it_from_others_of_its_method(tmp_path: Path) -> None:
    _run(tmp_path / "a", batches="replay")
    _run(tmp_path / "b", batches="mixed")
    _run(tmp_path / "c", batches="mixed", total=18)
    _run(tmp_path / "d", method="my/file.py:ft", batches="mixed")
    assert list(_names(tmp_path)) == [
        "ssil, batches replay, 9 exemplars",
        "ssil, batches mixed, 9 exemplars",
        "ssil, batches mixed, 18 exemplars",
        "ft",
    ]


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no record\.json"):
        find_runs([tmp_path])


def test_no_run_is_lost_where_two_variants_have_one_name(tmp_path: Path) -> None:
    _run(tmp_path / "a", method="a.py:mine")
    _run(tmp_path / "b", method="b.py:mine")
    assert _names(tmp_path) == {"mine": ["a"], "mine #2": ["b"]}


def test_an_option_that_did_not_exist_has_its_default(tmp_path: Path) -> None:
    _run(tmp_path / "a", method="ce", batches="replay")
    record = read_record(tmp_path / "a")
    old = record.model_copy(update={"config": record.config | {"seed": 1, "options": {}}})
    (tmp_path / "b").mkdir()
    write_record(tmp_path / "b", old)
    assert _names(tmp_path) == {"ce": ["a", "b"]}


def test_a_run_is_called_by_its_name(tmp_path: Path) -> None:
    for seed in (0, 1):
        _run(tmp_path / f"mine-{seed}", seed)
        record = read_record(tmp_path / f"mine-{seed}")
        write_record(tmp_path / f"mine-{seed}", record.model_copy(update={"provenance": {"name": "mine"}}))
    _run(tmp_path / "ssil-0")
    assert _names(tmp_path) == {"mine": ["mine-0", "mine-1"], "ssil": ["ssil-0"]}
