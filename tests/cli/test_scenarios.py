"""`ssil scenarios`."""

import json

import pytest

from ssil.cli import main
from ssil.reproduction.paper_scenarios import scenarios


def test_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 0
    shown = capsys.readouterr().out.splitlines()
    row = next(line.split() for line in shown if "imagenet-largebase-fixed-t10-10k" in line)
    assert row == ["32", "imagenet-largebase-fixed-t10-10k", "500,", "then", "50", "32", "yes"]
    assert main(["scenarios", "--json"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["name"] for entry in entries] == [one.name for one in scenarios()]
