"""`ssil paper`: reproduce the paper's tables and figures."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from rich.table import Table as RichTable

from ssil.cli.grid import DataRoot, DryRun, EpochScale, EqualImages, Jobs, Out, Profile, ReadOnly, Threads, check_seeds
from ssil.cli.terminal import console, table
from ssil.core.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from ssil.benchmark.grid.cells import Cell
    from ssil.reporting.text_tables import Table
    from ssil.reproduction.evidence import Evidence, Need
    from ssil.reproduction.paper_scenarios import Condition
    from ssil.reproduction.presets import Preset
    from ssil.reproduction.tables_and_figures import Item

app = App(
    name="paper",
    help_epilogue="""Without a name: the list of tables and figures, and how many runs each needs.

A table's cells are "ours / the paper's". With --scale small, smaller data sets
that a laptop can learn replace the paper's, with the same T, and every method
trains for the same part of its own schedule: CIFAR-100 for ImageNet, 1,000
printed characters for Landmark-v2-1K, 1,000 handwritten ones (Omniglot) for
Landmark-v2-10K (see docs/paper.md). Finished runs are not repeated; tables and
figures are made from the finished runs, even if some are missing. --dry-run
also prints what each method's training costs: images, gradient steps, seconds,
and how its images compare with SS-IL's here and in the paper.

With --profile, --epoch-scale or --equal-images, runs and tables go to a folder
of their own beside the preset's.

Examples:
  ssil paper
  ssil paper table1 --dataset imagenet --data-root path/to/data --dry-run
  ssil paper table1 fig5 --dataset imagenet --scale small --jobs 2
  ssil paper table1 --dataset landmark-v2-10k --scale small --only '*-t10-2'
  ssil paper table1 --data cifar100-full --equal-images --dry-run
  ssil paper table1 --dataset imagenet --profile official
  ssil paper all --data glyphs --read-only""",
)

SMALL = {"imagenet": "cifar100-full", "landmark-v2-1k": "characters", "landmark-v2-10k": "omniglot-scaled"}


@app.default
def paper(
    *names: Annotated[str, Parameter(help="tables and figures, such as table1 or fig6; or all")],
    dataset: Annotated[
        Literal["imagenet", "landmark-v2-1k", "landmark-v2-10k"], Parameter(help="the paper's data")
    ] = "imagenet",
    scale: Annotated[
        Literal["paper", "small"], Parameter(help="the paper's own data sets, or small ones in their place")
    ] = "paper",
    data: Annotated[
        str | None, Parameter(help="another preset, see `ssil claims --help`; overrides --dataset and --scale")
    ] = None,
    only: Annotated[
        str | None, Parameter(help="only columns whose name matches, such as base-fixed-t10-10 or *-t10-*")
    ] = None,
    seeds: Annotated[int, Parameter(help="runs with seeds 0 to SEEDS - 1")] = 1,
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
    """List the paper's tables and figures, or run what they need and write them."""
    from ssil.cli.grid_display import run_missing  # brings torch and matplotlib
    from ssil.reproduction.evidence import Evidence, cells
    from ssil.reproduction.presets import find_preset

    chosen_seeds = check_seeds(seeds)
    preset = find_preset(data or (SMALL[dataset] if scale == "small" else dataset))
    preset = preset.varied(profile, epoch_scale, equal_images)
    chosen = _chosen(names)
    if not chosen:
        _list()
        return
    wanted = _needs(chosen, preset, only)
    needed = cells(preset.with_data_root(data_root), wanted, chosen_seeds)
    complete = read_only or run_missing(needed, out, jobs, dry_run, threads=threads)
    if dry_run:
        runs = list(dict.fromkeys(need.run for need in wanted))
        _print_budgets(runs, preset, needed, out)
        return
    _write(chosen, Evidence(out, preset, tuple(chosen_seeds)))
    if not complete:
        raise SystemExit(1)


def _chosen(names: Sequence[str]) -> "Sequence[Item]":
    from ssil.reproduction.tables_and_figures import ITEMS

    known = {item.name: item for item in ITEMS}
    if "all" in names:
        return ITEMS
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, f"it has: {', '.join(known)}", count=3)
            raise UserError(f"paper: it has no {name!r}; {hint}")
    return [known[name] for name in names]


def _needs(items: "Iterable[Item]", preset: "Preset", only: str | None) -> "list[Need]":
    columns = {need: preset.column(need.condition) for item in items for need in item.needs}
    wanted = [need for need, name in columns.items() if fnmatch(name, only or "*")]
    if only and not wanted:
        there = ", ".join(dict.fromkeys(columns.values())) or "none"
        raise UserError(f"only: {only!r} names no column of these tables and figures; there are {there}")
    return wanted


def _print_budgets(
    runs: "Sequence[tuple[Condition, str]]", preset: "Preset", cells: "Sequence[Cell]", out: Path
) -> None:
    """Print what the training of each row costs, with the seconds that finished runs or a first probe forecast."""
    from ssil.benchmark.grid.forecast import seconds_per_pass
    from ssil.reproduction.budget_table import budget_table

    if not preset.known_images:
        console().print("budgets are not known: the preset does not state `images`, its training images of a class")
        return
    passes = {cell: preset.budget(*run).passes for cell, run in zip(cells, runs, strict=False)}
    title = f"budgets on {preset.title}: training with one seed"
    console().print(terminal_table(budget_table(preset, runs, seconds_per_pass(passes, out)), title))


def _list() -> None:
    from ssil.reproduction.tables_and_figures import ITEMS

    listed = table("name", "what it shows", "runs", words=2)
    for item in ITEMS:
        listed.add_row(item.name, item.title, str(len({need.run for need in item.needs})))
    console().print(listed)
    console().print("runs: for one seed and one data set; `ssil paper NAME --dry-run` lists them")


def _write(items: "Iterable[Item]", evidence: "Evidence") -> None:
    """Write the tables and figures whose runs exist, and print tables, file names and what is missing."""
    from ssil.reporting.figures.style import save
    from ssil.reproduction.evidence import MissingError

    screen, folder = console(), evidence.root / evidence.preset.name
    for item in items:
        try:
            tables, figures = item.tables(evidence), item.figures(evidence)
        except MissingError:
            screen.print(f"{item.name}: its runs are missing")
            continue
        for end, found in tables.items():
            path = folder / "tables" / "-".join(filter(None, (item.name, end)))
            _write_table(found, path)
            screen.print(terminal_table(found, item.title))
            screen.print(f"{item.name}: {path}.md, .tex, .csv")
        absent = [need for need in item.needs if not evidence.has(need.condition, need.line)]
        if absent:
            first = f"{absent[0].line} in {evidence.preset.column(absent[0].condition)}"
            screen.print(f"{item.name}: lacks {len(absent)} of {len(item.needs)} lines, the first is {first}")
        for end, figure in figures.items():
            path = folder / "figures" / "-".join(filter(None, (item.name, end)))
            save(figure, path)
            screen.print(f"{item.name}: {path}.png, .svg, .pdf")


def _write_table(found: "Table", path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix, text in (("md", found.markdown()), ("tex", found.latex()), ("csv", found.csv())):
        path.with_name(f"{path.name}.{suffix}").write_text(text)


def terminal_table(found: "Table", title: str | None = None) -> RichTable:
    """Return a text table for printing."""
    shown = table(*found.header, words=found.words, title=title)
    for row in found.rows:
        shown.add_row(*row)
    return shown
