"""Progress displays: live bars, plain lines, nothing."""

import re
from io import StringIO

import pytest
from rich.console import Console

from ssil.cli import progress


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    """What is drawn on a terminal of 80 columns."""
    text = StringIO()
    terminal = Console(file=text, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "console", lambda: terminal)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    return text


def test_images_are_counted_by_a_bar_on_a_terminal(drawn: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with progress.counting("preparing") as count:
        count(500, 2000)
        count(1500, 2000)
    assert re.search(r"preparing.* 75 %.* 1,000 images/s", drawn.getvalue())


@pytest.mark.parametrize("json", [False, True])
def test_images_are_counted_by_lines_elsewhere_but_not_beside_json(
    json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with progress.counting("preparing", json) as count:
        for done in range(11):
            now = 2.0 * done
            count(100 + done, 1000)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == (0 if json else 3)
    assert json or err.startswith("preparing: 103 of 1,000 images, 0 images/s, 0:29:54 left\n")


def test_a_long_note_is_not_cut(drawn: StringIO) -> None:
    note = "balanced, epoch 12/40, 1234 images/s"
    with progress.LiveBars() as display:
        display.update("task 10/10", 0.5, 1, note)
        drawn.truncate(0)
        display.live.refresh()
    assert note in drawn.getvalue()


def test_a_bar_of_another_name_starts_anew(drawn: StringIO) -> None:
    with progress.LiveBars() as display:
        display.update("task 1/2", 1, 1)
        display.update("task 2/2", 0.25, 1)
        assert display.bars.tasks[0].percentage == pytest.approx(25)
        assert len(display.bars.tasks) == 1


def test_messages_are_printed_in_all_forms_but_logs_only_as_lines(
    drawn: StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.LiveBars() as display:
        display.log("log")
        display.message("message")
    assert "message" in drawn.getvalue()
    assert "log" not in drawn.getvalue()
    lines = StringIO()
    with progress.PlainLines(lines) as plain:
        plain.log("log")
        plain.message("message")
    assert lines.getvalue() == "log\nmessage\n"
    assert capsys.readouterr().out == ""
