"""Tables and consoles."""

import io

import pytest
from rich.console import Console

from ssil.cli.terminal import table


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
