"""`ssil run`: one stream, one method."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from ssil.benchmark.config import RunConfig
from ssil.cli.flags import GROUPS, chosen_protocol, resolve, with_flags
from ssil.cli.protocols import about_protocol
from ssil.cli.terminal import Json, is_first_process

app = App(
    name="run",
    help_epilogue="""Flags stand over the file's keys, and both over the scenario or the protocol.
With --out, Ctrl-C keeps the state, and the same command goes on from there.

Examples:
  ssil run --dataset digits --tasks 5 --backbone resnet14 --epochs 4 --out first
  ssil run configs/cifar100-small.toml --method ft --seed 1 --out runs/ft-1
  ssil run --scenario 2 --data-root path/to/data --devices 4 --out runs/imagenet
  ssil run --protocol cifar100-b0-10 --method icarl --out runs/icarl
  ssil run --method ssil --option temperature=4 --option distil=gkd""",
)


@app.default
@with_flags(RunConfig, before={"scenario": "tasks", "protocol": "tasks", "json": "data_root", "out": "data_root"})
def run(
    config: Annotated[
        Path | None, Parameter(help="a TOML file of settings, e.g. with lines tasks = 10 and train_per_class = 200")
    ] = None,
    /,
    *,
    scenario: Annotated[
        str | None,
        Parameter(group=GROUPS["Stream"], metavar="NAME|N", help="one of the paper's, see `ssil scenarios`"),
    ] = None,
    protocol: Annotated[
        str | None,
        Parameter(group=GROUPS["Stream"], metavar="NAME", help="of published tables, see `ssil protocols`"),
    ] = None,
    json: Annotated[
        Json, Parameter(group=GROUPS["How"], help="print a JSON object per task, last the summary")
    ] = False,
    **flags: Any,
) -> None:
    """Learn a stream of tasks with a method, or go on with it."""
    protocol = chosen_protocol(config, protocol)
    settings = resolve(config, scenario, flags, protocol)
    if protocol and is_first_process():
        print(about_protocol(protocol, settings), file=sys.stderr)
    from ssil.cli.run_display import run_and_show  # brings all of torch, which `ssil run --help` need not wait for

    run_and_show(settings, json)
