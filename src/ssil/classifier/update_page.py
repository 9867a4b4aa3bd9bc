"""The page of an update, for people who know the things in the images, not the field; also shown in notebooks.

It is here, and not in `reporting`, because the estimator shows it. It has no scripts, and stays below 1 MB.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from ssil.classifier.accuracy import ClassResult
from ssil.classifier.advice.advise import KINDS, Advice, Suspect
from ssil.classifier.advice.sentences import TITLES, about_suspect, often_confused, photos, task
from ssil.classifier.advice.thumbnails import Thumbnails
from ssil.classifier.lost_classes import about_lost
from ssil.classifier.update_facts import technical_line, update_facts
from ssil.classifier.update_report import UpdateReport, together
from ssil.classifier.update_steps import update_steps
from ssil.core import __version__
from ssil.core.errors import UserError
from ssil.core.files import replacing
from ssil.core.html_templates import html_templates

CARDS, PAIRS, EXAMPLES, ITEMS, CLASSES, MORE, LOST, UNFOLDED = 12, 12, 2, 6, 400, 200, 8, 12
"""Shown at most: images of a kind, confused pairs, images of a pair, items of a step, classes, more of each kind in a
list that is closed at first, classes that are recognised less, and classes in a table that is open at first."""
NAME = 90
"""Letters of a name that are shown."""

TEMPLATES: Final = html_templates("ssil.classifier")


class Thumbnail(NamedTuple):
    """A thumbnail: its style class, and what it shows."""

    style: str
    caption: str


class Card(NamedTuple):
    """An image to look at: what to do about it, its thumbnail, and others to compare it with."""

    sentence: str
    image: Thumbnail
    others: tuple[Thumbnail, ...]


class Group(NamedTuple):
    """The images of one kind."""

    title: str
    task: str
    cards: tuple[Card, ...]
    rest: tuple[str, ...]
    """Sentences on further images."""
    unlisted: int


class Pair(NamedTuple):
    """A class that is taken for another one, with images."""

    label: str
    other: str
    wrong: int
    total: int
    images: tuple[Thumbnail, ...]
    example: Thumbnail | None


class Row(NamedTuple):
    """A class in the table."""

    name: str
    new: bool
    before: ClassResult
    after: ClassResult
    note: str = ""


def update_page(report: UpdateReport) -> str:
    """Return the whole page; styles and images are part of it."""
    thumbnails = Thumbnails()
    groups = [*(_groups(report.advice, thumbnails) if report.advice else ()), *_earlier_group(report, thumbnails)]
    pairs = [*_pairs(report.advice, thumbnails)] if report.advice else []
    rows = _weakest_first(_rows(report, report.names))
    lost = [Row(cut(one.name), False, one.before, one.after, about_lost(one)) for one in report.lost()]
    return TEMPLATES.get_template("update.html").render(
        report=report,
        version=__version__,
        overall=together(report.after, report.names),
        interval=report.after.interval(report.names) if report.after else None,
        parts=[*_parts(report)],
        groups=groups,
        pairs=pairs[:PAIRS],
        more_pairs=pairs[PAIRS : PAIRS + MORE],
        lost=lost[:LOST],
        more_lost=lost[LOST : LOST + MORE],
        rows=rows[:CLASSES],
        more_rows=len(rows) - CLASSES,
        unfolded=len(rows) <= UNFOLDED,
        steps=[*update_steps(report)],
        items=ITEMS,
        more_items=ITEMS + MORE,
        again=report.again() if report.to_mend() else (),
        photos=photos,
        test=_test(report.entry),
        course=course([_all_after(entry) for entry in report.history]),
        test_course=course([(_test(entry) or {}).get("accuracy") for entry in report.history]),
        facts=[*update_facts(report)],
        technical=technical_line(report),
        odd=[f"{cut(one.path)}: {one.reason}" for one in report.remarks if not one.left_out][:MORE],
        thumbnails=thumbnails.rules(),
        cut=cut,
        br=breakable,
    )


def write_update_page(path: Path, report: UpdateReport) -> None:
    """Write the page; raise UserError if the file can't be written."""
    try:
        with replacing(path) as file:
            file.write(update_page(report).encode())
    except OSError as error:
        raise UserError(f"html: {path} can't be written ({error.strerror}); give another file") from None


def notebook_frame(report: UpdateReport) -> str:
    """Return the page in a frame, which keeps its style to itself."""
    style = "width: 100%; height: 40rem; border: 1px solid #8884; border-radius: 6px"
    return f'<iframe srcdoc="{escape(update_page(report))}" style="{style}"></iframe>'


def breakable(text: object) -> Markup:
    """Return text as HTML that may be broken after the signs at which names are joined.

    >>> breakable("a_b/<c>")
    Markup('a_<wbr>b/<wbr>&lt;c&gt;')
    """
    return Markup(re.sub(r"([_/.])(?=\w|&)", r"\1<wbr>", escape(str(text))))


