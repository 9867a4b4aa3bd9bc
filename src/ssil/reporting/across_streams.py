"""What no single stream shows: exemplars in a batch by T (the paper's Table S2), and a toy of the bias (its Fig. 3)."""

from collections.abc import Iterator, Sequence
from html import escape

from plotly import graph_objects as go
from torch import Tensor

from ssil.benchmark.record import Record
from ssil.benchmark.results import memory, settings
from ssil.reporting import html
from ssil.reporting.figures.replay_sizes import averages, cell_of
from ssil.reporting.figures.style import NEW, OLD
from ssil.reporting.figures.toy import LOSSES, descend, limits, stream
from ssil.reporting.panels import SHADES
from ssil.reporting.plots import SYMBOLS, figure
from ssil.reporting.sections import Section

VARIED = frozenset({"task_sizes", "training.increments", "options.replay_batch"})
"""In these, runs of one table differ."""


def replay_sizes(sections: Sequence[Section]) -> str:
    """A pair of heat maps for each set of runs that differ in N_M and T alone; nothing where N_M is never varied."""
    said = "Average accuracy by the exemplars in a batch (rows) and the increments of the stream, T (columns)."
    tables: dict[str, list[Record]] = {}
    for record in _replayed(sections):
        described = {name: value for name, value in settings(record).items() if name not in VARIED}
        tables.setdefault(repr((sorted(described.items()), _large_base(record))), []).append(record)
    drawn = [_table(records) for records in tables.values() if _varies(records)]
    return html.note(said) + "".join(drawn) if drawn else ""


def _replayed(sections: Sequence[Section]) -> Iterator[Record]:
    """The runs that have done their stream on replay batches."""
    for variant in (variant for section in sections for variant in section.variants if variant.finished):
        config = variant.records[0].config
        if config["options"].get("batches") == "replay" and config.get("training", {}).get("increments"):
            yield from variant.records


def _large_base(record: Record) -> bool:
    return len(record.task_sizes) > int(record.config["training"]["increments"])


def _varies(records: Sequence[Record]) -> bool:
    cells = {cell_of(record) for record in records}
    return len(cells) > len({increments for _, increments in cells})


def _table(records: Sequence[Record]) -> str:
    first = records[0]
    base = ", large base" if _large_base(first) else ""
    title = f"{first.config['dataset']}: {first.label}, {memory(first.config['memory'])}{base}"
    drawn = [_figure(f"Top-{k}", _heat_map(records, k)) for k in (1, 5)]
    return html.heading(escape(title)) + html.pair(*drawn)


def _heat_map(records: Sequence[Record], k: int) -> go.Figure:
    found = averages(records, k)
    low, high = found.limits
    trace = go.Heatmap(
        z=found.table,
        x=list(map(str, found.increments)),
        y=list(map(str, found.sizes)),
        text=found.texts,
        texttemplate="%{text}",
        zmin=low,
        zmax=high,
        colorscale=SHADES,
        showscale=False,
        xgap=2,
        ygap=2,
        hoverongaps=False,
        hovertemplate="T = %{x}, %{y} exemplars in a batch: %{text}<extra></extra>",
    )
    axis = {"type": "category", "ticks": "", "showgrid": False, "showline": False}
    return figure([trace], "T", "exemplars in a batch", xaxis=axis, yaxis=axis | {"autorange": "reversed"})


def toy(sections: Sequence[Section]) -> str:
    """Four scores under one softmax and under a separated one; nothing where no run has done a second task."""
    if not any(section.since(2).variants for section in sections):
        return ""
    samples = stream(rounds=6, new=8)
    paths = {name: descend(loss, samples) for name, loss in LOSSES.items()}
    span = limits(list(paths.values()))
    said = (
        "No run, but a model that is nothing but four scores: in each round eight images of the two new classes, then "
        "one exemplar of an old one (grey). Under one softmax every new image pushes the old scores down; separated, "
        "they wait for their own."
    )
    drawn = [_figure(escape(name), _paths(path, samples, span)) for name, path in paths.items()]
    return html.note(said) + html.pair(*drawn)


def _paths(path: Tensor, samples: Sequence[int], span: tuple[float, float]) -> go.Figure:
    lines = [
        {
            "type": "scatter",
            "name": f"{'old' if label < 2 else 'new'} class {label + 1}",
            "y": path[:, label].tolist(),
            "mode": "lines+markers",
            "line": {"color": OLD if label < 2 else NEW, "width": 2, "dash": "dash" if label < 2 else "solid"},
            "marker": {"symbol": SYMBOLS["os^D"[label]], "size": 6},
            "hovertemplate": "step %{x}: %{y:.2f}",
        }
        for label in range(4)
    ]
    exemplars = [
        {"type": "rect", "x0": step, "x1": step + 1, "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 0}}
        | {"fillcolor": "#d0d0d0", "layer": "below"}
        for step, label in enumerate(samples)
        if label < 2
    ]
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    return figure(lines, "gradient step", "score", yaxis_range=span, shapes=exemplars, showlegend=True, legend=legend)


def _figure(title: str, drawn: go.Figure) -> str:
    return f"<figure><figcaption><b>{title}</b></figcaption>{html.plot(drawn, title)}</figure>"
