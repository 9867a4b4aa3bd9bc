"""What `ssil grid` shows while its runs train."""

import io

import pytest
from rich.console import Console

from ssil.benchmark.grid.cells import Cell
from ssil.benchmark.grid.process_pool import Outcome
from ssil.cli import progress
from ssil.cli.grid_display import GridProgress

SSIL, FT, WA = (Cell("base", row, 0, {}) for row in ("ssil", "ft", "wa"))
TASK = {"task": 1, "top1": 93.75, "seconds": 30.0}


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 100.0)


def _events(shown: GridProgress) -> None:
    """One run ends, one fails, one loses its worker and trains on."""
    for cell in (SSIL, FT, WA):
        shown.started(cell)
    shown.learnt(SSIL, TASK)
    shown.ended(Outcome(SSIL, 0))
    shown.ended(Outcome(FT, 2, "lr: too large"))
    shown.lost(WA)
    shown.started(WA)
    shown.learnt(WA, TASK | {"top1": 50.0})


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    shown = GridProgress([SSIL, FT, WA], {}, jobs=3)
    with shown.display:
        _events(shown)
    assert capsys.readouterr().out.splitlines() == [
        "base/ssil-0: begins",
        "base/ft-0: begins",
        "base/wa-0: begins",
        "base/ssil-0: done, last top-1 93.8, 30.0 s; 1 of 3 runs ended, about 30.0 s left",
        "base/ft-0: failed (lr: too large), 0.0 s; 2 of 3 runs ended, about 30.0 s left",
        "base/wa-0: its worker died; it goes on from its last checkpoint",
        "base/wa-0: begins",
    ]


def test_a_live_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = io.StringIO()
    terminal = Console(file=drawn, force_terminal=True, highlight=False, color_system=None, width=80)
    monkeypatch.setattr(progress, "console", lambda: terminal)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    shown = GridProgress([SSIL, FT, WA], {}, jobs=3)
    assert isinstance(shown.display, progress.LiveBars)
    with shown.display:
        _events(shown)
        drawn.truncate(0)
        shown.display.live.refresh()
    rows = [line.split() for line in drawn.getvalue().splitlines()]
    assert ["base/ssil-0", "done", "1", "93.8", "30.0", "s"] in rows
    assert ["base/ft-0", "failed", "-", "-", "0.0", "s"] in rows
    assert ["base/wa-0", "running", "1", "50.0", "30.0", "s"] in rows
    assert "begins" not in capsys.readouterr().out
