"""A model's version as a page: what the last update did to old and new classes, each class, all updates before."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from plotly import graph_objects as go

from ssil.classifier.holdout import Marks
from ssil.classifier.learn_command import drops
from ssil.classifier.model_directory import ModelVersion
from ssil.core import __version__
from ssil.reporting.figures.style import NEW, OLD
from ssil.reporting.html import document, heading, note, plot
from ssil.reporting.plots import figure
from ssil.reporting.report_parts import AGES
from ssil.reporting.text_tables import Table

BARS = 40
"""Classes that are drawn; a table holds all of them."""
NAMED = 10
"""Of the classes that got worse, how many are named."""


class Judged(NamedTuple):
    """A version, and how it does in its quiz; how the version before did, if that is known."""

    version: ModelVersion
    after: Marks | None
    before: Marks | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in order of arrival."""
        return self.version.classifier.classes.names

    @property
    def old(self) -> tuple[str, ...]:
        """Those that the last update did not bring."""
        return self.names[: self.version.classifier.classes.old]


def model_page(title: str, judged: Judged) -> str:
    """All of it, scripts and styles included."""
    version = judged.version
    soft = f"{len(judged.names)} classes, {escape(_made(version))}. Made by ssil {escape(__version__)}."
    seen = f'<ul class="findings">{"".join(f"<li>{escape(one)}</li>" for one in findings(judged))}</ul>'
    body = f"<section>\n{seen}{_updates(version)}{_classes(judged)}\n<h3>Settings</h3>\n{_settings(version)}</section>"
    return document(f"{title}, version {version.number}", soft, body)


def _made(version: ModelVersion) -> str:
    settings = version.classifier.settings
    return f"{settings.method} on {settings.backbone} at {settings.image_size} pixels"


def findings(judged: Judged) -> Iterator[str]:
    """What one should know of the last update, in sentences."""
    entry = dict(judged.version.history[-1]) if judged.version.history else {}
    yield from _news(entry)
    if judged.after is None:
        yield "There is no quiz: of no class were there five pictures or more."
        return
    yield from _accuracies(entry, judged)
    worse = drops(judged.before, judged.after, judged.old) if judged.before else {}
    if worse:
        named = ", ".join(f"{name} (−{drop:.0f} points)" for name, drop in list(worse.items())[:NAMED])
        yield f"{len(worse)} of {len(judged.old)} old classes got worse: {named}{', …' * (len(worse) > NAMED)}."
    elif judged.before:
        yield "No old class got worse."
    if (gap := judged.after.score_gap) is not None:
        yield f"Scores lean to the {'new' if gap > 0 else 'old'} classes by {abs(gap):.2f} standard deviations."
    plain, tempered = entry.get("calibration_error_plain"), judged.version.classifier.temperature != 1
    adjusted = f"; before a temperature was fitted, by {plain:.0f}" if tempered and plain is not None else ""
    yield f"Confidence is off by {judged.after.calibration_error:.0f} points on average (calibration error){adjusted}."


def _news(entry: Mapping[str, Any]) -> Iterator[str]:
    kinds = [f"{len(entry[kind])} {word}" for kind, word in (("new", "new"), ("more", "known")) if entry.get(kind)]
    if kinds:
        yield f"The last update learnt {entry.get('pictures', '?')} pictures; classes: {', '.join(kinds)}."


def _accuracies(entry: Mapping[str, Any], judged: Judged) -> Iterator[str]:
    assert judged.after
    old, new = (judged.after.accuracy(names) for names in (judged.old, judged.names[len(judged.old) :]))
    was = judged.before.accuracy(judged.old) if judged.before else entry.get("old_before")
    if old is not None:
        before = f"{was:.1f} % before the update, " if was is not None else ""
        yield f"Right in the quiz, old classes: {before}{old:.1f} % after it."
    if new is not None:
        yield f"Right in the quiz, new classes: {new:.1f} %."


