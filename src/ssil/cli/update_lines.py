"""What an update has changed and what would help, in a few lines for a terminal of 80 columns."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ssil.cli.terminal import duration, printable

if TYPE_CHECKING:
    from ssil.classifier.accuracy import ClassResult
    from ssil.classifier.advice.advise import Advice, Suspect
    from ssil.classifier.update_report import UpdateReport

WIDTH = 80
LINES = 14
"""Lines of advice at most."""
PAIRS = 2
"""Pairs of classes under two names that are told with a command."""


def update_lines(report: "UpdateReport") -> Iterator[str]:
    """Yield lines on what was learnt, how much is recognised, before and after, and what would help."""
    yield _title(report)
    yield from _figures(report)
    yield from _test_lines(report.entry)
    yield from _lost_lines(report)
    if report.advice:
        yield from advice_lines(report.advice, report.merging(), report.again())
    yield from _earlier_lines(report)


def _title(report: "UpdateReport") -> str:
    """Return what was learnt: classes, photos and time."""
    from ssil.classifier.advice.sentences import photos

    entry, new = report.entry, report.new
    more = f", more of {len(entry['more'])}" if entry["more"] else ""
    title = f"version {report.number}" if report.number else "not published"
    classes = f"{len(new)} new class{'es' * (len(new) != 1)}{more}"
    new_photos, every = entry.get("new_images", entry["pictures"]), entry.get("all_images")
    in_all = f" ({every:,} with those before)" if every and every != new_photos else ""
    return f"{title}: {classes}, {photos(new_photos)}{in_all}, {duration(entry['seconds'])}"


def _figures(report: "UpdateReport") -> Iterator[str]:
    from ssil.classifier.update_report import together

    overall = together(report.after, report.names)
    interval = report.after.interval(report.names) if report.after else None
    if interval is None:
        yield "how much it recognises is not known: no photo was kept back to try it"
        return
    low, high = (round(end) for end in interval)
    yield f"recognises {overall.percent:.0f} of 100 photos like these (probably {low} to {high})"
    yield f"  tried on {report.tried()}"
    yield "  photos from another place or another day may do worse; to find out, keep some"
    yield f"  that are never learnt, in a folder: ssil test {printable(report.folder) or 'MODEL'} FOLDER"
    if report.old and report.before:
        old, new = (together(report.after, names) for names in (report.old, report.new))
        was = f"{_of_100(together(report.before, report.old))} before the update, "
        brought = f"; new classes: {_of_100(new)}" if new.total else ""
        yield f"  classes it knew: {was}{_of_100(old)} after it{brought}"
        yield "  (before and after were tried now, on the same photos)"


def _test_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on the photos of the test folder, if there is one."""
    if not (test := entry.get("test")):
        return
    if test["accuracy"] is None:
        yield "your test folder has no photo of the classes it knows"
        return
    low, high = (round(end) for end in test["interval"])
    tried = f"(probably {low} to {high}), tried on {test['tried']:,}"
    yield f"recognises {test['accuracy']:.0f} of 100 photos in your test folder {tried}"
    if test["old_before"] is not None and test["old_after"] is not None:
        yield f"  classes it knew: {test['old_before']:.0f} before the update, {test['old_after']:.0f} after it"
    if test["learnt"]:
        yield f"  {test['learnt']} of its photos are not counted: they were learnt before"


def _lost_lines(report: "UpdateReport") -> Iterator[str]:
    """Yield lines on classes of which two photos or more are not recognised any more; a single one may be chance."""
    lost = {name: both for name, both in report.lost().items() if both[0].correct - both[1].correct > 1}
    named = [f"{name} ({was.correct} of {was.total}, now {now.correct})" for name, (was, now) in lost.items()]
    yield from listed("recognised less than before: ", named) if named else ()


def _of_100(result: "ClassResult") -> str:
    return "-" if result.percent is None else f"{result.percent:.0f}"


def advice_lines(advice: "Advice", merging: Sequence[str] = (), again: Sequence[str] = ()) -> Iterator[str]:
    """Yield at most `LINES` lines on what would help; nothing if nothing stands out.

    Args:
        advice: What was found.
        merging: Commands that put classes under two names into one folder.
        again: Commands that learn the images again once they are mended.
    """
    shown = [*chain(*_advice(advice, merging))]
    if shown:
        yield "what would help:"
    yield from shown[:LINES]
    if len(shown) > LINES:
        yield "  and more, see the page"
    if again and (advice.suspects or advice.alike):
        yield f"  when you have mended the folders: {printable(' && '.join(again))}"


def _advice(advice: "Advice", merging: Sequence[str]) -> Iterator[list[str]]:
    from ssil.classifier.advice.advise import FEW, KINDS
    from ssil.classifier.advice.sentences import TITLES, photos

    for pair, command in zip(advice.alike[:PAIRS], merging or [""] * PAIRS, strict=False):
        yield listed("  one class under two names? ", [f"{pair.first} = {pair.second}"])
        yield [f"    if so: {printable(command)}"] if command else []
    if rest := [f"{pair.first} = {pair.second}" for pair in advice.alike[PAIRS:]]:
        yield listed("  also: ", rest)
    for kind in KINDS:
        if found := advice.of_kind(kind):
            yield listed(f"  {photos(len(found))} {TITLES[kind]}: ", [*map(_short, found)])
    if needed := [f"{one.label} ({_why(one.correct, one.total, one.images)})" for one in advice.needed]:
        yield listed("  add photos of ", needed)
    often = [pair for pair in advice.confused if pair.wrong > 1 or pair.total <= FEW]
    if confused := [f"{pair.label} for {pair.other} ({pair.wrong} of {pair.total})" for pair in often]:
        yield listed("  taken for another: ", confused)


def _why(correct: int, total: int, images: int) -> str:
    return f"{correct} of {total} right" if total else f"has {images}"


def _short(suspect: "Suspect") -> str:
    other = f" (like {suspect.other})" if suspect.kind == "wrong class" else ""
    return f"{suspect.image.name}{other}" if not suspect.twin else f"{suspect.image.name} = {suspect.twin.name}"


def _earlier_lines(report: "UpdateReport") -> Iterator[str]:
    """Yield a line on photos that looked wrong in earlier updates and are still there."""
    from ssil.classifier.advice.sentences import photos

    if found := [one.image for one in report.earlier]:
        yield from listed(f"{photos(len(found))} of earlier updates still look wrong: ", found)


def listed(start: str, items: Sequence[str], separator: str = ", ") -> list[str]:
    """Return a line of `start` and as many items as fit into `WIDTH` columns, and how many are left.

    If not even the first item fits, the line is broken between words.

    >>> listed("too long: ", ["x" * 30, "y" * 30, "z" * 30])
    ['too long: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx and 2 more']
    >>> listed("  short: ", ["a", "b"])
    ['  short: a, b']
    """
    shown = [printable(item) for item in items]
    for count in range(len(shown), 0, -1):
        rest = f" and {len(shown) - count} more" if count < len(shown) else ""
        line = f"{start}{separator.join(shown[:count])}{rest}"
        if len(line) <= WIDTH:
            return [line]
    return wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
