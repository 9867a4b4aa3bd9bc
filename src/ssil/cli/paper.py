"""`ssil paper`: its tables and figures, made again."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from ssil.cli.grid import DataRoot, DryRun, Jobs, Out, ReadOnly
from ssil.cli.terminal import console, table
from ssil.core.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from ssil.reporting.text_tables import Table
    from ssil.reproduction.evidence import Evidence, Need
    from ssil.reproduction.items import Item
    from ssil.reproduction.presets import Preset

app = App(
    name="paper",
    help_epilogue="""Without a name: the list of tables and figures, and how many runs each needs.

A table's cells are "ours / the paper's". With --scale small, data that a laptop
can learn stand in for the paper's: CIFAR-100 for ImageNet, CIFAR-100 with an
uneven number of images a class for Landmark-v2-1K, Omniglot's first 1,000
classes for Landmark-v2-10K, with the same T; docs/paper.md has the mapping.
Runs that are done are not run again; what can be made of those that are done
is made.

Examples:
  ssil paper
  ssil paper table1 --dataset imagenet --data-root path/to/data --dry-run
  ssil paper table1 fig5 --dataset imagenet --scale small --jobs 2
  ssil paper table1 --dataset landmark-v2-10k --scale small --only base-fixed-t10-2
  ssil paper all --data glyphs --read-only""",
)

SMALL = {"imagenet": "cifar100", "landmark-v2-1k": "cifar100-uneven", "landmark-v2-10k": "omniglot"}


@app.default
def paper(
    *names: Annotated[str, Parameter(help="tables and figures, such as table1 or fig6; or all")],
    dataset: Annotated[
        Literal["imagenet", "landmark-v2-1k", "landmark-v2-10k"], Parameter(help="the paper's data")
    ] = "imagenet",
    scale: Annotated[
        Literal["paper", "small"], Parameter(help="the paper's own data, or what stands for them")
    ] = "paper",
    data: Annotated[str | None, Parameter(help="other data, see `ssil claims --help`; takes the place of both")] = None,
    only: Annotated[
        str | None, Parameter(help="only the columns of this name, or pattern of names: base-fixed-t10-10, *-t10-*")
    ] = None,
    seeds: Annotated[int, Parameter(help="runs with seeds 0 to SEEDS - 1")] = 1,
    jobs: Jobs = 1,
    out: Out = Path("runs/paper"),
    data_root: DataRoot = None,
    dry_run: DryRun = False,
    read_only: ReadOnly = False,
) -> None:
    """List the paper's tables and figures, or run what they need and make them."""
    from ssil.cli.grid_display import run_missing  # brings torch and matplotlib
    from ssil.reproduction.evidence import Evidence, cells
    from ssil.reproduction.presets import find_preset

    preset = find_preset(data or (SMALL[dataset] if scale == "small" else dataset))
    chosen = _chosen(names)
    if not chosen:
        _list()
        return
    needed = cells(preset.at(data_root), _needs(chosen, preset, only), range(seeds))
    complete = read_only or run_missing(needed, out, jobs, dry_run)
    if dry_run:
        return
    _make(chosen, Evidence(out, preset, tuple(range(seeds))))
    if not complete:
        raise SystemExit(1)


def _chosen(names: Sequence[str]) -> "Sequence[Item]":
    from ssil.reproduction.items import ITEMS

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
        raise UserError(f"only: {only!r} names no column of what is asked for; there are {there}")
    return wanted


def _list() -> None:
    from ssil.reproduction.items import ITEMS

    made = table("name", "what it shows", "runs", words=2)
    for item in ITEMS:
        made.add_row(item.name, item.title, str(len({need.run for need in item.needs})))
    console().print(made)
    console().print("runs: for one seed and one of the data; `ssil paper NAME --dry-run` lists them")


def _make(items: "Iterable[Item]", evidence: "Evidence") -> None:
    from ssil.reporting.figures.style import save
    from ssil.reproduction.evidence import MissingError

    screen, folder = console(), evidence.root / evidence.preset.name
    for item in items:
        try:
            tables, figures = item.tables(evidence), item.figures(evidence)
        except MissingError:
            screen.print(f"{item.name}: its runs have not been made")
            continue
        for end, made in tables.items():
            path = folder / "tables" / "-".join(filter(None, (item.name, end)))
            path.parent.mkdir(parents=True, exist_ok=True)
            for kind, text in (("md", made.markdown()), ("tex", made.latex()), ("csv", made.csv())):
                path.with_name(f"{path.name}.{kind}").write_text(text)
            screen.print(_shown(item.title, made))
            screen.print(f"{item.name}: {path}.md, .tex, .csv")
        absent = [need for need in item.needs if not evidence.has(need.condition, need.line)]
        if absent:
            first = f"{absent[0].line} in {evidence.preset.column(absent[0].condition)}"
            screen.print(f"{item.name}: lacks {len(absent)} of {len(item.needs)} lines, the first is {first}")
        for end, figure in figures.items():
            path = folder / "figures" / "-".join(filter(None, (item.name, end)))
            save(figure, path)
            screen.print(f"{item.name}: {path}.png, .svg, .pdf")


def _shown(title: str, made: "Table") -> object:
    shown = table(*made.header, words=made.words, title=title)
    for row in made.rows:
        shown.add_row(*row)
    return shown
