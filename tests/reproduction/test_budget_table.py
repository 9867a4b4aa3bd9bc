"""The budgets of presets keep the proportions of Table S1."""

from dataclasses import replace

import pytest

from ssil.reproduction.budget_table import budget_table, paper_share, share
from ssil.reproduction.paper_scenarios import Condition, setting
from ssil.reproduction.presets import FOLDER, Preset, find_preset
from ssil.reproduction.rows import LINES, TABLE_1

ALL = [find_preset(file.stem) for file in sorted(FOLDER.glob("*.toml"))]
SCALED = {preset.name: preset for preset in ALL if "epoch_scale" in preset.settings}
ROWS = list(dict.fromkeys(LINES[line].row for line in TABLE_1))


def departures(preset: Preset, condition: Condition) -> dict[str, float]:
    """Of each row, its share of SS-IL's images by that in Table S1."""
    return {row: share(preset, condition, row) / (paper_share(preset, condition, row) or 1) for row in ROWS}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("condition", setting(), ids=str)
def test_budgets_are_proportional_to_table_s1(name: str, condition: Condition) -> None:
    assert departures(SCALED[name], condition) == pytest.approx(dict.fromkeys(ROWS, 1), rel=0.1)


def test_a_preset_of_other_proportions_is_found_out() -> None:
    fair = SCALED["cifar100-full"]
    schedule = {"dataset": "cifar100", "epochs": 60, "later_epochs": 8}
    whole_phase = {"eeil": {"options": {"balanced_epochs": 30}}}
    assert departures(replace(fair, settings=schedule, rows=whole_phase), Condition())["eeil"] > 2
    tripled = replace(fair, rows={"eeil": {"epoch_scale": 0.36}})
    assert departures(tripled, Condition())["eeil"] == pytest.approx(3, rel=0.1)


def test_the_table() -> None:
    preset = SCALED["cifar100-full"]
    found = budget_table(preset, [(Condition(), row) for row in ("ssil", "ft", "eeil", "joint")], 1e-3)
    rows = {row[1]: row for row in found.rows}
    # 5,000 images a task: 156 batches of 32, with 8 exemplars in each from the second task on, 12 epochs, 10 tasks.
    assert rows["SS-IL"][2:5] == ["12", f"{12 * 156 * (32 + 9 * 40):,}", f"{12 * 156 * 10:,}"]
    assert rows["SS-IL"][5] == f"{12 * 156 * (32 * 3 + 9 * 40 * 4) / 1000:,.0f} s"
    assert (rows["FT"][2], rows["EEIL"][2], rows["Joint"][-1]) == ("12, then 3", "5 + 4", "-")
    assert [row[5] for row in budget_table(preset, [(Condition(), "ft")], None).rows] == ["-"]
