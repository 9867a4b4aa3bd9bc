"""The paper's tables and figures from simulated runs."""

from pathlib import Path

import pytest

from simulated_evidence import WORLD, SimulatedEvidence
from ssil.reproduction.evidence import MissingError
from ssil.reproduction.paper_scenarios import Condition, setting
from ssil.reproduction.presets import find_preset
from ssil.reproduction.rows import LINES, TABLE_1
from ssil.reproduction.tables_and_figures import ITEMS, accuracy_table, cost_table, replay_table, settings_table


def _evidence(*lines: str) -> SimulatedEvidence:
    return SimulatedEvidence(Path(), find_preset("cifar100-full"), (0, 1), {line: WORLD[line] for line in lines})


def test_every_table_and_figure_of_the_paper_is_there_once() -> None:
    tables = {"table1", *(f"table-s{number}" for number in range(1, 6))}
    figures = {*(f"fig{number}" for number in range(1, 10)), *(f"fig-s{number}" for number in range(1, 7))}
    assert sorted(item.name for item in ITEMS) == sorted({*tables, *figures, "lead"})
    assert {need.line for item in ITEMS for need in item.needs} <= set(LINES)


def test_a_cell_is_ours_and_the_paper_s_and_the_best_of_ours_is_bold() -> None:
    table = accuracy_table(_evidence("SS-IL", "EEIL", "Joint"), ("EEIL", "SS-IL", "Joint"), [Condition()], 1)
    assert table.header == ["method", "T = 10, 400 in all"]
    assert table.rows[1] == ["SS-IL", "71.0 ± 0.0 / 64.5"]
    assert table.best == {(1, 1)}


def test_a_column_that_is_not_complete_has_no_best_and_missing_cells_are_dashes() -> None:
    table = accuracy_table(_evidence("SS-IL"), ("EEIL", "SS-IL"), setting(), 5)
    assert table.rows[0][2].startswith("- / ")
    assert not table.best
    with pytest.raises(MissingError):
        accuracy_table(_evidence(), ("EEIL", "SS-IL"), setting(), 5)


def test_a_preset_that_stands_for_no_data_set_of_the_paper_has_our_numbers_alone() -> None:
    evidence = SimulatedEvidence(Path(), find_preset("glyphs"), (0, 1), {"SS-IL": WORLD["SS-IL"]})
    rows = accuracy_table(evidence, ("EEIL", "SS-IL"), [Condition()], 1).rows
    assert rows == [["EEIL", "-"], ["SS-IL", "71.0 ± 0.0"]]


def test_likely_misprints_are_marked() -> None:
    rows = replay_table(_evidence()).rows
    assert [row[0] for row in rows] == ["16", "32", "64"]
    assert [cell.endswith("?") for cell in (rows[0][3], rows[1][3], rows[2][3])] == [True, False, True]


def test_settings_are_those_of_the_profile_paper() -> None:
    table = settings_table(TABLE_1)
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert (rows["FT"]["epochs"], rows["FT"]["later"], rows["SS-IL"]["milestones"]) == ("100", "25", "40 80")
    assert rows["SS-IL"]["then"] == "-"


@pytest.mark.parametrize("name", ["fig2", "fig5", "fig6", "fig-s4", "lead"])
def test_without_runs_a_figure_is_missing(name: str) -> None:
    (item,) = (item for item in ITEMS if item.name == name)
    with pytest.raises(MissingError):
        item.figures(_evidence())


def test_the_costs_of_a_table() -> None:
    table = cost_table(_evidence("SS-IL"), ("EEIL", "SS-IL"), [Condition(), Condition(20)])
    row = ["SS-IL", "1,000", "-", "5"]  # ten tasks; these records don't count gradient steps
    assert table.rows == [[column, *row] for column in ("base-fixed-t10-4", "base-fixed-t20-4")]
    assert not cost_table(_evidence("Joint"), ("SS-IL", "Joint"), [Condition()]).rows
