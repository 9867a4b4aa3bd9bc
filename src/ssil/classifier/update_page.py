"""The page of an update, for people who know the things in the images, not the field; also shown in notebooks.

It is here, and not in `reporting`, because the estimator shows it. It has no scripts, and stays below 1 MB.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from ssil.classifier.accuracy import ClassResult
from ssil.classifier.advice.advise import KINDS, Advice, Suspect
from ssil.classifier.advice.sentences import TASKS, TITLES, about_suspect, next_steps
from ssil.classifier.advice.thumbnails import Thumbnails
from ssil.classifier.update_report import UpdateReport, together
from ssil.core import __version__
from ssil.core.errors import UserError
from ssil.core.files import replacing
from ssil.core.plugins import short_name

CARDS, PAIRS, EXAMPLES, STEPS, CLASSES, REMARKS = 12, 12, 4, 12, 400, 20
"""Shown at most: images of a kind, confused pairs, images of a pair, steps, classes, remarks."""
NAME = 90
"""Letters of a name that are shown."""

TEMPLATES: Final = Environment(
    loader=PackageLoader("ssil.classifier"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


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
    more: int


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


def update_page(report: UpdateReport) -> str:
    """Return the whole page; styles and images are part of it."""
    thumbnails = Thumbnails()
    groups = [*_groups(report.advice, thumbnails)] if report.advice else []
    pairs = [*_pairs(report.advice, thumbnails)] if report.advice else []
    rows = _rows(report)
    steps = [*next_steps(report.advice)] if report.advice else []
    return TEMPLATES.get_template("update.html").render(
        report=report,
        version=__version__,
        overall=together(report.after, report.names),
        interval=report.after.interval(report.names) if report.after else None,
        parts=[*_parts(report)],
        groups=groups,
        pairs=pairs[:PAIRS],
        more_pairs=len(pairs) - PAIRS,
        rows=rows[:CLASSES],
        more_rows=len(rows) - CLASSES,
        steps=steps[:STEPS],
        more_steps=len(steps) - STEPS,
        again=report.again(),
        test=_test(report.entry),
        course=course([_all_after(entry) for entry in report.history]),
        test_course=course([(_test(entry) or {}).get("accuracy") for entry in report.history]),
        facts=_facts(report),
        remarks=[(cut(one.path), one.reason) for one in report.remarks[:REMARKS]],
        more_remarks=len(report.remarks) - REMARKS,
        thumbnails=thumbnails.rules(),
        cut=cut,
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
            title = f"{len(found)} image{'s' * (len(found) > 1)} {TITLES[kind]}"
            yield Group(title, TASKS[kind], cards, len(found) - len(cards))


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
    for number, pair in enumerate(advice.confused):
        images, example = pair.images[:EXAMPLES], None
        if number < PAIRS and pair.other in advice.typical:
            example = Thumbnail(thumbnails.add(advice.typical[pair.other]), cut(pair.other))
        found = [Thumbnail(thumbnails.add(image), cut(image.name)) for image in images] if number < PAIRS else []
        yield Pair(
            cut(pair.label),
            cut(pair.other),
            len(pair.images),
            pair.total,
            tuple(one for one in found if one.style),
            example if example and example.style else None,
        )


def _rows(report: UpdateReport) -> list[Row]:
    """Return the classes, the least recognised first, those without images in the end."""
    new = {*report.new}
    rows = [
        Row(cut(name), name in new, together(report.before, [name]), together(report.after, [name]))
        for name in report.names
    ]
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


def _facts(report: UpdateReport) -> list[tuple[str, str]]:
    """Return what was learnt, how long it took, what is kept, and how it learns."""
    entry, settings, classifier = report.entry, report.classifier.settings, report.classifier
    kept = sum(map(len, (*classifier.exemplars, *classifier.holdout)))
    seconds = entry.get("seconds")
    size = f"at {settings.image_size} pixels"
    rows = [
        ("learnt", f"{entry['pictures']:,} images" if "pictures" in entry else ""),
        ("time", _time(float(seconds)) if isinstance(seconds, int | float) else ""),
        ("the model keeps", f"{kept:,} images, smaller copies of some that it was given"),
        ("it learns by", f"{settings.method} with {short_name(settings.backbone)} {size}"),
        ("images from", str(entry.get("images", ""))),
        ("when", f"{str(entry.get('time', ''))[:16].replace('T', ' ')} UTC" if entry.get("time") else ""),
    ]
    return [(name, cut(value)) for name, value in rows if value]


def _time(seconds: float) -> str:
    """Return a duration in words.

    >>> _time(8.4), _time(135)
    ('8 seconds', '2 minutes 15 seconds')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} minute{'s' * (minutes != 1)} {rest} seconds" if minutes else f"{rest} seconds"
