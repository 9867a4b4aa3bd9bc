"""The page of `ssil report`, and the headline table as files."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from matplotlib.figure import Figure

from ssil.benchmark.record import Record
from ssil.benchmark.results import comparable_settings, describe_budget
from ssil.reporting import findings
from ssil.reporting.figures.ablations import replay_cell
from ssil.reporting.figures.curves import accuracy_curves
from ssil.reporting.headline_table import COLUMNS, by_stream, headline, headlines, numbers
from ssil.reporting.pages import render
from ssil.reporting.protocol_card import card
from ssil.reporting.sections import Section
from ssil.reporting.significance import marks, note, significance

REPLAY_SETTINGS: Final = frozenset({"task_sizes", "training.increments", "options.replay_batch"})
"""Settings in which the runs of one table of exemplars in a batch (N_M) by T may differ."""


def tables(
    sections: Sequence[Section], columns: Sequence[str] = ("average_top1",), baseline: str | None = None
) -> dict[str, str]:
    """Return tables by file name: the headline as Markdown, LaTeX and CSV, and variants by streams for a paper.

    The latter has for each stream the `columns`, by their names in headline.csv. With a `baseline`, stars tell which
    variants differ from it, and further tables state the comparisons.
    """
    table = headlines(sections)
    found = {
        "headline.md": table.markdown(),
        "headline.tex": table.latex(),
        "headline.csv": numbers(sections).csv(),
    }
    if not baseline:
        return {**found, "methods.tex": by_stream(sections, columns).latex()}
    starred = by_stream(sections, columns, marks(sections, baseline, columns))
    compared = significance(sections, baseline, columns)
    return {
        **found,
        "methods.tex": replace(starred, note=note(sections, baseline, columns)).latex(),
        "significance.md": compared.markdown(),
        "significance.csv": compared.csv(),
    }


def figures(sections: Sequence[Section]) -> dict[str, Figure]:
    """Return figures for a paper by file name, without a suffix: the accuracy along each stream."""
    several = len(sections) > 1
    return {
        f"accuracy{f'-{number}' * several}": accuracy_curves(
            {one.name: one.records for one in section.variants}, title=section.title
        )
        for number, section in enumerate(sections, 1)
        if section.variants
    }


def page(sections: Sequence[Section], columns: Sequence[str] = ("average_top1",), baseline: str | None = None) -> str:
    """Return the whole page; scripts and styles are part of it. See `tables` for the arguments."""
    runs = sum(len(section.runs) for section in sections)
    return render(
        "report.html",
        title=f"Class-incremental learning: {runs} run{'s' * (runs != 1)}",
        sections=sections,
        tables=tables(sections, columns, baseline),
        significance=significance(sections, baseline, columns) if baseline else None,
        note=note(sections, baseline, columns) if baseline else "",
        replay_tables=replay_tables(sections),
        biased=any(section.since(2).variants for section in sections),
        findings=findings,
        headline=headline,
        columns=COLUMNS,
        card=card,
    )


def replay_tables(sections: Sequence[Section]) -> list[tuple[str, list[Record]]]:
    """Return titles and records of runs that differ in N_M and T only (Table S2), where N_M takes several values."""
    groups: dict[str, list[Record]] = {}
    for record in _replay_records(sections):
        same = {name: value for name, value in comparable_settings(record).items() if name not in REPLAY_SETTINGS}
        groups.setdefault(repr((sorted(same.items()), _large_base(record))), []).append(record)
    return [(_replay_title(records[0]), records) for records in groups.values() if _varies(records)]


def _replay_records(sections: Sequence[Section]) -> Iterator[Record]:
    """Yield the records of finished runs with exemplars in every batch."""
    for variant in (variant for section in sections for variant in section.variants if variant.finished):
        config = variant.records[0].config
        if config["options"].get("batches") == "replay" and config.get("training", {}).get("increments"):
            yield from variant.records


def _large_base(record: Record) -> bool:
    return len(record.task_sizes) > int(record.config["training"]["increments"])


def _varies(records: Sequence[Record]) -> bool:
    """Return whether two records have the same T and another N_M."""
    cells = {replay_cell(record) for record in records}
    return len(cells) > len({increments for _, increments in cells})


def _replay_title(record: Record) -> str:
    base = ", large base" if _large_base(record) else ""
    return f"{record.config['dataset']}: {record.label}, {describe_budget(record.memory)}{base}"
