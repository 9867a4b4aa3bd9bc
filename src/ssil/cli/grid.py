"""`ssil grid`: methods x scenarios x seeds."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import App, Parameter

from ssil.cli.output import console
from ssil.errors import UserError

Item = TypeVar("Item")

app = App(
    name="grid",
    help_epilogue="""The file has the settings of all runs, and a table for each scenario and method:

  seeds = [0, 1, 2]
  settings = { dataset = "digits", tasks = 5, backbone = "resnet14", epochs = 2 }
  [scenarios.fixed]
  memory = 50
  [scenarios.growing]
  memory_per_class = 5
  [methods.ssil]
  [methods.ft]
  method = "ft,il2m"        # the name of the table, if it is not said

Runs go to OUT/SCENARIO/METHOD-SEED. Those that are done are not run again, one
that was stopped goes on, one that fails stops no other. The same command on
several machines with --part 1/3, 2/3, 3/3 and a shared OUT splits the work.

Examples:
  ssil grid configs/grids/glyphs.toml --dry-run
  ssil grid configs/grids/glyphs.toml --jobs 2
  ssil report runs/glyphs --out report""",
)

Jobs = Annotated[int, Parameter(help="runs at once; each takes its share of the cores")]
Part = Annotated[str | None, Parameter(metavar="I/N", help="only every N-th run, from the I-th on")]
DryRun = Annotated[
    bool, Parameter(negative="", show_default=False, help="say what would be run, and about how long it takes")
]
ReadOnly = Annotated[
    bool, Parameter(negative="", show_default=False, help="run nothing, say what the finished runs tell")
]
Seeds = Annotated[int, Parameter(help="runs with seeds 0 to SEEDS - 1")]
Out = Annotated[Path, Parameter(help="where the runs are, or go; what is made of them goes beside them")]
DataRoot = Annotated[Path | None, Parameter(help="where downloads are or go (default: $SSIL_DATA)")]


@app.default
def grid(
    spec: Annotated[Path, Parameter(help="a TOML file, see below")],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="where the runs go (default: runs/ and the file's name)")] = None,
    jobs: Jobs = 1,
    part: Part = None,
    dry_run: DryRun = False,
) -> None:
    """Run methods in scenarios with seeds, as many at once as you like; go on where it stopped."""
    from ssil.cli.board import carry_out_left, results  # brings torch
    from ssil.collection import find_runs
    from ssil.grid import finished, read_spec

    root, cells = out or Path("runs") / spec.stem, some(read_spec(spec), part)
    complete = carry_out_left(cells, root, jobs, dry_run)
    if dry_run:
        return
    screen = console()
    for scenario in dict.fromkeys(cell.scenario for cell in cells):
        folders = [root / cell.place for cell in cells if cell.scenario == scenario and finished(cell, root)]
        if folders:
            screen.print(results(find_runs(folders), scenario))
    screen.print(f"kept in {root} (see: ssil report {root} --out report)")
    if not complete:
        raise SystemExit(1)


def some(cells: Sequence[Item], part: str | None) -> Sequence[Item]:
    """Every n-th cell from the i-th on.

    >>> some([*"abcde"], "2/3")
    ['b', 'e']
    """
    if part is None:
        return cells
    found = re.fullmatch(r"(\d+)/(\d+)", part)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"part: {part!r} is not a part such as 1/4 or 4/4")
    return cells[int(found[1]) - 1 :: int(found[2])]
