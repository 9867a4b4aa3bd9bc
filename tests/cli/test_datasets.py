"""`ssil datasets`."""

import json

import pytest

from ssil.cli import main
from ssil.data import load


def test_datasets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets"]) == 0
    shown = capsys.readouterr().out
    assert all(info.name in shown for info in load.describe())
    assert main(["datasets", "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        info._asdict() for info in load.describe()
    ]
