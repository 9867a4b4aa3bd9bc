"""`ssil claims`: check the paper's claims."""

from collections.abc import Sequence
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.table import Table as RichTable

from ssil.cli.grid import DataRoot, DryRun, EpochScale, EqualImages, Jobs, Out, Profile, ReadOnly, Threads, check_seeds
from ssil.cli.terminal import console, table
from ssil.core.errors import UserError

if TYPE_CHECKING:
    from ssil.reproduction.paper_claims import Finding

app = App(
    name="claims",
    help_epilogue="""Each claim is about one or several numbers that must lie in a range; over seeds
a number has a 95 % interval (Student's t, paired by seed). The claim holds if
the interval lies inside the range, does not hold if it lies outside, and
otherwise there is not enough evidence. One seed has no interval: its verdicts
are indicative. Where a claim is about the best or the worst of k comparisons,
the interval is widened for k (Holm). docs/paper.md states the rule of each.

Finished runs are not repeated. The findings are written beside them, to
claims.md and claims.csv; with --claims or --quick to files of their own, such
as claims-13-14.csv. Numbers marked "beside" do not count. SS is the separated
softmax, T the number of tasks, t one of them.

Presets for --data, with every method on the same part of its own schedule:
glyphs (synthetic, needs no download), cifar100-full, cifar100-full-20,
characters, omniglot-scaled; at the paper's scale imagenet, landmark-v2-1k,
landmark-v2-10k; or a file of your own, like those in
src/ssil/reproduction/preset_files/.

Examples:
  ssil claims --quick --jobs 2
  ssil claims --seeds 3 --jobs 2
  ssil claims --data cifar100-full --claims 2-8,13,14,21,22 --seeds 1 --dry-run""",
)

QUICK = "2-8,13,14,21,22"
COUNT = 22
"""Claims; known here too, so that a wrong number is refused before torch is imported."""


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
    profile: Profile = None,
    epoch_scale: EpochScale = None,
    equal_images: EqualImages = False,
    jobs: Jobs = 1,
    threads: Threads = None,
    out: Out = Path("runs/paper"),
    data_root: DataRoot = None,
    dry_run: DryRun = False,
    read_only: ReadOnly = False,
) -> None:
    """Check the paper's 22 claims: run what they need, and print which hold."""
    numbers = claim_numbers(claims or (QUICK if quick else f"1-{COUNT}"))
    chosen_seeds = check_seeds((1 if quick else 3) if seeds is None else seeds)
    from ssil.cli.grid_display import run_missing  # brings torch
    from ssil.reproduction.evidence import Evidence, cells
    from ssil.reproduction.paper_claims import CLAIMS, check
    from ssil.reproduction.presets import find_preset

    preset = find_preset(data).varied(profile, epoch_scale, equal_images)
    asked = [claim for claim in CLAIMS if claim.number in numbers]
    needed = cells(preset.with_data_root(data_root), [need for claim in asked for need in claim.needs], chosen_seeds)
    complete = read_only or run_missing(needed, out, jobs, dry_run, threads=threads)
    if dry_run:
        return
    evidence = Evidence(out, preset, tuple(chosen_seeds))
    findings = [finding for claim in asked for finding in check(claim, evidence)]
    if not any(finding.effects for finding in findings):
        raise UserError(f"out: {out} has no run that these claims need, not even {findings[0].missing}")
    path = out / preset.name / file_name(numbers)
    _write(findings, path)
    _print(findings, path)
    if not complete:
        raise SystemExit(1)


def claim_numbers(text: str) -> set[int]:
    """Return the numbers in a list of numbers and ranges.

    >>> sorted(claim_numbers("1,4-6"))
    [1, 4, 5, 6]
    """
    try:
        ranges = [[int(end) for end in part.split("-")] for part in text.split(",")]
        found = {number for ends in ranges for number in range(ends[0], ends[-1] + 1)}
    except ValueError:
        found = set()
    if not found or not found <= {*range(1, COUNT + 1)}:
        raise UserError(f"claims: {text!r} is not a list of claims from 1 to {COUNT}, such as 1,4-8")
    return found


def file_name(numbers: set[int]) -> str:
    """Return the name of the files for these claims: `claims`, or for some of them one with their numbers.

    >>> file_name({*range(1, 23)}), file_name({2, 3, 4, 13, 14, 22})
    ('claims', 'claims-2-4,13-14,22')
    """
    starts = [number for number in sorted(numbers) if number - 1 not in numbers]
    ends = [number for number in sorted(numbers) if number + 1 not in numbers]
    ranges = (str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True))
    return "claims" if len(numbers) == COUNT else f"claims-{','.join(ranges)}"


def _write(findings: Sequence["Finding"], path: Path) -> None:
    """Write the findings as Markdown and CSV."""
    from ssil.reproduction.paper_claims import findings_table

    found = findings_table(findings)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f"{path.name}.md").write_text(found.markdown())
    path.with_name(f"{path.name}.csv").write_text(found.csv())


def _print(findings: Sequence["Finding"], path: Path) -> None:
    """Print the numbers behind the verdicts, and as the last screen the verdicts."""
    from ssil.reproduction.paper_claims import tally

    screen = console()
    screen.print(_numbers_table(findings))
    screen.print()
    screen.print(_verdicts_table(findings))
    single = "; one seed: indicative" if any(finding.indicative for finding in findings) else ""
    screen.print(f"{tally(findings)}{single}")
    screen.print(f"kept in {path}.md and .csv")


def _numbers_table(findings: Sequence["Finding"]) -> RichTable:
    """Return a table with a row per effect."""
    from ssil.reproduction.paper_claims import effect_cells

    shown = table("claim", "effect", "mean", "95 % interval", "holds if", words=2)
    for finding in findings:
        heads = chain([f"{finding.claim.number} {finding.accuracy}".removesuffix(" -")], repeat(""))
        for head, cells in zip(heads, effect_cells(finding), strict=False):
            shown.add_row(head, *cells)
    return shown


def _verdicts_table(findings: Sequence["Finding"]) -> RichTable:
    """Return a table with a row per claim."""
    shown = table("", "claim", "verdict (top-1)", "top-5", words=2)
    for number, group in groupby(findings, lambda finding: finding.claim.number):
        first, *second = group
        shown.add_row(str(number), first.claim.text, str(first.verdict), *(str(one.verdict) for one in second))
    for column in shown.columns:
        column.justify = "left"
    return shown
