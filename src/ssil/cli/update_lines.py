"""What an update has changed and what would help, in a few lines for a terminal of 80 columns."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ssil.cli.terminal import duration, printable

if TYPE_CHECKING:
    from ssil.classifier.accuracy import ClassResult
    from ssil.classifier.advice.advise import Advice, NeededImages, Suspect
    from ssil.classifier.advice.confusions import ConfusedPair
    from ssil.classifier.lost_classes import LostClass
    from ssil.classifier.update_report import UpdateReport

WIDTH = 80
LINES = 26
"""Lines of advice at most."""
PAIRS, LOST = 2, 3
"""Pairs of classes under two names that are told with a command, and classes that are recognised less."""


def update_lines(report: "UpdateReport") -> Iterator[str]:
    """Yield lines on what was learnt, how much is recognised, before and after, and what would help."""
    yield _title(report)
    yield from _figures(report)
    yield from _test_lines(report.entry)
    yield from _lost_lines(report)
    yield from help_lines(report)


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
        told = f"; {retold}" if (retold := report.retold()) else ""
        yield from folded("  ", f"(before and after were tried now, on the same photos{told})")


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
    """Yield lines on classes of which photos are not recognised any more, with the class that takes them."""
    lost = report.lost()
    if lost:
        yield "recognised less than before:"
    for row in lost[:LOST]:
        yield from folded(
            f"  {row.name} ({row.before.correct} of {row.before.total}, now {row.after.correct})", _taken(row)
        )
    if len(lost) > LOST:
        yield f"  and {len(lost) - LOST} more, see the page"


def _taken(row: "LostClass") -> str:
    """Return which classes take the photos of a class that has lost some, and what to do."""
    from ssil.classifier.lost_classes import taken_for

    if row.alike:
        return f": {taken_for(row)}; see two names below"
    what = {0: row.name, 1: "both"}.get(len(row.takers), "all")
    return f"{': ' * bool(row.takers)}{taken_for(row)}; add photos of {what}"


def _of_100(result: "ClassResult") -> str:
    return "-" if result.percent is None else f"{result.percent:.0f}"


def help_lines(report: "UpdateReport") -> Iterator[str]:
    """Yield at most `LINES` lines on what would help, and how to learn again; nothing if nothing stands out."""
    shown = [*chain(*_help(report))]
    if shown:
        yield "what would help:"
    yield from shown[:LINES]
    if len(shown) > LINES:
        yield "  and more, see the page"
    if report.to_mend() and (again := report.again()):
        yield "when you have mended the folders, learn them again:"
        yield f"  {printable(' && '.join(again))}"


def _help(report: "UpdateReport") -> Iterator[list[str]]:
    from ssil.classifier.advice.advise import KINDS
    from ssil.classifier.advice.sentences import SHORT, TITLES, often_confused, photos

    advice = report.advice
    if advice:
        yield from _two_names(advice, report.merging())
    if left_out := [one.path for one in report.remarks if one.left_out]:
        yield listed(f"  {len(left_out)} not learnt, to mend or delete (why: see above): ", left_out)
    for kind in KINDS if advice else ():
        if found := advice.of_kind(kind) if advice else ():
            yield [*listed(f"  {photos(len(found))} {TITLES[kind]}: ", [*map(_short, found)]), f"    {SHORT[kind]}"]
    if earlier := [one.image for one in report.earlier]:
        still = "still looks wrong" if len(earlier) == 1 else "still look wrong"
        line = listed(f"  {photos(len(earlier))} of earlier updates {still}: ", earlier)
        yield [*line, "    mend them too, or leave them if they are right"]
    if advice:
        yield from _classes_to_improve(advice.needed, often_confused(advice))


def _two_names(advice: "Advice", merging: Sequence[str]) -> Iterator[list[str]]:
    for pair, command in zip(advice.alike[:PAIRS], merging, strict=False):
        yield listed("  one class under two names? ", [f"{pair.first} = {pair.second}"])
        yield [f"    if so: {printable(command)}"] if command else []
    if rest := [f"{pair.first} = {pair.second}" for pair in advice.alike[PAIRS:]]:
        yield listed("  also: ", rest)


def _classes_to_improve(needed: Sequence["NeededImages"], confused: Sequence["ConfusedPair"]) -> Iterator[list[str]]:
    from ssil.classifier.advice.advise import FEW, WEAK
    from ssil.classifier.update_steps import reason

    if needed:
        yield listed("  add photos of ", [reason(one) for one in needed])
        yield [
            "    into a folder of that name inside the next folder you learn; these have",
            f"    fewer than {FEW} photos, or fewer than {100 * WEAK:.0f} of 100 right",
        ]
    if pairs := [f"{pair.label} for {pair.other} ({pair.wrong} of {pair.total})" for pair in confused]:
        yield listed("  taken for another: ", pairs)


def _short(suspect: "Suspect") -> str:
    other = f" (like {suspect.other})" if suspect.kind == "wrong class" else ""
    return f"{suspect.image.name}{other}" if not suspect.twin else f"{suspect.image.name} = {suspect.twin.name}"


def folded(start: str, rest: str) -> list[str]:
    """Return text in lines of at most `WIDTH` columns, if its words are not longer."""
    return wrap(
        printable(start + rest), WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


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
