"""The page of a model version: what the last update did to old and new classes, each class, all earlier updates."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from plotly import graph_objects as go

from ssil.classifier.holdout import HoldoutResult, accuracy_drops
from ssil.classifier.model_directory import ModelVersion
from ssil.core.errors import UserError
from ssil.core.files import replacing
from ssil.core.plugins import short_name
from ssil.reporting.figures.style import NEW, OLD
from ssil.reporting.pages import render
from ssil.reporting.plotly_figures import AGES, framed, line_trace
from ssil.reporting.text_tables import Table

BARS = 40
"""Largest number of classes drawn; the table lists all of them."""
NAMED = 10
"""Largest number of classes named among those that got worse."""


class EvaluatedVersion(NamedTuple):
    """A model version with its hold-out results, and those of the version before if they are known."""

    version: ModelVersion
    after: HoldoutResult | None
    before: HoldoutResult | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in order of arrival."""
        return self.version.classifier.classes.names

    @property
    def old(self) -> tuple[str, ...]:
        """The classes that were known before the last update."""
        return self.names[: self.version.classifier.classes.old]


def model_page(title: str, model: EvaluatedVersion) -> str:
    """Return the whole page; scripts and styles are part of it."""
    version, settings = model.version, model.version.classifier.settings
    shown = sorted(model.after.classes, key=lambda name: _accuracy(model.after, name))[:BARS] if model.after else []
    return render(
        "model.html",
        title=f"{title}, version {version.number}",
        model=model,
        classifier=f"{settings.method} on {short_name(settings.backbone)} at {settings.image_size} pixels",
        findings=findings(model),
        updates=_updates(version),
        shown=shown,
        bars=_bars(model, shown) if model.after else None,
        table=_table(model),
        settings={
            name.replace("_", " "): value
            for name, value in settings.model_dump(mode="json").items()
            if value not in (None, {}, "")
        },
    )


def write_model_page(
    path: Path, title: str, version: ModelVersion, after: HoldoutResult | None, before: HoldoutResult | None = None
) -> None:
    """Write the page of a version; raise UserError if the file can't be written."""
    try:
        with replacing(path) as file:
            file.write(model_page(title, EvaluatedVersion(version, after, before)).encode())
    except OSError as error:
        raise UserError(f"html: {path} can't be written ({error.strerror}); give another file") from None


def findings(model: EvaluatedVersion) -> list[str]:
    """Return sentences about the last update: data, accuracies, classes that got worse, bias and calibration."""
    entry = dict(model.version.history[-1]) if model.version.history else {}
    if model.after is None:
        return [*_data(entry), "There is no hold-out set: no class had five images or more."]
    return [*_data(entry), *_accuracies(entry, model), *_worse(model), *_confidence(entry, model)]


def _data(entry: Mapping[str, Any]) -> Iterator[str]:
    kinds = [f"{len(entry[kind])} {word}" for kind, word in (("new", "new"), ("more", "known")) if entry.get(kind)]
    if kinds:
        yield f"The last update learnt {entry.get('pictures', '?')} images; classes: {', '.join(kinds)}."


def _accuracies(entry: Mapping[str, Any], model: EvaluatedVersion) -> Iterator[str]:
    assert model.after
    old, new = (model.after.accuracy(names) for names in (model.old, model.names[len(model.old) :]))
    was = model.before.accuracy(model.old) if model.before else entry.get("old_before")
    if old is not None:
        before = f"{was:.1f} % before the update, " if was is not None else ""
        yield f"Hold-out accuracy, old classes: {before}{old:.1f} % after it."
    if new is not None:
        yield f"Hold-out accuracy, new classes: {new:.1f} %."


def _worse(model: EvaluatedVersion) -> Iterator[str]:
    if not model.before or not model.after:
        return
    if worse := accuracy_drops(model.before, model.after, model.old):
        named = ", ".join(f"{name} (−{drop:.0f} points)" for name, drop in list(worse.items())[:NAMED])
        yield f"{len(worse)} of {len(model.old)} old classes got worse: {named}{', …' * (len(worse) > NAMED)}."
    else:
        yield "No old class got worse."


