"""`ssil claims` and `ssil paper` from the first run to the last figure, with a user's own preset that takes no time."""

import csv
import re
import sys
from pathlib import Path

import pytest

import tiny_runs
from ssil.cli import main

CORE = "claims-2-8,13-14,21-22"
"""The files of the core claims."""
PRESET = """
title = "patterns"
classes = 20
exemplars = [1, 2, 3]
stands_for = "imagenet"
[settings]
dataset = "{dataset}"
backbone = "{backbone}:backbone"
epochs = 1
batch = 8
threads = 1
"""


@pytest.fixture(scope="module")
def preset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("preset")
    dataset = tiny_runs.patterns(folder / "patterns.npz", (8,) * 20)
    (folder / "mine.toml").write_text(PRESET.format(dataset=dataset, backbone=Path(tiny_runs.__file__)))
    return folder / "mine.toml"


@pytest.fixture(scope="module")
def root(preset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of the core claims are."""
    out = tmp_path_factory.mktemp("claims")
    assert main(["claims", "--data", str(preset), "--quick", "--out", str(out)]) == 0
    return out


@pytest.mark.slow
def test_the_core_claims_get_their_verdicts(root: Path) -> None:
    with (root / f"mine/{CORE}.csv").open() as file:
        rows = list(csv.DictReader(file))
    heads = [(row["accuracy"], row["verdict"]) for row in rows if row["claim"]]
    assert len(heads) == 5 * 2 + 6  # for top-1 and top-5, but for the six that are not about accuracy
    assert all(verdict in {"holds (indicative)", "does not hold (indicative)"} for _, verdict in heads)
    assert {row["95 % interval"] for row in rows} == {"one seed"}
    assert len(list(root.glob("mine/base-fixed-t10-2/*/record.json"))) == 7
    assert (root / f"mine/{CORE}.md").read_text().count("\n") == len(rows) + 2


@pytest.mark.slow
def test_some_claims_have_files_of_their_own(root: Path, preset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They don't overwrite the table of all, nor each other's."""
    folder, common = root / "mine", ["--data", str(preset), "--out", str(root), "--seeds", "1", "--read-only"]
    assert main(["claims", *common]) == 0
    before = {file: file.read_bytes() for file in folder.glob("claims*")}
    assert {file.name for file in before} >= {"claims.md", "claims.csv", f"{CORE}.csv"}
    assert main(["claims", *common, "--claims", "13,14"]) == 0
    assert {file: file.read_bytes() for file in before} == before
    with (folder / "claims-13-14.csv").open() as file:
        assert {row[""] for row in csv.DictReader(file)} == {"13", "14", ""}
    assert f"kept in {folder}/claims-13-14.md and .csv" in capfd.readouterr().out


@pytest.mark.slow
def test_what_is_done_is_not_done_again(root: Path, preset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = {file: file.stat().st_mtime_ns for file in root.rglob("record.json")}
    common = ["--data", str(preset), "--out", str(root)]
    assert main(["claims", *common, "--quick"]) == 0
    assert {file: file.stat().st_mtime_ns for file in root.rglob("record.json")} == before
    assert main(["claims", *common, "--seeds", "2", "--claims", "7", "--dry-run"]) == 0
    output = capfd.readouterr().out
    assert "4 of 8 runs are done; the others: about" in output
    assert main(["claims", *common, "--claims", "1,7", "--seeds", "1", "--read-only"]) == 0
    assert "needs mine/base-fixed-t10-2/icarl-0" in capfd.readouterr().out
    assert main(["claims", *common, "--claims", "7", "--quick", "--seeds", "2", "--dry-run"]) == 0
    assert "4 of 8 runs are done" in capfd.readouterr().out  # --quick only sets defaults


@pytest.mark.slow
def test_runs_with_other_settings_are_no_evidence(root: Path, preset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = preset.read_text()
    preset.write_text(before.replace("epochs = 1", "epochs = 2"))
    try:
        assert main(["claims", "--data", str(preset), "--out", str(root), "--quick", "--read-only"]) == 2
    finally:
        preset.write_text(before)
    assert "no run that these claims need, not even mine/base-fixed-t10-2/" in capfd.readouterr().err


@pytest.mark.slow
def test_figures_are_made_of_the_runs_that_there_are(
    root: Path, preset: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "all", "--data", str(preset), "--out", str(root), "--read-only"]) == 0
    output = capfd.readouterr().out
    names = sorted(file.stem for file in (root / "mine/figures").glob("*.png"))
    core = ["fig1", "fig2-left", "fig2-right", "fig3", "fig4", "fig6", "fig7", "fig8-top1", "fig8-top5", "fig9"]
    assert set(core) <= set(names)
    assert "fig-s6: its runs are missing" in output
    assert "fig-s2: lacks 42 of 45 lines, the first is iCaRL in base-fixed-t10-1\n" in output
    tables = {file.name for file in (root / "mine/tables").iterdir()}
    assert {"table1-top1.md", "table1-top5.tex", "table-s1.csv", "table-s2.md"} <= tables
    table = (root / "mine/tables/table1-top1.md").read_text()
    assert "/ 64.5" in table  # the paper's SS-IL on the data that these stand for
    assert "| iCaRL | - / 50.5 |\n" in table  # the one column that has runs
    assert "**" not in table  # nothing is the best of a column that is not whole
    assert "table-s3: its runs are missing" in output


@pytest.mark.slow
def test_one_column_of_a_table(root: Path, preset: Path, capfd: pytest.CaptureFixture[str]) -> None:
    common = ["--data", str(preset), "--out", str(root), "--dry-run"]
    assert main(["paper", "table1", *common, "--only", "base-fixed-t10-2"]) == 0
    assert "2 of 8 runs are done" in capfd.readouterr().out
    assert main(["paper", "table1", *common, "--only", "*-t10-*"]) == 0
    assert "2 of 22 runs are done" in capfd.readouterr().out  # joint training serves all three memories


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["claims", "--claims", "23"], "claims: '23' is not a list of claims from 1 to 22"),
        (["claims", "--claims", "a-b"], "claims: 'a-b' is not a list"),
        (["claims", "--data", "mnist"], "data: 'mnist' is not known; there are .*glyphs"),
        (["paper", "tabel1"], "paper: it has no 'tabel1'; did you mean 'table1"),
        (["paper", "table1", "--only", "t7"], "only: 't7' names no column .*; there are base-fixed-t10-5, base-"),
        (["paper", "fig1", "--only", "t7"], "only: 't7' names no column .*; there are none"),
        (["claims", "--seeds", "0", "--read-only"], "seeds: 0 is no number of seeds"),
        (["paper", "table1", "--seeds", "-1", "--read-only"], "seeds: -1 is no number of seeds"),
        (["claims", "--read-only", "--out", "nowhere"], "out: nowhere has no run .*, not even glyphs/base-"),
        (["claims", "--jobs", "0", "--quick"], "jobs: 0 is not a number of processes"),
        (["claims", "--threads", "0", "--quick"], "threads: 0 is not a number of threads"),
    ],
)
def test_bad_input_is_refused(words: list[str], reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert re.search(reason, capfd.readouterr().err)


def test_the_list_of_tables_and_figures(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["paper"]) == 0
    output = capfd.readouterr().out
    for name in ("table1", "table-s5", "fig1", "fig9", "fig-s6"):
        assert f"\n{name} " in output


RECORDS = Path(__file__).parents[2] / "docs/results/paper"


@pytest.mark.parametrize(("width", "height"), [(100, 30), (80, 44)])
def test_the_verdicts_are_on_the_last_screen(
    width: int, height: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No line is longer than the terminal is wide, and no verdict is cut or folded."""
    (tmp_path / "glyphs").mkdir()
    for folder in (RECORDS / "glyphs").glob("*-t10-*"):
        (tmp_path / "glyphs" / folder.name).symlink_to(folder)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", str(height))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["claims", "--seeds", "3", "--read-only", "--out", str(tmp_path)]) == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capfd.readouterr().out).splitlines()
    assert max(map(len, lines)) <= width
    last = lines[-height + 1 :]
    assert sum(bool(re.match(r"\d+ {2}", line)) for line in last) == 22  # a folded line may begin with a number too
    assert sum(line.rstrip().endswith(("holds", "hold", "evidence", "applicable", "run")) for line in last) == 22


def test_a_dry_run_prints_the_budgets(preset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        preset.read_text().replace("epochs = 1", "epoch_scale = 0.01").replace("classes", "images = 8\nclasses")
    )
    asked = ["paper", "table1", "--data", str(mine), "--out", str(tmp_path), "--only", "*-t10-2", "--dry-run"]
    assert main(asked) == 0
    lines = capfd.readouterr().out.splitlines()
    table = {words[1]: words[2:] for words in map(str.split, lines) if words and words[0] == "base-fixed-t10-2"}
    assert [*table] == ["iCaRL", "FT", "EEIL", "BiC", "LUCIR", "PODNet", "SS-IL", "Joint"]
    # Two batches of 8 new images in each of ten tasks, and from the second on 2 exemplars in each.
    assert table["SS-IL"][:3] == ["1", f"{2 * (8 + 9 * 10)}", "20"]
    assert main([*asked, "--profile", "official", "--equal-images"]) == 0
    printed = capfd.readouterr().out
    assert "mine-official-equal/base-fixed-t10-2/eeil-0" in printed
    assert "mine-official/base-fixed-t10-2/ssil-0" in printed
    assert printed.count("--profile official") == 8


def test_a_preset_without_images_has_no_budgets(
    preset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "fig7", "--data", str(preset), "--out", str(tmp_path), "--dry-run"]) == 0
    assert "budgets are not known: the preset does not state `images`" in capfd.readouterr().out
