"""The report: one HTML page that needs nothing but itself."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Final
from urllib.parse import quote

from ssil.core import __version__
from ssil.reporting import across_streams, report_parts
from ssil.reporting.headline_table import headlines, numbers
from ssil.reporting.html import document
from ssil.reporting.sections import Section

PARTS: Final[dict[str, Callable[[Section], str]]] = {
    "Results": report_parts.results,
    "Accuracy along the stream": report_parts.accuracy,
    "Accuracy on each task": report_parts.tasks,
    "Bias to new classes": report_parts.bias,
    "Forgetting": report_parts.forgetting,
    "Time and memory": report_parts.cost,
    "Protocol": report_parts.protocol,
}
"""Of each stream."""

ACROSS: Final[dict[str, Callable[[Sequence[Section]], str]]] = {
    "Exemplars in a batch": across_streams.replay_sizes,
    "Where the bias comes from: a toy": across_streams.toy,
}
"""Below all streams; left out where there is nothing to show."""


def tables(sections: Sequence[Section]) -> dict[str, str]:
    """The headline table as files."""
    table = headlines(sections)
    return {"headline.md": table.markdown(), "headline.tex": table.latex(), "headline.csv": numbers(sections).csv()}


def page(sections: Sequence[Section]) -> str:
    """All of it, scripts and styles included."""
    title = f"Class-incremental learning: {_count(sum(len(section.runs) for section in sections), 'run')}"
    soft = f"Made by ssil {escape(__version__)}. The headline table: {_downloads(sections)}."
    places = range(len(sections))
    below = {name: text for name, made in ACROSS.items() if (text := made(sections))}
    entries = [*map(_entry, places, sections), *map(_entry_below, range(len(below)), below)]
    contents = f'<nav aria-label="contents"><ul>{"".join(entries)}</ul></nav>'
    body = [*map(_section, places, sections), *map(_section_below, range(len(below)), below, below.values())]
    return document(title, soft, f"{contents}\n{''.join(body)}")


def _count(number: int, noun: str) -> str:
    """A number of things.

    >>> _count(1, "run"), _count(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def _downloads(sections: Sequence[Section]) -> str:
    """The tables' files, held in the page itself."""
    return ", ".join(
        f'<a download="{name}" href="data:text/plain;charset=utf-8,{quote(text)}">{name}</a>'
        for name, text in tables(sections).items()
    )


def _entry(place: int, section: Section) -> str:
    """A section in the list of contents."""
    links = "".join(f'<a href="#part-{place}-{part}">{title}</a>' for part, title in enumerate(PARTS))
    return f'<li><a href="#stream-{place}">{escape(section.title)}</a><br><span class="parts">{links}</span></li>'


def _section(place: int, section: Section) -> str:
    drawn = [
        f'<h3 id="part-{place}-{part}">{title}</h3>\n{made(section)}'
        for part, (title, made) in enumerate(PARTS.items())
        if section.variants or made in (report_parts.results, report_parts.protocol)
    ]
    return f'<section>\n<h2 id="stream-{place}">{escape(section.title)}</h2>\n{"".join(drawn)}</section>\n'


def _entry_below(place: int, title: str) -> str:
    return f'<li><a href="#across-{place}">{title}</a></li>'


def _section_below(place: int, title: str, text: str) -> str:
    return f'<section>\n<h2 id="across-{place}">{title}</h2>\n{text}</section>\n'
