"""`ssil serve` before it serves: what is missing or wrong gets one line."""

from importlib import util
from pathlib import Path

import pytest

from ssil.cli import main

LONG = "a-token-of-my-own"


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        (["nowhere"], "", "model: nowhere holds no model"),
        (["nowhere", "--host", "0.0.0.0"], "", "host: 0.0.0.0 is reached by other computers, so a token is needed"),
        (["nowhere", "--host", "0.0.0.0"], "short", "SSIL_TOKEN: the token is too short"),
        (["nowhere", "--host", "no.such.name.invalid"], LONG, "port: no.such.name.invalid:0 can't be had"),
        (["nowhere", "--max-images", "0"], "", "max_images: 0 is out of range"),
        (["nowhere", "--max-megabytes", "-1"], "", "max_megabytes: -1 is out of range"),
        (["nowhere", "--threads", "0"], "", "threads: 0 is out of range"),
    ],
)
def test_bad_input(
    arguments: list[str],
    token: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSIL_TOKEN", token)
    assert main(["serve", *arguments, "--port", "0"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("port", "said"),
    [("-1", "-1 is no port"), ("65536", "65536 is no port"), ("1", "192.0.2.1:1 can't be had")],
)
def test_ports_that_cannot_be_had(
    port: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SSIL_TOKEN", LONG)
    assert main(["serve", str(tmp_path), "--host", "192.0.2.1", "--port", port]) == 2
    assert capsys.readouterr().err.startswith(f"error: port: {said}")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = util.find_spec
    monkeypatch.setattr("ssil.cli.terminal.find_spec", lambda name: None if name == "fastapi" else found(name))
    assert main(["serve", str(tmp_path)]) == 2
    assert capsys.readouterr().err == ("error: serve: fastapi is missing; install it with pip install 'ssil[studio]'\n")
