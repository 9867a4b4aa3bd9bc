"""`ssil exam`, `learn --test`, `history`, `accept` and `discard`, as a person types them."""

import json
from pathlib import Path

import pytest

import tiny_classifiers
from ssil.classifier.publish_update import Limits
from ssil.classifier.update import Update
from ssil.cli import main

SMALL = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--no-flip", "--epochs", "3", "--later-epochs", "3"]


def refuse(_: Update, limits: Limits) -> str | None:
    return "too much is lost" if limits.drop is not None else None


def test_judged_refused_accepted_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, folder = str(tmp_path / "m"), tmp_path / "tests"
    for image, name in tiny_classifiers.labelled_images(["ant", "bee", "cat"], 3, first=60):
        path = folder / name / Path(image.name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image.read())
    first = str(tiny_classifiers.folder(tmp_path / "first", ["ant", "bee"]))
    assert main(["learn", model, first, *SMALL, "--test", str(folder)]) == 0
    assert "photos in your test folder (probably" in capsys.readouterr().out
    assert main(["exam", model, str(folder)]) == 0
    assert "judged by 9 images" in capsys.readouterr().out
    monkeypatch.setattr("ssil.classifier.publish_update._excess", refuse)
    cats = str(tiny_classifiers.folder(tmp_path / "cat", ["cat"]))
    assert main(["learn", model, cats, "--max-drop", "1"]) == 3
    printed = capsys.readouterr()
    assert "not published" in printed.out
    assert printed.err.strip() == (
        f"refused: too much is lost; the model is as it was; to publish the update all the same: ssil accept {model}"
    )
    assert main(["history", model]) == 0
    assert "refused, and kept for `ssil accept`: + cat" in capsys.readouterr().out
    assert main(["accept", model]) == 0
    assert "version 2 is the current one (too much is lost)" in capsys.readouterr().out
    assert main(["accept", model]) == main(["discard", model]) == 2
    assert main(["history", model]) == 0
    shown = capsys.readouterr().out
    assert "test folder, version by version: " in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert main(["history", model, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["test"]["tried"] for line in lines] == [6, 9]
    assert lines[1]["refused"] == "too much is lost"
    assert main(["learn", model, str(tiny_classifiers.folder(tmp_path / "d", ["dog"])), "--max-drop", "1"]) == 3
    assert main(["discard", model]) == 0
    assert main(["verify", model]) == 0
    assert main(["exam", model, "--none"]) == 0
    assert main(["exam", model, "--none", str(folder)]) == 2
    assert "no test folder" in capsys.readouterr().out
