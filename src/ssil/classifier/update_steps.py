"""What would help after an update, step by step, the most important first; with the commands for it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ssil.classifier.advice.advise import FEW, KINDS, WEAK, NeededImages
from ssil.classifier.advice.sentences import TITLES, about_alike, photos, task
from ssil.classifier.update_report import UpdateReport
from ssil.data.image_index import Remark

WHERE = "a folder with the name of the class, inside the next folder that you give to ssil learn"
"""Where photos of a class are to be put."""


class StepItem(NamedTuple):
    """One of the things that a step is about."""

    text: str
    command: str = ""


class Step(NamedTuple):
    """Something to do."""

    text: str
    items: tuple[StepItem, ...] = ()


def update_steps(report: UpdateReport) -> Iterator[Step]:
    """Yield what would help: folders first, then photos that look wrong, then photos to add."""
    advice = report.advice
    if advice and advice.alike:
        yield _two_names(report)
    if left_out := [one for one in report.remarks if one.left_out]:
        yield _left_out(left_out)
    for kind in KINDS if advice else ():
        if count := len(advice.of_kind(kind)) if advice else 0:
            yield Step(f"{photos(count)} {'are' if count > 1 else 'is'} {TITLES[kind]}. {task(kind, count)}")
    if count := len(report.earlier):
        still = "look wrong: they are" if count > 1 else "looks wrong: it is"
        yield Step(f"{photos(count)} of earlier updates still {still} shown below, with what to do.")
    if advice and advice.needed:
        yield _to_add(advice.needed)


def _two_names(report: UpdateReport) -> Step:
    pairs = report.advice.alike if report.advice else ()
    items = (StepItem(about_alike(pair), command) for pair, command in zip(pairs, report.merging(), strict=True))
    return Step(
        "Two names for one class?" if len(pairs) == 1 else "Two names for one class? It looks so for:", (*items,)
    )


def _left_out(remarks: Sequence[Remark]) -> Step:
    were = "file or folder was" if len(remarks) == 1 else "files or folders were"
    text = f"{len(remarks):,} {were} not learnt. Mend or delete them:"
    return Step(text, tuple(StepItem(f"{one.path}: {one.reason}") for one in remarks))


def _to_add(needed: Sequence[NeededImages]) -> Step:
    """Return that photos are needed, of which classes and why of these, and where to put them."""
    which = f"fewer than {100 * WEAK:.0f} of 100 are recognised, or of which there are fewer than {photos(FEW)}"
    classes = "the only class" if len(needed) == 1 else f"{len(needed):,} classes"
    return Step(
        f"Add photos of {classes} of which {which}: into {WHERE}.", tuple(StepItem(reason(one)) for one in needed)
    )


def reason(needed: NeededImages) -> str:
    """Return a class that needs photos, and why.

    >>> reason(NeededImages("garlic", 8, 0, 0)), reason(NeededImages("kiwi", 40, 3, 8))
    ('garlic (has 8)', 'kiwi (3 of 8 right)')
    """
    why = f"{needed.correct} of {needed.total} right" if needed.total else f"has {needed.images}"
    return f"{needed.label} ({why})"
