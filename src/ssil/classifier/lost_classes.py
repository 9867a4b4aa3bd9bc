"""Classes of which an update has cost photos: which class takes them now, and what to do about it."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ssil.classifier.accuracy import ClassResult
from ssil.classifier.advice.advise import Advice
from ssil.classifier.advice.confusions import ConfusedPair
from ssil.classifier.holdout import HoldoutResult

CHANCE, TAKERS = 1, 2
"""So many photos more or less may be chance; so many classes that take a class's photos are named at most."""


class LostClass(NamedTuple):
    """A class that was known before an update, and of which fewer photos are recognised after it."""

    name: str
    before: ClassResult
    after: ClassResult
    takers: tuple[ConfusedPair, ...] = ()
    """The classes for which most of its photos are taken now, at most two."""
    alike: bool = False
    """Whether it looks like one class with the first of them, under two names."""

    @property
    def lost(self) -> int:
        """The photos that are not recognised any more."""
        return self.before.correct - self.after.correct


def lost_classes(
    before: HoldoutResult | None, after: HoldoutResult | None, advice: Advice | None, new: Collection[str]
) -> list[LostClass]:
    """Return the classes that have lost more photos than chance explains, the worst first.

    Args:
        before: The results before the update.
        after: Those after it, on the same photos.
        advice: What was found out about the update; None if that is not known.
        new: The classes that the update has brought.
    """
    both = ((name, was, after.result([name])) for name, was in before.classes.items()) if before and after else ()
    rows = [LostClass(name, was, now) for name, was, now in both if was.correct - now.correct > CHANCE]
    rows.sort(key=lambda row: (row.after.percent or 0.0) - (row.before.percent or 0.0))
    return [_with_takers(row, advice, new) if advice else row for row in rows]


def _with_takers(row: LostClass, advice: Advice, new: Collection[str]) -> LostClass:
    """Return the row with the classes that take several of its photos, new ones first.

    An old class may have taken some of them before the update too.
    """
    found = [one for one in _pairs(advice, row.name) if one.wrong > CHANCE]
    takers = sorted(found, key=lambda one: (one.other not in new, -one.wrong))[:TAKERS]
    pairs = [{pair.first, pair.second} for pair in advice.alike]
    return row._replace(takers=(*takers,), alike=bool(takers) and {row.name, takers[0].other} in pairs)


def _pairs(advice: Advice, name: str) -> Iterator[ConfusedPair]:
    yield from (one for one in (*advice.confused, *advice.taken) if one.label == name)


def taken_for(row: LostClass) -> str:
    """Return how many photos of a class are taken for which others now; an empty text if no class takes several.

    >>> pairs = (ConfusedPair("leek", "chives", (), 3, 9), ConfusedPair("leek", "onion", (), 2, 9))
    >>> taken_for(LostClass("leek", ClassResult(9, 9), ClassResult(4, 9), pairs))
    '3 taken for chives, 2 for onion'
    """
    return ", ".join(f"{one.wrong} {'for' if at else 'taken for'} {one.other}" for at, one in enumerate(row.takers))


def about_lost(row: LostClass) -> str:
    """Return where the photos of a class have gone, and what to do.

    >>> row = LostClass("leek", ClassResult(9, 9), ClassResult(5, 9))
    >>> about_lost(row)
    'No class takes several of them. Add photos of leek.'
    >>> about_lost(row._replace(takers=(ConfusedPair("leek", "chives", (), 3, 9),)))
    'Now 3 taken for chives. Add photos of both that show how they differ.'
    >>> about_lost(row._replace(takers=(ConfusedPair("leek", "Leek", (), 3, 9),), alike=True))
    'Now 3 taken for Leek: one class under two names? Then put both under one name.'
    """
    if not row.takers:
        return f"No class takes several of them. Add photos of {row.name}."
    if row.alike:
        return f"Now {taken_for(row)}: one class under two names? Then put both under one name."
    return f"Now {taken_for(row)}. Add photos of {'both' if len(row.takers) == 1 else 'all'} that show how they differ."
