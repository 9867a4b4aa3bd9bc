"""The parts of a section, as HTML."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Final

from plotly import graph_objects as go

from ssil.benchmark.record import Record, summarise
from ssil.benchmark.results import Run
from ssil.reporting import findings, html, panels, plots
from ssil.reporting.figures.style import NEW, OLD, MethodStyle
from ssil.reporting.headline_table import headline
from ssil.reporting.legend import legend, sample
from ssil.reporting.protocol_card import card
from ssil.reporting.sections import Section, Variant

SCALE: Final = (
    f'0 <span class="shades" style="background: linear-gradient(to right, {", ".join(panels.SHADES)})"></span> 100 %'
)
AGES: Final = (
    f'<span class="key">{sample(MethodStyle(NEW, "o", "-"))} new classes, '
    f"{sample(MethodStyle(OLD, 's', '--'))} old ones</span>"
)


def results(section: Section) -> str:
    """What one sees, and the headline table."""
    said = [*findings.accuracy(section), *findings.bias(section), *findings.forgetting(section)]
    seen = f'<ul class="findings">{"".join(f"<li>{one}</li>" for one in said)}</ul>' if said else ""
    table = f'<div class="scroll">{headline(section).html()}</div>' if section.variants else ""
    return f"{seen}{table}{html.note(*_remarks(section))}{html.note(*findings.unfinished(section))}"


def _remarks(section: Section) -> list[str]:
    if not section.variants:
        return []
    said = "Percent; averages over all tasks, the first included; mean ± standard deviation over seeds."
    marked = " Bold: the best of the finished variants; on the newest task, the nearest to its share of the images."
    return [said + (marked if sum(variant.rival for variant in section.variants) > 1 else "")]


def accuracy(section: Section) -> str:
    """Top-1 and top-5 curves."""
    top1 = plots.curves(section, lambda task: task.top1, "top-1 accuracy (%)")
    top5 = plots.curves(section, lambda task: task.top5, "top-5 accuracy (%)")
    said = "Over the test images of all classes seen so far; a band is one standard deviation over seeds to each side."
    few = ", which is 100 for up to five classes"
    return html.note(said) + html.pair(_figure("Top-1", "", top1, section), _figure("Top-5", few, top5, section))


def tasks(section: Section) -> str:
    """Heat maps of the accuracy on each task."""
    said = "Top-1 on the classes of each task (columns) after each task (rows); a column that fades is being forgotten."
    return f"{html.note(said, SCALE)}{_grid(section.variants, panels.accuracy_by_task)}"


def bias(section: Section) -> str:
    """Where predictions fall, what scores and probabilities say, and what the previous model sees in new images."""
    later = section.since(2)
    if not later.variants:
        return html.note("Bias shows from the second task on.")
    share = _figure("Predictions on the newest task", ", dotted: its share of the images", plots.newest(later), later)
    return f"{html.pair(share)}{_confusion(later)}{_scores(later)}{_probabilities(later)}{_teachers(later)}"


def _confusion(section: Section) -> str:
    said = "After the last task: true task (rows) by task of the predicted class (columns), percent of a row."
    heading = html.heading("Which task the predictions fall on")
    return f"{heading}{html.note(said, SCALE)}{_grid(section.variants, panels.task_confusion)}"


def _scores(section: Section) -> str:
    heading = html.heading("Mean scores of old and new classes", *findings.scores(section))
    return f"{heading}{html.note(f'Over all test images: {AGES}.')}{_grid(section.variants, panels.scores, 'wide')}"


def _probabilities(section: Section) -> str:
    found = [panels.means(variant, name) for variant in section.variants for name in ("softmax_old", "softmax_new")]
    drawn = [value for values in found for value in values if value > 0] or [0.1]
    span = max(min(drawn), 1e-5), max(drawn)
    heading = html.heading("Mean probabilities of an old and of a new class", *findings.probabilities(section))
    said = f"{AGES}; dotted: an equal share for each class. The scale is logarithmic: the distance between the lines"
    note = html.note(f"{said} says how many times likelier one kind is.")
    return f"{heading}{note}{_grid(section.variants, lambda variant: panels.probabilities(variant, *span), 'wide')}"


def _teachers(section: Section) -> str:
    said = "Before training: the old tasks (columns) that the images of a new one (rows) are taken for."
    heading = html.heading("What the previous model sees in a new task", *findings.teachers(section))
    return f"{heading}{html.note(said, SCALE)}{_grid(section.variants, panels.teacher_ratio)}"


def forgetting(section: Section) -> str:
    """Bars: how far tasks fell from their best."""
    said = "Mean over the tasks before the last of (best earlier accuracy) − (final accuracy), in points."
    return html.note(said) + html.pair(
        _bars(section, "forgetting (points)", lambda run: summarise(run.tasks).forgetting, 1)
    )


def cost(section: Section) -> str:
    """Bars: seconds and peak memory."""
    said = "Seconds of all tasks done (training, evaluation, exemplars); peak memory of the process, or of the GPU."
    return html.note(said, *findings.cost(section)) + html.pair(
        _bars(section, "seconds", lambda run: summarise(run.tasks).seconds),
        _bars(section, "peak memory (MB)", lambda run: max(task.peak_memory_mb for task in run.tasks)),
    )


def protocol(section: Section) -> str:
    """A card for each run."""
    return "".join(
        _card(variant.name, run) for variant in (*section.variants, *section.waiting) for run in variant.runs
    )


def _card(name: str, run: Run) -> str:
    said = card(run)
    state = "" if run.record.summary else f", {said['state'][0]}"
    title = escape(f"{name}, seed {run.record.config.get('seed', '?')}{state}")
    parts = "".join(_entry(heading, lines) for heading, lines in said.items())
    return (
        f'<details><summary>{title} <span class="soft">{escape(str(run.folder))}</span></summary>'
        f"<dl>{parts}</dl></details>\n"
    )


def _entry(heading: str, lines: list[str]) -> str:
    kind = ' class="long"' if heading == "class order" else ""
    tag = "code" if heading == "command" else "div"
    body = "".join(f"<{tag}>{escape(line)}</{tag}>" for line in lines)
    return f"<dt>{escape(heading)}</dt><dd{kind}>{body}</dd>"


def _grid(variants: Iterable[Variant], drawn: Callable[[Variant], go.Figure], kind: str = "") -> str:
    cells = [
        f"<figure><figcaption><b>{escape(name)}</b></figcaption>{html.plot(drawn(variant), name)}</figure>"
        for variant in variants
        for name in [variant.name]
    ]
    return f'<div class="grid {kind}">{"".join(cells)}</div>'


def _figure(title: str, more: str, figure: go.Figure, section: Section) -> str:
    caption = f"<figcaption><b>{title}</b>{more}</figcaption>"
    return f"<figure>{caption}{html.plot(figure, title)}{legend(section)}</figure>"


def _bars(section: Section, title: str, value: Callable[[Record], float], digits: int = 0) -> str:
    lines = max(variant.name.count(", ") + 1 for variant in section.variants)
    height = 4 + len(section.variants) * (0.7 + 0.95 * lines)
    return f"<figure>{html.plot(plots.bars(section, value, title, digits), title, f'height: {height:.1f}rem')}</figure>"
