"""What an update has changed and what would help, in a few lines for a terminal of 80 columns."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ssil.cli.terminal import duration, printable

if TYPE_CHECKING:
    from ssil.classifier.accuracy import ClassResult
    from ssil.classifier.advice.advise import Advice, Suspect
    from ssil.classifier.update_report import UpdateReport

WIDTH = 80
LINES = 8
"""Lines of advice at most."""


def update_lines(report: "UpdateReport") -> Iterator[str]:
    """Yield lines on what was learnt, how much is recognised, before and after, and what would help."""
    entry, new = report.entry, report.new
    more = f", more of {len(entry['more'])}" if entry["more"] else ""
    title = f"version {report.number}" if report.number else "not published"
    classes = f"{len(new)} new class{'es' * (len(new) != 1)}{more}"
    yield f"{title}: {classes}, {entry['pictures']} images, {duration(entry['seconds'])}"
    yield from _figures(report)
    yield from _test_lines(entry)
    if lost := report.lost():
        named = (f"{name} ({was.correct} of {was.total}, now {now.correct})" for name, (was, now) in lost.items())
        yield from listed("recognised less than before: ", [*named])
    if report.advice:
        yield from advice_lines(report.advice)


def _figures(report: "UpdateReport") -> Iterator[str]:
    from ssil.classifier.update_report import together

    overall = together(report.after, report.names)
    interval = report.after.interval(report.names) if report.after else None
    if interval is None:
        yield "how much it recognises is not known: no image was kept back to try it"
        return
    low, high = (round(end) for end in interval)
    tried = f"(probably {low} to {high}), tried on {overall.total}"
    yield f"recognises {overall.percent:.0f} of 100 images like these {tried}"
    yield "  images from another place or another day may do worse: see ssil test"
    if report.old and report.before:
        old, new = (together(report.after, names) for names in (report.old, report.new))
        was = f"{_of_100(together(report.before, report.old))} before the update, " if report.before else ""
        brought = f"; new classes: {_of_100(new)}" if new.total else ""
        yield f"  classes it knew: {was}{_of_100(old)} after it{brought}"


def _test_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on the images of the test folder, if there is one."""
    if not (test := entry.get("test")):
        return
    if test["accuracy"] is None:
        yield "your test folder has no image of the classes it knows"
        return
    low, high = (round(end) for end in test["interval"])
    tried = f"(probably {low} to {high}), tried on {test['tried']}"
    yield f"recognises {test['accuracy']:.0f} of 100 images in your test folder {tried}"
    if test["old_before"] is not None and test["old_after"] is not None:
        yield f"  classes it knew: {test['old_before']:.0f} before the update, {test['old_after']:.0f} after it"
    if test["learnt"]:
        yield f"  {test['learnt']} of its images are not counted: they were learnt before"


def _of_100(result: "ClassResult") -> str:
    return "-" if result.percent is None else f"{result.percent:.0f}"


def advice_lines(advice: "Advice") -> Iterator[str]:
    """Yield at most `LINES` lines on what would help; nothing if nothing stands out."""
    shown = [line for lines in _advice(advice) for line in lines]
    if shown:
        yield "what would help (--html FILE shows the images):"
    yield from shown[:LINES]
    if len(shown) > LINES:
        yield "  and more (see --html or --json)"


def _advice(advice: "Advice") -> Iterator[list[str]]:
    from ssil.classifier.advice.advise import KINDS
    from ssil.classifier.advice.sentences import TITLES

    for kind in KINDS:
        if found := advice.of_kind(kind):
            start = f"  {len(found)} image{'s' * (len(found) > 1)} {TITLES[kind]}: "
            yield listed(start, [*map(_short, found)])
    if alike := [f"{pair.first} and {pair.second}" for pair in advice.alike]:
        yield listed("  one class under two names? ", alike, "; ")
    if needed := [f"{one.label} ({_why(one.correct, one.total, one.images)})" for one in advice.needed]:
        yield listed("  add images of ", needed)
    if confused := [f"{pair.label} for {pair.other} ({len(pair.images)} of {pair.total})" for pair in advice.confused]:
        yield listed("  taken for another: ", confused)


def _why(correct: int, total: int, images: int) -> str:
    return f"{correct} of {total} right" if total else f"has {images}"


def _short(suspect: "Suspect") -> str:
    other = f" (like {suspect.other})" if suspect.kind == "wrong class" else ""
    return f"{suspect.image.name}{other}" if not suspect.twin else f"{suspect.image.name} = {suspect.twin.name}"


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