def _confidence(entry: Mapping[str, Any], model: EvaluatedVersion) -> Iterator[str]:
    assert model.after
    if (gap := model.after.score_gap) is not None:
        yield f"Scores lean to the {'new' if gap > 0 else 'old'} classes by {abs(gap):.2f} standard deviations."
    plain, scaled = entry.get("calibration_error_plain"), model.version.classifier.temperature != 1
    before = f"; before a temperature was fitted, by {plain:.0f}" if scaled and plain is not None else ""
    yield f"Confidence is off by {model.after.calibration_error:.0f} points on average (calibration error){before}."


def _updates(version: ModelVersion) -> go.Figure | None:
    """Draw hold-out accuracies after each update; None with fewer than two updates that have them."""
    entries = [(number, entry) for number, entry in enumerate(version.history, 1) if entry.get("new_after") is not None]
    if len(entries) < 2:
        return None
    traces = []
    for age, (colour, dash, symbol) in AGES.items():
        found = {number: entry[f"{age}_after"] for number, entry in entries if entry.get(f"{age}_after") is not None}
        line = line_trace(
            f"{age} classes", [*found.values()], colour, dash, symbol, "update %{x}: %{y:.1f} %", [*found]
        )
        traces.append(line | {"marker": {"symbol": symbol, "size": 8}, "cliponaxis": False})
    ticks = max(1, len(entries) // 12)
    return framed(traces, "update", "hold-out accuracy (%)", yaxis_range=[0, 103], xaxis_dtick=ticks)


def _bars(model: EvaluatedVersion, shown: Sequence[str]) -> go.Figure:
    """Draw the hold-out accuracy of each class after the update as bars, and before it as diamonds."""
    old, labels = {*model.old}, [escape(name if len(name) <= 24 else f"{name[:23]}…") for name in shown]
    places = [*range(len(shown))]
    accuracies = [_accuracy(model.after, name) for name in shown]
    colours = [OLD if name in old else NEW for name in shown]
    texts = [_counts(model.after, name) for name in shown]
    bars = go.Bar(x=accuracies, y=places, orientation="h", marker_color=colours, text=texts)
    positions = ["inside" if accuracy > 20 else "outside" for accuracy in accuracies]
    traces: list[Any] = [bars.update(textposition=positions, insidetextanchor="start", hoverinfo="text")]
    if model.before:
        known = [(place, name) for place, name in enumerate(shown) if name in model.before.classes]
        before = [_accuracy(model.before, name) for _, name in known]
        marker = {"color": "#222222", "symbol": "diamond-open", "size": 9, "line": {"width": 2}}
        points = go.Scatter(x=before, y=[place for place, _ in known], mode="markers", marker=marker, name="before")
        traces.append(points.update(cliponaxis=False))
    axis = {"tickvals": places, "ticktext": labels, "autorange": "reversed", "showgrid": False}
    return framed(traces, "hold-out accuracy (%)", "", xaxis_range=[0, 102], yaxis=axis)


def _accuracy(result: HoldoutResult | None, name: str) -> float:
    return (result.accuracy([name]) if result else None) or 0.0


def _counts(result: HoldoutResult | None, name: str) -> str:
    found = result.classes.get(name) if result else None
    return f"{found.correct} of {found.total}" if found else "–"


def _table(model: EvaluatedVersion) -> Table:
    exemplars = model.version.classifier.exemplars
    results = [model.before, model.after] if model.before else [model.after]
    rows = [
        [name, str(arrival), str(len(exemplars[label])), *(_counts(result, name) for result in results)]
        for label, (name, arrival) in enumerate(zip(model.names, model.version.arrivals(), strict=True))
    ]
    before = ["before"] if model.before else []
    return Table(["class", "since update", "exemplars", *before, "right"], rows)
