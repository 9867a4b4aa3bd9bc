"""`ssil report`."""

import sys
from pathlib import Path
from typing import Any

import pytest

from report_runs import written
from ssil.cli import main


def test_a_page_and_its_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "runs" / "a", "ft")
    written(tmp_path / "runs" / "b", "ssil", (90, 80, 70))
    out = tmp_path / "new" / "report"
    assert main(["report", str(tmp_path / "runs"), "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith(f"2 runs in {out / 'index.html'} (")
    assert sorted(file.name for file in out.iterdir()) == [
        "headline.csv", "headline.md", "headline.tex", "index.html", "methods.tex",
    ]  # fmt: skip
    assert "<b>ssil</b> is the most accurate on average" in (out / "index.html").read_text()
    assert (out / "headline.md").read_text().count("\n") == 4


def test_a_table_and_figures_for_a_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, images in (("a", 20), ("b", 40)):
        data: dict[str, Any] = {"train_per_class": images, "data_fingerprint": name}
        written(tmp_path / name / "ft", "ft", **data)
        written(tmp_path / name / "ssil", "ssil", (90, 80, 70), **data)
    chosen = ["--columns", "average_top1,last_top1", "--figures", "pdf,svg"]
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "out"), *chosen]) == 0
    assert "methods.tex, accuracy-1.pdf, accuracy-1.svg, accuracy-2.pdf" in capsys.readouterr().out
    lines = (tmp_path / "out" / "methods.tex").read_text().splitlines()
    assert lines[0] == r"\begin{tabular}{lrrrr}"
    assert r"ssil & \textbf{80.0} & \textbf{70.0} & \textbf{80.0} & \textbf{70.0} \\" in lines
    assert lines[2] == r" & \multicolumn{2}{c}{train per class 20} & \multicolumn{2}{c}{train per class 40} \\"
    assert lines[3] == r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}"
    assert lines[4] == r"variant & average top-1 & last top-1 & average top-1 & last top-1 \\"
    assert r"ft & 63.3 & 40.0 & 63.3 & 40.0 \\" in lines
    assert (tmp_path / "out" / "accuracy-1.pdf").read_bytes().startswith(b"%PDF")
    assert main(["report", str(tmp_path / "a"), "--out", str(tmp_path / "out"), "--figures", "pdf"]) == 0
    assert (tmp_path / "out" / "accuracy.pdf").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--columns", "last_top"], "columns: 'last_top' is not known; did you mean 'last_top1'"),
        (["--figures", "gif"], "figures: 'gif' is not known; there are: png, svg, pdf"),
    ],
)
def test_unknown_columns_and_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str], message: str
) -> None:
    written(tmp_path / "a")
    assert main(["report", str(tmp_path / "a"), "--out", str(tmp_path / "out"), *wrong]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_without_plotly(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a")
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert main(["report", str(tmp_path / "a"), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "error: report: plotly is missing; install it with pip install 'ssil[report]'\n"
    assert not (tmp_path / "out").exists()


def test_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no record.json" in capsys.readouterr().err


def test_a_run_that_has_just_begun_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "a")
    (tmp_path / "begun").mkdir()
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "begun"), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == f"{tmp_path / 'begun'} is left out: it has no record yet\n"
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "nowhere")]) == 2
    assert "nowhere holds no record.json" in capsys.readouterr().err


def test_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "a")
    assert main(["report", str(tmp_path / "a"), "--out", str(tmp_path / "a" / "record.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
