"""Two distillations from the same biased teacher (Fig. 9)."""

from matplotlib.figure import Figure

from ssil.benchmark.record import Record
from ssil.reporting.figures.curves import METRICS, PLAIN, Metric
from ssil.reporting.figures.lines import Runs, band, draw, entries, frame
from ssil.reporting.figures.style import looks, method_in, panels, shown, title

FIRST = 3
"""With one old task both distillations are the same."""


def branch_curves(runs: Runs, metric: Metric = "top5") -> Figure:
    """A chain of models, and models that branch off it for one task and teach nobody."""
    figure, (axes,) = panels(1, 1, 7, 4.2)
    styles = looks(runs)
    for name, records in runs.items():
        draw(axes, records, metric, styles[name], "task", FIRST)
    frame(axes, runs, "task", FIRST)
    axes.set_ylabel(f"{METRICS[metric]} accuracy over all classes seen (%)")
    title(axes, "Each task learnt twice, from the same teacher")
    labels = {name: _label(name, records[0]) for name, records in runs.items()}
    axes.legend(handles=[*entries(labels, styles), *band(runs)], **PLAIN)
    return figure


def _label(name: str, record: Record) -> str:
    chain, method = record.config.get("chain"), shown(method_in(name))
    return f"{method}, branching off {shown(chain)}" if chain else f"{method}, the chain"
