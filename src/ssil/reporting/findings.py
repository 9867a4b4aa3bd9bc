"""What one sees in a section, in sentences that its numbers bear out; as HTML, with the variants' names in bold."""

from collections.abc import Callable, Sequence
from html import escape

from ssil.benchmark.record import Record, summarise
from ssil.learning.metrics import average, latest_share, newest_share
from ssil.reporting.headline_table import fair_share
from ssil.reporting.sections import Section, Variant


def accuracy(section: Section) -> list[str]:
    """Who leads, by how much, and whether so much may be chance; and who may look at all images."""
    rivals = [variant for variant in section.variants if variant.rival]
    bounds = [variant for variant in section.variants if variant.finished and variant.bound]
    said = [_lead(*rivals[:2])] if len(rivals) > 1 else [f"{_standing(variant)}." for variant in rivals]
    return said + [f"{_standing(variant)}: a bound, as it may look at all images again." for variant in bounds]


def _standing(variant: Variant) -> str:
    mean, last = variant.over(_average).text(), variant.over(lambda run: run.tasks[-1].top1).text()
    return f"{_bold(variant)} has {mean} % top-1 on average and {last} % at the end"


def _lead(first: Variant, second: Variant) -> str:
    ours, theirs = first.over(_average), second.over(_average)
    gap = ours.mean - theirs.mean
    ahead = f"{gap:.1f} points ahead of {_bold(second)}"
    said = f"{_bold(first)} is the most accurate on average, with {ours.text()} % top-1, {ahead}"
    if min(ours.count, theirs.count) == 1:
        return f"{said}; with one seed, small gaps may be chance."
    return f"{said}{', less than one deviation over seeds' * (gap < max(ours.deviation, theirs.deviation))}."


def bias(section: Section) -> list[str]:
    """Which variant leans most to the newest task, and which is nearest to a fair share."""
    able = _learning(section, 2)
    if not able:
        return []
    most, nearest = max(able, key=_share), min(able, key=lambda one: abs(_share(one) - fair_share(one.confusion)))
    said = f"{_bold(most)} puts {_share(most):.0f} % of its predictions on the newest of {len(most.confusion)} tasks"
    where = f"where {fair_share(most.confusion):.0f} % of the test images belong"
    return [f"{said}, {where}{f'; {_bold(nearest)} {_share(nearest):.0f} %' if nearest is not most else ''}."]


def scores(section: Section) -> list[str]:
    """How far new classes score above old ones, at the two ends; in deviations, as scorers have scales of their own."""
    able = [one for one in _learning(section, 2) if all(task.score_gap is not None for task in one.last)]
    most = "{} scores new classes {:+.1f} deviations of an image's scores above old ones"
    return _ends(able, lambda one: average([task.score_gap or 0.0 for task in one.last]), most, "; {} {:+.1f}")


def probabilities(section: Section) -> list[str]:
    """How much more probable a new class is than an old one, at the two ends."""
    most = "{} gives a new class {:.1f} times the mean probability of an old one"
    return _ends(_learning(section, 2), _odds, most, "; {} {:.1f} times")


def teachers(section: Section) -> list[str]:
    """How far the previous model takes the last task's images for the newest classes that it knows."""
    most = "Before the last task, the model of {} takes {:.0f} % of the new images for the newest task that it knows"
    return _ends(_learning(section, 3), _for_newest, most, "; that of {} {:.0f} %")


def forgetting(section: Section) -> list[str]:
    """Who forgets most and least."""
    most = "{} forgets most, {:.1f} points of a task's best accuracy"
    return _ends(_learning(section, 2), _forgets, most, "; {} least, {:.1f}")


def cost(section: Section) -> list[str]:
    """Who takes longest."""
    finished = [variant for variant in section.variants if variant.finished]
    slow, quick = (choose(finished, key=_seconds, default=None) for choose in (max, min))
    if not slow or not quick or not _seconds(quick) or slow is quick:
        return []
    return [f"{_bold(slow)} takes longest, {_seconds(slow) / _seconds(quick):.1f} times as long as {_bold(quick)}."]


def unfinished(section: Section) -> list[str]:
    """The runs that have tasks to do, and whether they count."""
    return [
        f"{escape(str(run.folder))} is not finished{', and not counted' * variant.finished}: "
        f"{len(run.record.tasks)} of {len(run.record.task_sizes)} tasks are done."
        for variant in (*section.variants, *section.waiting)
        for run in variant.runs
        if not run.record.summary
    ]


def _learning(section: Section, tasks: int) -> list[Variant]:
    """The variants that have done so many tasks and could forget."""
    return [variant for variant in section.since(tasks).variants if not variant.bound]


def _ends(variants: Sequence[Variant], value: Callable[[Variant], float], most: str, least: str) -> list[str]:
    """The variant with the most, and if there is another, that with the least."""
    if not variants:
        return []
    low, high = min(variants, key=value), max(variants, key=value)
    other = least.format(_bold(low), value(low)) if low is not high else ""
    return [f"{most.format(_bold(high), value(high))}{other}."]


def _bold(variant: Variant) -> str:
    return f"<b>{escape(variant.name)}</b>"


def _average(record: Record) -> float:
    return summarise(record.tasks).average_top1


def _share(variant: Variant) -> float:
    return newest_share(variant.confusion)


def _forgets(variant: Variant) -> float:
    return variant.over(lambda run: summarise(run.tasks).forgetting).mean


def _seconds(variant: Variant) -> float:
    return variant.over(lambda run: summarise(run.tasks).seconds).mean


def _odds(variant: Variant) -> float:
    new, old = (
        average([getattr(task, name) or 0.0 for task in variant.last]) for name in ("softmax_new", "softmax_old")
    )
    return new / old if old else 0.0


def _for_newest(variant: Variant) -> float:
    return average([latest_share(task.teacher_ratio or [0.0]) for task in variant.last])