def cut(name: str) -> str:
    """Return a name, or its beginning and its end.

    >>> cut("a" * 200).count("a"), cut("ant")
    (89, 'ant')
    """
    return name if len(name) <= NAME else f"{name[: NAME // 2]}…{name[-NAME // 2 + 1 :]}"


def _parts(report: UpdateReport) -> Iterator[tuple[str, ClassResult, ClassResult]]:
    """Yield the results on old and on new classes, before and after, where both are there."""
    for title, names in (("classes it knew before", report.old), ("new classes", report.new)):
        after = together(report.after, names)
        if after.total and report.old and report.new:
            yield title, together(report.before, names), after
        elif after.total and report.before:
            yield "all classes", together(report.before, names), after


def _groups(advice: Advice, thumbnails: Thumbnails) -> Iterator[Group]:
    for kind in KINDS:
        if found := advice.of_kind(kind):
            cards = tuple(_card(one, advice, thumbnails) for one in found[:CARDS])
            rest = tuple(map(about_suspect, found[CARDS : CARDS + MORE]))
            title = f"{photos(len(found))} {TITLES[kind]}"
            yield Group(title, task(kind, len(found)), cards, rest, len(found) - len(cards) - len(rest))


def _earlier_group(report: UpdateReport, thumbnails: Thumbnails) -> Iterator[Group]:
    """Yield the photos of earlier updates that still look wrong, if there are any."""
    found = report.earlier
    cards = tuple(
        Card(one.sentence, Thumbnail(thumbnails.add(one.picture(report.classifier)), cut(one.image)), ())
        for one in found[:CARDS]
    )
    rest = tuple(one.sentence for one in found[CARDS : CARDS + MORE])
    if found:
        title = f"{photos(len(found))} of earlier updates that still look{'s' * (len(found) == 1)} wrong"
        yield Group(
            title, "Mend them too, or leave them if they are right.", cards, rest, len(found) - len(cards) - len(rest)
        )


def _card(suspect: Suspect, advice: Advice, thumbnails: Thumbnails) -> Card:
    own = Thumbnail(thumbnails.add(suspect.image), cut(suspect.image.name))
    others = []
    if suspect.kind == "wrong class":
        for title, name in (("in", suspect.label), ("looks like", suspect.other)):
            others.append(Thumbnail(thumbnails.add(advice.typical.get(name)), f"{title} {cut(name)}"))
    elif suspect.twin:
        others.append(Thumbnail(thumbnails.add(suspect.twin), cut(suspect.twin.name)))
    return Card(about_suspect(suspect), own, tuple(other for other in others if other.style))


def _pairs(advice: Advice, thumbnails: Thumbnails) -> Iterator[Pair]:
    """Yield the confused pairs, the first `PAIRS` with photos; where none that was taken is at hand, a typical one."""
    for number, pair in enumerate(often_confused(advice)):
        found, example = list[Thumbnail](), None
        if number < PAIRS:
            typical = [one for one in (advice.typical.get(pair.label),) if one]
            found = [Thumbnail(thumbnails.add(one), cut(one.name)) for one in pair.images[:EXAMPLES] or typical]
            example = Thumbnail(thumbnails.add(advice.typical.get(pair.other)), cut(pair.other))
        shown = tuple(one for one in found if one.style) if example and example.style else ()
        yield Pair(cut(pair.label), cut(pair.other), pair.wrong, pair.total, shown, example if shown else None)


def _rows(report: UpdateReport, names: Sequence[str]) -> list[Row]:
    """Return the rows of some classes, in their order."""
    new = {*report.new}
    return [
        Row(cut(name), name in new, together(report.before, [name]), together(report.after, [name])) for name in names
    ]


def _weakest_first(rows: Sequence[Row]) -> list[Row]:
    """Return rows, the least recognised classes first, those without images in the end."""
    return sorted(rows, key=lambda row: (not row.after.total, row.after.percent or 0.0, row.name))


class CoursePoint(NamedTuple):
    """An update in the drawing of all updates, in percent of its width and height."""

    across: float
    height: float
    label: str


def course(accuracies: Sequence[float | None]) -> list[CoursePoint]:
    """Return the share of recognised images after each update that has one; nothing for fewer than two updates.

    >>> [point.across for point in course([90.0, None, 80.0])], course([90.0, None])
    ([0.0, 100.0], [])
    """
    known = [(number, value) for number, value in enumerate(accuracies, 1) if value is not None]
    if len(known) < 2:
        return []
    return [
        CoursePoint(100 * (number - 1) / (len(accuracies) - 1), value, f"update {number}: {value:.0f} of 100")
        for number, value in known
    ]


def _all_after(entry: Mapping[str, Any]) -> float | None:
    """Return the accuracy after an update: on all classes, or in older entries on those that it brought."""
    values = [entry.get(key) for key in ("accuracy", "old_after", "new_after")]
    return next((float(value) for value in values if isinstance(value, int | float)), None)


def _test(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the numbers of a test folder in an entry of the history; None if there are none."""
    test = entry.get("test")
    return test if isinstance(test, Mapping) and isinstance(test.get("accuracy"), int | float) else None
