"""`ssil claims`: check the paper's claims."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ssil.cli.grid import DataRoot, DryRun, Jobs, Out, ReadOnly, Threads
from ssil.cli.paper import terminal_table
from ssil.cli.terminal import console
from ssil.core.errors import UserError

if TYPE_CHECKING:
    from ssil.reproduction.paper_claims import Finding

app = App(
    name="claims",
    help_epilogue="""Each claim is about one or several numbers that must lie in a range; over seeds
a number has a 95 % interval (Student's t, paired by seed). The claim holds if
the interval lies inside the range, does not hold if it lies outside, and
otherwise there is not enough evidence. One seed has no interval: its verdicts
are indicative.

Finished runs are not repeated. The findings are written beside them, to
claims.md and claims.csv.

Presets for --data: glyphs (synthetic, needs no download), cifar100,
cifar100-uneven, omniglot, or at the paper's scale imagenet, landmark-v2-1k,
landmark-v2-10k; or a file of your own, like those in
src/ssil/reproduction/preset_files/.

Examples:
  ssil claims --quick --jobs 2
  ssil claims --seeds 3 --jobs 2
  ssil claims --data cifar100 --claims 2-8,13,14 --seeds 1 --dry-run""",
)

QUICK = "2-8,13,14"


@app.default
def claims(
    *,
    data: Annotated[str, Parameter(help="preset: a data set with its settings, see below")] = "glyphs",
    seeds: Annotated[int | None, Parameter(help="runs with seeds 0 to SEEDS - 1 (default: 3)")] = None,
    claims: Annotated[str | None, Parameter(help="only these claims, such as 1,4-8 (default: all)")] = None,
    quick: Annotated[
        bool,
        Parameter(negative="", show_default=False, help=f"by default one seed, and the core claims {QUICK}"),
    ] = False,
    jobs: Jobs = 1,
    threads: Threads = None,
    out: Out = Path("runs/paper"),
    data_root: DataRoot = None,
    dry_run: DryRun = False,
    read_only: ReadOnly = False,
) -> None:
    """Check the paper's 20 claims: run what they need, and print which hold."""
    numbers = _numbers(claims or (QUICK if quick else "1-20"))
    count = (1 if quick else 3) if seeds is None else seeds
    from ssil.cli.grid_display import run_missing  # brings torch
    from ssil.reproduction.evidence import Evidence, cells
    from ssil.reproduction.paper_claims import CLAIMS, check
    from ssil.reproduction.presets import find_preset

    preset, asked = find_preset(data), [claim for claim in CLAIMS if claim.number in numbers]
    needed = cells(preset.with_data_root(data_root), [need for claim in asked for need in claim.needs], range(count))
    complete = read_only or run_missing(needed, out, jobs, dry_run, threads=threads)
    if dry_run:
        return
    evidence = Evidence(out, preset, tuple(range(count)))
    findings = [finding for claim in asked for finding in check(claim, evidence)]
    if not any(finding.effects for finding in findings):
        raise UserError(f"out: {out} has no run that these claims need, not even {findings[0].missing}")
    _write(findings, out / preset.name)
    if not complete:
        raise SystemExit(1)


def _numbers(text: str) -> set[int]:
    """Return the numbers in a list of numbers and ranges.

    >>> sorted(_numbers("1,4-6"))
    [1, 4, 5, 6]
    """
    try:
        ranges = [[int(end) for end in part.split("-")] for part in text.split(",")]
        found = {number for ends in ranges for number in range(ends[0], ends[-1] + 1)}
    except ValueError:
        found = set()
    if not found or not found <= {*range(1, 21)}:
        raise UserError(f"claims: {text!r} is not a list of claims from 1 to 20, such as 1,4-8")
    return found


def _write(findings: Sequence["Finding"], folder: Path) -> None:
    """Print the findings, and write them to claims.md and claims.csv."""
    from ssil.reproduction.paper_claims import findings_table, tally

    found = findings_table(findings)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "claims.md").write_text(found.markdown())
    (folder / "claims.csv").write_text(found.csv())
    screen = console()
    screen.print(terminal_table(found))
    screen.print(tally(findings))
    screen.print(f"kept in {folder / 'claims.md'} and {folder / 'claims.csv'}")
