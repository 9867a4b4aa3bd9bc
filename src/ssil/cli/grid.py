"""`ssil grid`: methods in scenarios with several seeds. `ssil paper` and `ssil claims` take some of its options."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import App, Group, Parameter

from ssil.cli.protocols import about_protocol
from ssil.cli.terminal import console
from ssil.core.errors import UserError
from ssil.reproduction.field_protocols import expanded

if TYPE_CHECKING:
    from ssil.benchmark.grid.cells import Cell
    from ssil.benchmark.grid.cluster import Cluster

Item = TypeVar("Item")

app = App(
    name="grid",
    help_epilogue="""The file has the settings of all runs, and one table per scenario and method:

  seeds = [0, 1, 2]
  settings = { dataset = "digits", tasks = 5, backbone = "resnet14" }
  [scenarios.fixed]
  memory = 50
  [scenarios.growing]
  memory_per_class = 5
  [methods.ssil]
  [methods.ft]
  method = "ft,il2m"        # by default the name of the table

protocol = "cifar100-b0-10" (see `ssil protocols`) stands for the settings of a
published table, in any of these tables; what else is given stands over it.
Runs go to OUT/SCENARIO/METHOD-SEED. Finished runs are not run again,
interrupted ones go on, and one that fails stops no other. The same command on
several machines with --part 1/3, 2/3, 3/3 and a shared OUT splits the work.

On a Ray cluster (pip install 'ssil[cluster]'), nodes need the data but no
shared disk: records, predictions and checkpoints are copied to OUT as they are
written. A run whose worker dies goes on from its last checkpoint, on any node.

Examples:
  ssil grid configs/grids/glyphs-10.toml --dry-run
  ssil grid configs/grids/glyphs-10.toml --jobs 2
  ssil grid configs/grids/glyphs-10.toml --on ray --address auto --gpus 0.5
  ssil report runs/glyphs-10 --out report""",
)

Jobs = Annotated[int, Parameter(help="how many runs to train at once; they share the cores")]
Threads = Annotated[int | None, Parameter(help="CPU threads of each run (default: the usable cores, divided by JOBS)")]
Part = Annotated[str | None, Parameter(metavar="I/N", help="only every N-th run, starting at the I-th")]
DryRun = Annotated[
    bool, Parameter(negative="", show_default=False, help="print what would be run, and about how long it takes")
]
ReadOnly = Annotated[bool, Parameter(negative="", show_default=False, help="run nothing, use only finished runs")]
Out = Annotated[Path, Parameter(help="the directory of the runs and of the results made from them")]
DataRoot = Annotated[Path | None, Parameter(help="the directory of downloaded data sets (default: $SSIL_DATA)")]

EpochScale = Annotated[
    float | None, Parameter(help="every method trains for this part of its own schedule, such as 0.2")
]
Profile = Annotated[
    Literal["paper", "official"] | None, Parameter(help="the paper's settings (default), or its authors' code's")
]
EqualImages = Annotated[
    bool,
    Parameter(negative="", show_default=False, help="every rival trains until it has seen SS-IL's number of images"),
]

MAX_SEEDS = 1000


def check_seeds(seeds: int) -> range:
    """Return the seeds of runs, their number given; raise UserError if it is no number of seeds."""
    if not 1 <= seeds <= MAX_SEEDS:
        raise UserError(f"seeds: {seeds} is no number of seeds; give 1 to {MAX_SEEDS}")
    return range(seeds)


RAY = Group("On a Ray cluster", sort_key=1)


@app.default
def grid(
    spec: Annotated[Path, Parameter(help="a TOML file, described below")],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="where the runs go (default: runs/ and the file's name)")] = None,
    jobs: Jobs = 1,
    threads: Threads = None,
    part: Part = None,
    epoch_scale: EpochScale = None,
    dry_run: DryRun = False,
    on: Annotated[Literal["ray"] | None, Parameter(group=RAY, help="run on a cluster instead of --jobs here")] = None,
    address: Annotated[
        str | None,
        Parameter(group=RAY, metavar="HOST:PORT|auto", help="the cluster (default: $RAY_ADDRESS, or a new one)"),
    ] = None,
    cpus: Annotated[float | None, Parameter(group=RAY, help="CPUs per run, also its threads (default: 1)")] = None,
    gpus: Annotated[float | None, Parameter(group=RAY, help="GPUs per run, such as 0.5 (default: 0)")] = None,
    retries: Annotated[
        int | None, Parameter(group=RAY, help="how often a run goes on after its worker died (default: 3)")
    ] = None,
) -> None:
    """Run methods in scenarios with several seeds, some at once; go on where it stopped."""
    from ssil.benchmark.grid.cells import finished_record
    from ssil.benchmark.results import find_runs
    from ssil.cli.grid_display import run_missing, seed_table  # imports torch

    cluster = _cluster(on, jobs, address=address, cpus=cpus, gpus=gpus, retries=retries)
    changes = {} if epoch_scale is None else {"epoch_scale": epoch_scale}
    cells, about = _read(spec, changes)
    root, cells = out or Path("runs") / spec.stem, select_part(cells, part)
    for line in about:
        print(line, file=sys.stderr)
    if root.exists() and not root.is_dir():
        raise UserError(f"out: {root} is a file; give a directory")
    complete = run_missing(cells, root, jobs, dry_run, cluster, threads)
    if dry_run:
        return
    screen = console()
    for scenario in dict.fromkeys(cell.scenario for cell in cells):
        folders = [root / cell.folder for cell in cells if cell.scenario == scenario and finished_record(cell, root)]
        if folders:
            screen.print(seed_table(find_runs(folders), scenario))
    screen.print(f"kept in {root} (see: ssil report {root} --out report)", markup=False)
    if not complete:
        raise SystemExit(1)


def _read(spec: Path, changes: Mapping[str, Any]) -> "tuple[Sequence[Cell], Iterable[str]]":
    """Return the cells of a grid, and how they follow the protocols that it names, one line for each way."""
    from ssil.benchmark.config import make_config
    from ssil.benchmark.grid.cells import read_grid

    about = dict[str, None]()

    def expand(settings: Mapping[str, Any]) -> Mapping[str, Any]:
        whole = expanded(settings)
        if name := settings.get("protocol"):
            about[about_protocol(str(name), make_config(whole))] = None
        return whole

    return read_grid(spec, changes, expand), about


def _cluster(on: str | None, jobs: int, **asked: Any) -> "Cluster | None":
    """Return the cluster that the flags describe, or None without `--on`."""
    given = {name: value for name, value in asked.items() if value is not None}
    if on is None:
        if given:
            raise UserError(f"{next(iter(given))}: only for a grid on a cluster; add --on ray")
        return None
    if jobs != 1:
        raise UserError("jobs: on a cluster, --cpus and --gpus decide how many runs train at once; leave it out")
    if not find_spec("ray"):
        raise UserError("on: ray is missing; install it with pip install 'ssil[cluster]'")
    from ssil.benchmark.grid.cluster import Cluster  # imports ray and torch

    return Cluster(**given)


def select_part(cells: Sequence[Item], part: str | None) -> Sequence[Item]:
    """Return every N-th cell starting at the I-th, for a `part` "I/N"; all of them if it is None.

    >>> select_part([*"abcde"], "2/3")
    ['b', 'e']
    """
    if part is None:
        return cells
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", part)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"part: {part!r} is not a part such as 1/4 or 4/4")
    return cells[int(found[1]) - 1 :: int(found[2])]
