"""Sentences that describe the results of a section; variants' names are bold (safe HTML)."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from ssil.learning.metrics import average, latest_share, newest_share
from ssil.reporting.headline_table import COLUMNS, fair_share
from ssil.reporting.sections import Section, Variant

AVERAGE = COLUMNS["average_top1"].value


def accuracy(section: Section) -> list[Markup]:
    """Name the most accurate variant and its lead, or describe the only one; then describe upper bounds."""
    ranked = [variant for variant in section.variants if variant.ranked]
    bounds = [variant for variant in section.variants if variant.finished and variant.bound]
    best = [_lead(*ranked[:2])] if len(ranked) > 1 else [_accuracy(variant) + "." for variant in ranked]
    return best + [_accuracy(variant) + ": an upper bound, as it keeps all images." for variant in bounds]


def _accuracy(variant: Variant) -> Markup:
    mean, last = (variant.over(COLUMNS[key].value) for key in ("average_top1", "last_top1"))
    return _sentence("{} has {} % top-1 on average and {} % at the end", variant, mean.text(), last.text())


def published(section: Section) -> list[Markup]:
    """Compare variants that follow a protocol of published tables with the accuracies published for their methods."""
    return [
        _sentence("{}: {} % on average over the tasks; {}.", variant, variant.over(AVERAGE).text(), band.text)
        for variant in section.variants
        if (band := section.published.get(variant.name))
    ]


def _lead(first: Variant, second: Variant) -> Markup:
    ours, theirs = (variant.over(COLUMNS["average_top1"].value) for variant in (first, second))
    gap = ours.mean - theirs.mean
    if min(ours.count, theirs.count) == 1:
        end = "; with one seed, small gaps may be chance"
    else:
        end = ", less than one deviation over seeds" * (gap < max(ours.deviation, theirs.deviation))
    sentence = "{} is the most accurate on average, with {} % top-1, {:.1f} points ahead of {}{}."
    return _sentence(sentence, first, ours.text(), gap, second, end)


def bias(section: Section) -> list[Markup]:
    """Name the variant with the most predictions on the newest task, and the one nearest to that task's share.

    Say nothing where the newest task brought no class.
    """
    able = [one for one in _forgetful(section, 2) if fair_share(one.confusion)]
    if not able:
        return []
    most, nearest = max(able, key=_share), min(able, key=lambda one: abs(_share(one) - fair_share(one.confusion)))
    sentence = "{} puts {:.0f} % of its predictions on the newest of {} tasks, where {:.0f} % of the test images belong"
    found = _sentence(sentence, most, _share(most), len(most.confusion), fair_share(most.confusion))
    return [found + (_sentence("; {} {:.0f} %.", nearest, _share(nearest)) if nearest is not most else ".")]


def scores(section: Section) -> list[Markup]:
    """Compare the scores of new and old classes, in standard deviations, as scorers differ in scale."""
    able = [one for one in _forgetful(section, 2) if all(task.score_gap is not None for task in one.last)]
    most = "{} scores new classes {:+.1f} deviations of an image's scores above old ones"
    return _extremes(able, lambda one: average([task.score_gap or 0.0 for task in one.last]), most, "; {} {:+.1f}")


def probabilities(section: Section) -> list[Markup]:
    """Compare the mean probabilities of a new and of an old class."""
    most = "{} gives a new class {:.1f} times the mean probability of an old one"
    return _extremes(_forgetful(section, 2), _odds, most, "; {} {:.1f} times")


def teachers(section: Section) -> list[Markup]:
    """Describe how often the previous model predicts its newest task for images of the last task."""
    most = "Before the last task, the model of {} takes {:.0f} % of the new images for the newest task that it knows"
    return _extremes(_forgetful(section, 3), _for_newest, most, "; that of {} {:.0f} %")


def forgetting(section: Section) -> list[Markup]:
    """Name the variants that forget most and least."""
    most = "{} forgets most, {:.1f} points of a task's best accuracy"
    return _extremes(_forgetful(section, 2), _forgetting, most, "; {} least, {:.1f}")


def cost(section: Section) -> list[Markup]:
    """Compare the slowest variant with the fastest."""
    finished = [variant for variant in section.variants if variant.finished]
    slow, quick = (choose(finished, key=_seconds, default=None) for choose in (max, min))
    if not slow or not quick or not _seconds(quick) or slow is quick:
        return []
    ratio = _seconds(slow) / _seconds(quick)
    return [_sentence("{} takes longest, {:.1f} times as long as {}.", slow, ratio, quick)]


def unfinished(section: Section) -> list[str]:
    """Name the unfinished runs, and those that the results leave out."""
    return [
        f"{run.folder} is not finished{', and not counted' * variant.finished}: "
        f"{len(run.record.tasks)} of {len(run.record.task_sizes)} tasks are done."
        for variant in (*section.variants, *section.waiting)
        for run in variant.runs
        if not run.record.summary
    ]


def _forgetful(section: Section, tasks: int) -> list[Variant]:
    """Return the variants that have finished `tasks` tasks and are no upper bound."""
    return [one for one in section.since(tasks).variants if not one.bound]


def _extremes(variants: Sequence[Variant], value: Callable[[Variant], float], most: str, least: str) -> list[Markup]:
    """Describe the variant with the highest value, and if there is another, the one with the lowest."""
    if not variants:
        return []
    low, high = min(variants, key=value), max(variants, key=value)
    other = _sentence(least, low, value(low)) if low is not high else ""
    return [_sentence(most, high, value(high)) + other + "."]


def _sentence(text: str, *values: Variant | str | float) -> Markup:
    """Format a sentence; names of variants are bold, and everything is escaped."""
    bold = Markup("<b>{}</b>")
    return Markup(text).format(*(bold.format(one.name) if isinstance(one, Variant) else one for one in values))


def _share(variant: Variant) -> float:
    return newest_share(variant.confusion)


def _forgetting(variant: Variant) -> float:
    return variant.over(COLUMNS["forgetting"].value).mean


def _seconds(variant: Variant) -> float:
    return variant.over(COLUMNS["seconds"].value).mean


def _odds(variant: Variant) -> float:
    new, old = (
        average([getattr(task, name) or 0.0 for task in variant.last]) for name in ("softmax_new", "softmax_old")
    )
    return new / old if old else 0.0


def _for_newest(variant: Variant) -> float:
    return average([latest_share(task.teacher_ratio or [0.0]) for task in variant.last])
