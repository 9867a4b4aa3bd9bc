"""The paper's conditions become runs on any data."""

from dataclasses import replace
from pathlib import Path

import pytest

from ssil.core.errors import UserError
from ssil.reproduction.paper_scenarios import ALL, HIGH, LOW, Condition, scenarios
from ssil.reproduction.presets import FOLDER, find_preset
from ssil.reproduction.rows import ROWS

PRESETS = sorted(file.stem for file in FOLDER.glob("*.toml"))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("row", ROWS)
def test_every_row_is_a_valid_run_on_every_preset(name: str, row: str) -> None:
    _, settings = find_preset(name).cell(Condition(), row, 0).described()
    assert settings["method"] == ROWS[row]["method"].partition(",")[0]


@pytest.mark.parametrize("name", ["imagenet", "landmark-v2-1k", "landmark-v2-10k"])
def test_the_paper_s_own_presets_are_its_scenarios(name: str) -> None:
    preset = find_preset(name)
    wanted = [scenario for scenario in scenarios() if scenario.dataset == name]
    found = [preset.cell(condition, "ssil", 0).settings for condition in ALL]
    for key in ("tasks", "memory", "memory_per_class"):
        assert [settings.get(key) for settings in found] == [getattr(scenario, key) for scenario in wanted]
    assert [settings.get("large_base", False) for settings in found] == [scenario.large_base for scenario in wanted]


def test_a_memory_is_stated_per_class() -> None:
    preset = find_preset("glyphs")
    assert preset.cell(Condition(level=LOW), "ssil", 0).settings["memory"] == 50
    growing = preset.cell(Condition(level=HIGH, growing=True), "ssil", 2)
    assert (growing.settings["memory_per_class"], "memory" in growing.settings) == (4, False)
    assert growing.folder == Path("glyphs/base-growing-t10-4/ssil-2")


def test_a_preset_of_one_s_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "mine"\nclasses = 10\nexemplars = [1, 2, 3]\n[settings]\ndataset = "digits"\n')
    assert find_preset(str(file)).cell(Condition(), "ft", 0).settings["memory"] == 20
    with pytest.raises(UserError, match=r"there are .*glyphs"):
        find_preset("glyph")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('title = "mine"\n', "needs title, classes, exemplars"),
        ('title = "mine"\nclasses = "40"\nexemplars = [1, 2, 3]\n[settings]\n', "needs title, classes, exemplars"),
        ('title = "mine"\nclasses = 4\nexemplars = [1, 2, "3"]\n[settings]\n', "needs title, classes, exemplars"),
        (
            'title = "mine"\nclasses = 4\nexemplars = [1, 2, 3]\n[settings]\n[rows.il2m]\n',
            "settings for a row 'il2m'; there are .*ft",
        ),
    ],
)
def test_a_bad_preset_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(UserError, match=reason):
        find_preset(str(tmp_path / "mine.toml"))


def test_settings_of_ssil_reach_its_variants() -> None:
    own = {"ssil": {"epochs": 7, "options": {"temperature": 3.0, "batches": "replay", "replay_batch": 5}}}
    preset = replace(find_preset("glyphs"), rows=own | {"ssil-n64": {"epochs": 9}})
    found = {row: preset.cell(Condition(), row, 0).settings for row in ROWS}
    rows = ("ssil", "ssil-mixed", "ssil-n16", "ssil-n64", "ce_ss")
    assert [found[row].get("epochs") for row in rows] == [7, 7, 7, 9, None]
    assert {found[row]["options"]["temperature"] for row in ROWS if row.startswith("ssil")} == {3.0}
    assert found["ssil-mixed"]["options"]["batches"] == "mixed"  # what makes it a variant stays
    assert [found[f"ssil-n{size}"]["options"]["replay_batch"] for size in (16, 32, 64)] == [4, 8, 16]


def test_a_preset_states_what_differs_from_another(tmp_path: Path) -> None:
    like, other = find_preset("cifar100-full"), find_preset("cifar100-full-20")
    assert (other.settings, other.rows, other.exemplars[1]) == (like.settings, like.rows, 20)
    (tmp_path / "mine.toml").write_text('like = "cifar10-full"\n')
    with pytest.raises(UserError, match="'cifar10-full' is not known"):
        find_preset(str(tmp_path / "mine.toml"))


def test_a_varied_preset_has_a_name_and_settings_of_its_own() -> None:
    preset = find_preset("glyphs")
    assert preset.varied() == replace(preset, stands_for="glyphs")
    official = preset.varied("official", epoch_scale=0.2)
    cell = official.cell(Condition(), "ssil", 0)
    assert cell.folder == Path("glyphs-official-x0.2/base-fixed-t10-2/ssil-0")
    assert (cell.settings["profile"], cell.settings["epoch_scale"]) == ("official", 0.2)
    assert "epochs" not in cell.settings
    assert find_preset("cifar100-full").varied("official").stands_for == "imagenet"


def test_with_equal_images_every_rival_sees_as_many_as_ssil() -> None:
    preset = find_preset("cifar100-full").varied(equal_images=True)
    wanted = preset.budget(Condition(), "ssil").images
    for row in ("icarl", "ft", "eeil", "bic", "lucir", "podnet"):
        assert preset.budget(Condition(), row).images == pytest.approx(wanted, rel=0.05)
    scales = {row: preset.cell(Condition(), row, 0).settings["epoch_scale"] for row in ("ssil", "eeil", "joint")}
    assert scales == {"ssil": 0.12, "eeil": 13 / 40, "joint": 0.12}
    folders = [preset.cell(Condition(), row, 0).folder.parts[0] for row in ("ssil", "eeil")]
    assert folders == ["cifar100-full", "cifar100-full-equal"]  # SS-IL's run serves both tables


def test_equal_images_need_a_number_of_images(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('title = "m"\nclasses = 10\nexemplars = [1, 2, 3]\n[settings]\n')
    preset = find_preset(str(tmp_path / "mine.toml")).varied(equal_images=True)
    with pytest.raises(UserError, match="the preset mine-equal does not state `images`"):
        preset.cell(Condition(), "ft", 0)
