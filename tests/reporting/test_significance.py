from itertools import permutations
from math import isnan, nan
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from report_runs import record, run, written
from ssil.benchmark.record import write_record
from ssil.benchmark.results import Run
from ssil.cli import main
from ssil.core.errors import UserError
from ssil.reporting.headline_table import COLUMNS
from ssil.reporting.report_page import page, tables
from ssil.reporting.sections import sections
from ssil.reporting.significance import check_baseline, comparisons, holm, note, paired, significance

AVERAGE = COLUMNS["average_top1"]
some = settings(max_examples=40, deadline=None)
numbers = st.floats(0, 100).map(lambda value: round(value, 3))


def seeds(method: str, averages: list[float], start: int = 0, **config: object) -> list[Run]:
    """Runs with these average accuracies, one per seed."""
    found = enumerate(averages, start)
    return [run(method, (value, value, value), seed=seed, folder=f"{method}-{seed}", **config) for seed, value in found]


@some
@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=8))
def test_the_paired_test_is_scipys(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    found = paired([a - b for a, b in pairs])
    if isnan(found.p):
        assert len({round(a - b, 6) for a, b in pairs}) == 1
    else:
        assert found.p == pytest.approx(ttest_rel(ours, theirs).pvalue, rel=1e-6, abs=1e-12)


def literal_holm(values: list[float]) -> list[float]:
    """The largest of min(1, (m - j + 1) p_(j)) over all p_(j) up to the own one, by the definition."""
    ordered = sorted(values)
    steps = [min(1.0, (len(values) - j) * p) for j, p in enumerate(ordered)]
    return [max(steps[: ordered.index(p) + 1 + ordered.count(p) - 1]) for p in values]


@some
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_by_its_definition(values: list[float]) -> None:
    assert holm(values) == pytest.approx(literal_holm(values))
    assert all(corrected >= value for corrected, value in zip(holm(values), values, strict=True))


def test_holm_leaves_out_what_was_not_tested() -> None:
    for order in permutations([0.01, nan, 0.04]):
        found = dict(zip(order, holm(order), strict=True))
        assert found[0.01] == pytest.approx(0.02)
        assert found[0.04] == pytest.approx(0.04)
        assert isnan(holm(order)[order.index(nan)])


def test_runs_are_paired_by_seed_and_class_order() -> None:
    """Seeds that only one variant has do not count; nor do runs of another class order."""
    ft, ssil = seeds("ft", [10, 20, 30, 40, 50]), seeds("ssil", [12, 23, 34, 41, 99], start=0)
    other = ssil[4].record.model_copy(update={"class_order": [5, 4, 3, 2, 1, 0]})
    (section,) = sections([*ft, *ssil[:4], Run(Path("other"), other), *seeds("er", [1, 2], start=7)])
    found = comparisons(section, "ft", AVERAGE)
    assert found["ssil"].pairs == 4
    assert found["ssil"].mean == pytest.approx(2.5)
    assert found["ssil"].p == pytest.approx(ttest_rel([12, 23, 34, 41], [10, 20, 30, 40]).pvalue)
    assert (found["er"].pairs, found["er"].mark) == (0, "")
    assert isnan(found["er"].mean)
    assert "ft" not in found


def test_fewer_than_three_pairs_have_no_star() -> None:
    (section,) = sections([*seeds("ft", [10, 20]), *seeds("ssil", [50, 60.001])])
    found = comparisons(section, "ft", AVERAGE)["ssil"]
    assert (found.pairs, found.mark) == (2, "")
    assert isnan(found.p)
    assert "not tested with fewer than 3 pairs" in note([section], "ft", ["average_top1"])


def test_equal_differences_have_no_star() -> None:
    (section,) = sections([*seeds("ft", [10, 20, 30]), *seeds("ssil", [15, 25, 35])])
    assert comparisons(section, "ft", AVERAGE)["ssil"].mark == ""


def test_stars_are_those_of_corrected_values() -> None:
    """The same runs are significant alone, and not among many variants."""
    ft, ssil = seeds("ft", [10, 20, 30, 40]), seeds("ssil", [12, 21.5, 32.5, 41])
    alone = comparisons(sections([*ft, *ssil])[0], "ft", AVERAGE)["ssil"]
    assert alone.p < 0.05
    assert alone.mark == "*"
    noise = [one for name in ("er", "bic", "wa", "uw") for one in seeds(name, [11, 19, 31, 39])]
    among = comparisons(sections([*ft, *ssil, *noise])[0], "ft", AVERAGE)["ssil"]
    assert among.p == alone.p
    assert among.corrected == pytest.approx(5 * alone.p)
    assert among.mark == ""


def test_the_tables() -> None:
    found = sections([*seeds("ft", [10, 20, 30, 40]), *seeds("ssil", [22, 31, 43, 52.5])])
    files = tables(found, ["average_top1"], "ft")
    assert "**" in next(line for line in files["methods.tex"].splitlines() if line.startswith("ssil"))
    assert r"\footnotesize * p \textless{} 0.05, ** p \textless{} 0.01 against ft:" in files["methods.tex"]
    assert "over 4 pairs" in note(found, "ft", ["average_top1"])
    (row,) = significance(found, "ft", ["average_top1"]).rows
    assert row[1:5] == ["average top-1", "ssil", "4", "+12.1 ± 0.9**"]
    assert files["significance.csv"].count("\n") == 2
    assert "significance.csv" not in tables(found)
    assert "Differences from the baseline" in page(found, ["average_top1"], "ft")
    assert "Differences from the baseline" not in page(found)


def test_an_unknown_baseline() -> None:
    found = sections(seeds("ft", [10, 20]))
    check_baseline(found, "ft")
    with pytest.raises(UserError, match=r"baseline: no variant is called 'fd'; finished ones are: ft"):
        check_baseline(found, "fd")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        written(tmp_path / f"runs/ft-{seed}", "ft", (90, 60, 40 + seed), seed=seed)
        written(tmp_path / f"runs/ssil-{seed}", "ssil", (90, 80, 70 + 2 * seed), seed=seed)
    words = ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--baseline"]
    assert main([*words, "ft"]) == 0
    assert "ssil,3," in (tmp_path / "out/significance.csv").read_text()
    assert main([*words, "nothing"]) == 2
    assert "baseline: no variant is called 'nothing'" in capsys.readouterr().err


def test_names_of_the_users_grid_stay(tmp_path: Path) -> None:
    """Scenarios that differ in their memory only are streams of their own, under their names; so are methods."""
    for name, memory in (("small", 12), ("large", 60)):
        for row, method in (("mine", "ft"), ("ssil", "ssil")):
            (folder := tmp_path / name / row).mkdir(parents=True)
            found = record(method, memory={"kind": "fixed", "total": memory})
            names = {"stream_name": name} | ({"name": row} if row != method else {})
            write_record(folder, found.model_copy(update={"provenance": found.provenance | names}))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out/methods.tex").read_text().splitlines()
    assert lines[2] in (r"variant & small & large \\", r"variant & large & small \\")
    assert [line.partition(" ")[0] for line in lines[4:6]] == ["mine", "ssil"]
    rows = (tmp_path / "out/headline.csv").read_text().splitlines()[1:]
    assert sorted(",".join(row.split(",")[:2]) for row in rows) == [
        "large,mine",
        "large,ssil",
        "small,mine",
        "small,ssil",
    ]