def _updates(version: ModelVersion) -> str:
    """Accuracies after each update that has any."""
    entries = [(number, entry) for number, entry in enumerate(version.history, 1) if entry.get("new_after") is not None]
    if len(entries) < 2:
        return ""
    lines = {"old_after": ("old classes", OLD, "square"), "new_after": ("new classes", NEW, "circle")}
    traces = [_line(entries, kind, *look) for kind, look in lines.items()]
    ticks = max(1, len(entries) // 12)
    drawn = figure(traces, "update", "right in the quiz (%)", yaxis_range=[0, 103], xaxis_dtick=ticks)
    return f"{heading('After each update')}{note(AGES)}{plot(drawn, 'accuracy after each update', 'height: 16rem')}"


def _line(entries: Sequence[tuple[int, Mapping[str, Any]]], kind: str, name: str, colour: str, symbol: str) -> Any:
    found = [(number, entry[kind]) for number, entry in entries if entry.get(kind) is not None]
    x, y = zip(*found, strict=True) if found else ((), ())
    look = {"color": colour, "symbol": symbol, "size": 8}
    drawn = go.Scatter(x=x, y=y, name=name, mode="lines+markers", line={"color": colour}, marker=look)
    return drawn.update(cliponaxis=False)


def _classes(judged: Judged) -> str:
    title = heading("Each class in the quiz")
    if judged.after is None:
        return f"{title}{_table(judged)}"
    shown = sorted(judged.after.classes, key=lambda name: _share(judged.after, name))[:BARS]
    few = f" The {BARS} worst of {len(judged.after.classes)}." if len(judged.after.classes) > BARS else ""
    diamonds = " Diamonds: before the update." if judged.before else ""
    key = note(f"Percent right, the worst first: {AGES}.{diamonds}{few}")
    height = f"height: {4 + 1.4 * len(shown):.1f}rem"
    return f"{title}{key}{plot(_bars(judged, shown), 'accuracy of each class', height)}{_table(judged)}"


def _bars(judged: Judged, shown: Sequence[str]) -> go.Figure:
    old, labels = {*judged.old}, [escape(name if len(name) <= 24 else f"{name[:23]}…") for name in shown]
    places = [*range(len(shown))]
    shares = [_share(judged.after, name) for name in shown]
    colours = [OLD if name in old else NEW for name in shown]
    texts = [_of(judged.after, name) for name in shown]
    bars = go.Bar(x=shares, y=places, orientation="h", marker_color=colours, text=texts)
    beside = ["inside" if share > 20 else "outside" for share in shares]
    traces: list[Any] = [bars.update(textposition=beside, insidetextanchor="start", hoverinfo="text")]
    if judged.before:
        known = [(place, name) for place, name in enumerate(shown) if name in judged.before.classes]
        before = [_share(judged.before, name) for _, name in known]
        look = {"color": "#222222", "symbol": "diamond-open", "size": 9, "line": {"width": 2}}
        points = go.Scatter(x=before, y=[place for place, _ in known], mode="markers", marker=look, name="before")
        traces.append(points.update(cliponaxis=False))
    axis = {"tickvals": places, "ticktext": labels, "autorange": "reversed", "showgrid": False}
    return figure(traces, "right in the quiz (%)", "", xaxis_range=[0, 102], yaxis=axis)


def _share(marks: Marks | None, name: str) -> float:
    return (marks.accuracy([name]) if marks else None) or 0.0


def _of(marks: Marks | None, name: str) -> str:
    mark = marks.classes.get(name) if marks else None
    return f"{mark.right} of {mark.of}" if mark else "–"


def _table(judged: Judged) -> str:
    known = judged.version.classifier
    rows = [
        [
            name,
            str(arrival),
            str(len(known.exemplars[label])),
            *([_of(judged.before, name)] if judged.before else []),
            _of(judged.after, name),
        ]
        for label, (name, arrival) in enumerate(zip(judged.names, judged.version.arrivals(), strict=True))
    ]
    before = ["before"] if judged.before else []
    table = Table(["class", "since update", "exemplars", *before, "right in the quiz"], rows)
    return f'<div class="pair"><div class="scroll">{table.html()}</div></div>'


def _settings(version: ModelVersion) -> str:
    said = {
        name.replace("_", " "): value
        for name, value in version.classifier.settings.model_dump(mode="json").items()
        if value not in (None, {}, "")
    }
    return (
        f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>' for name, value in said.items())}</dl>"
    )
