"""`ssil diff`, for people and for programs."""

import json
from pathlib import Path

import pytest

from report_runs import written
from ssil.cli import main

RIGHT = [c for c in range(6) for _ in range(4)]


def test_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = written(tmp_path / "[a]", "ft", predicted=[0] * 24)
    second = written(tmp_path / "b", "ssil", (90, 80, 70), options={"note": "[bold]"}, predicted=RIGHT)
    assert main(["diff", str(first), str(second)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == [f"A: {first}", f"B: {second}"]
    assert {"method ft ssil", "options.note - [bold]", "last top-1 40.00 70.00 +30.00"} < set(lines)
    assert lines[-3:-1] == [
        "results differ from task 2 on",
        "the two disagree on 20 of 24 test images after task 3",
    ]
    assert lines[-1].startswith("B - A: +83.33 points of top-1, 95 % interval +66.67 to ")


def test_other_data_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = written(tmp_path / "a"), written(tmp_path / "b", data_fingerprint="beef")
    assert main(["diff", str(first), str(second)]) == 0
    assert "the data differ: A and B had other images or labels" in capsys.readouterr().out
    assert main(["diff", str(first), str(second), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same_data"] is False


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = written(tmp_path / "a"), written(tmp_path / "b", seed=1)
    assert main(["diff", str(first), str(second), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["settings"], found["since"]) == (False, {"seed": [0, 1]}, None)
    assert found["results"]["last_top1"] == [40, 40]
    assert found["images"] is None


def test_the_same_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(written(tmp_path / "a", predicted=RIGHT))
    assert main(["diff", folder, folder]) == 0
    assert capsys.readouterr().out == "no difference\n"


def test_one_is_not_as_far(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = written(tmp_path / "a"), written(tmp_path / "b", top1=())
    assert main(["diff", str(first), str(second)]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["no setting differs", "A has done 3 tasks, B 0"]


def test_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(written(tmp_path / "a")), str(tmp_path)]) == 2
    assert "holds no record.json" in capsys.readouterr().err
