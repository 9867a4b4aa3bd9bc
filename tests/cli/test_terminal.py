"""Tables and consoles."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from ssil.cli.terminal import check_output, table
from ssil.core.errors import UserError


@pytest.mark.parametrize("width", [20, 80])
def test_a_narrow_terminal_cuts_no_number(width: int) -> None:
    columns = [str(1000 + number) for number in range(30)]
    wide = table("a name", *columns)
    wide.add_row("somebody", *columns)
    drawn = io.StringIO()
    Console(file=drawn, width=width).print(wide, crop=False)
    header, _, row = drawn.getvalue().splitlines()
    assert header.split()[-30:] == columns
    assert row.split() == ["somebody", *columns]


def test_a_file_that_can_be_written_is_accepted_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "old.html").write_text("old")
    for name in ("new.html", "old.html", "some/new/folder/page.html"):
        check_output("html", tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old.html"]
    assert (tmp_path / "old.html").read_text() == "old"


@pytest.mark.parametrize("name", ["", "folder", "notes.txt/page.html", "x" * 300, "folder/" + "x/" * 3_000])
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("text")
    with pytest.raises(UserError, match=r"^html: "):
        check_output("html", tmp_path / name if name else Path())
