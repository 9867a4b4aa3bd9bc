"""The runs that lines need, and where their records are found."""

import re
from pathlib import Path

import pytest

from simulated_evidence import Facts, SimulatedEvidence
from ssil.benchmark.record import Record, write_record
from ssil.reproduction.evidence import Evidence, MissingError, Need, cells
from ssil.reproduction.paper_claims import CLAIMS
from ssil.reproduction.paper_scenarios import Condition, setting
from ssil.reproduction.presets import find_preset
from ssil.reproduction.rows import LINES


def test_runs_that_several_lines_share_are_run_once() -> None:
    needed = cells(find_preset("glyphs"), [need for claim in CLAIMS for need in claim.needs], range(2))
    assert len({cell.folder for cell in needed}) == len(needed)
    assert {cell.row for cell in needed} <= {line.row for line in LINES.values()}


def test_joint_training_needs_one_run_for_all_memories(tmp_path: Path) -> None:
    preset, table = find_preset("glyphs"), setting() + setting(growing=True)
    found = cells(preset, [Need(condition, "Joint") for condition in table], [0])
    assert [cell.settings["tasks"] for cell in found] == [10, 20, 5]
    for condition, cell in zip(table, [found[0]] * 3 + found[1:] + [found[0]] * 3 + found[1:], strict=True):
        with pytest.raises(MissingError, match=re.escape(str(cell.folder))):
            Evidence(tmp_path, preset, (0,)).runs(condition, "Joint")


def test_evidence_is_found_where_the_cells_put_it(tmp_path: Path) -> None:
    preset = find_preset("glyphs")
    folder = tmp_path / preset.cell(Condition(), "ft", 0).folder / "il2m"
    folder.mkdir(parents=True)
    evidence = Evidence(tmp_path, preset, (0,))
    assert not evidence.has(Condition(), "IL2M")
    config = {"method": "ft", "dataset": "glyphs", "seed": 0, "options": {}, "memory": {"kind": "nothing"}}
    write_record(folder, Record(config=config, provenance={}, class_order=[], class_names=[], task_sizes=[1]))
    with pytest.raises(MissingError):  # it is not finished
        Evidence(tmp_path, preset, (0,)).runs(Condition(), "IL2M")


def test_joint_training_alone_makes_no_column() -> None:
    lines = ("SS-IL", "Joint")
    for there, expected in ((("Joint",), False), (lines, True)):
        evidence = SimulatedEvidence(Path(), find_preset("glyphs"), (0,), {line: Facts() for line in there})
        assert evidence.has_any(Condition(), lines) is expected
