"""`ssil history`: a model's versions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cyclopts import App

from ssil.classifier.version_changes import describe_change, local_time
from ssil.cli.terminal import Json, Model, console, json_line, plain, table

BARS, MAX_BARS = "▁▂▃▄▅▆▇█", 40
"""The bars of a curve, and how many are drawn at most."""

app = App(
    name="history",
    help_epilogue="""Examples:
  ssil history birds
  ssil rollback birds 2""",
)


@app.default
def history(model: Model, /, *, json: Json = False) -> None:
    """List a model's versions: what each has learnt, and accuracies before and after."""
    from ssil.classifier.model_directory import ModelDirectory  # imports torch

    directory = ModelDirectory(model)
    current = directory.current_or_none()
    entries = {number: directory.last_entry(number) for number in directory.numbers()}
    if json:
        for number, entry in entries.items():
            json_line(version=number, current=number == current, **entry)
        return
    tested = any(folder_test(entry) for entry in entries.values())
    shown = table("version", "when", "what", "photos", "old", "new", *["test"] * tested, words=3)
    for number, entry in entries.items():
        label = f"{number} (current)" if number == current else str(number)
        brought = str(entry.get("new_images") or entry.get("pictures") or "-")
        old = " → ".join(_whole(entry.get(name)) for name in ("old_before", "old_after") if entry.get(name) is not None)
        what = f"{_origin(number, entry)}{describe_change(entry)}"
        when = local_time(str(entry.get("time") or "-"))
        numbers = [old or "-", _whole(entry.get("new_after")), *[_whole(folder_test(entry).get("accuracy"))] * tested]
        shown.add_row(label, plain(when), plain(what), plain(brought), *numbers)
    screen = console()
    screen.print(shown)
    screen.print("old, new: how many of 100 photos of classes it knew, of new ones, it recognises")
    for name, values in _courses(entries.values()):
        screen.print(f"{name}, version by version: {curve(values)} {values[0]:.0f} → {values[-1]:.0f} of 100")
    if refused := directory.candidate_description():
        what = describe_change(refused["history"][-1] if refused["history"] else {})
        screen.print(f"refused, and kept for `ssil accept`: {what}", markup=False)


def _whole(value: float | None) -> str:
    """Return an accuracy in percent as a whole number.

    >>> _whole(66.666), _whole(None)
    ('67', '-')
    """
    return "-" if value is None else f"{value:.0f}"


def _origin(number: int, entry: Mapping[str, Any]) -> str:
    """Return from which version a version was made, if not from the one before.

    >>> _origin(3, {"parent": 1}), _origin(3, {"parent": 2}), _origin(1, {"parent": None})
    ('from 1: ', '', '')
    """
    parent = entry.get("parent")
    return f"from {parent}: " if parent not in (None, number - 1) else ""


def folder_test(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the numbers of a test folder in an entry of the history; nothing if there are none."""
    test = entry.get("test")
    numbers = isinstance(test, dict) and isinstance(test.get("accuracy"), int | float)
    return test if numbers and isinstance(test, dict) else {}


def _courses(entries: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[float]]]:
    """Yield the accuracies of two versions or more: on all classes, and on the test folder."""
    found = [*entries]
    told = [entry["accuracy"] for entry in found if isinstance(entry.get("accuracy"), int | float)]
    tests = [folder_test(entry)["accuracy"] for entry in found if folder_test(entry)]
    yield from ((name, values) for name, values in (("all classes", told), ("test folder", tests)) if len(values) > 1)


def curve(values: Sequence[float]) -> str:
    """Return percentages as a row of bars, the last `MAX_BARS` of them.

    >>> curve([100.0, 50.0, 0.0])
    '█▅▁'
    """
    return "".join(BARS[round(min(max(value, 0), 100) / 100 * (len(BARS) - 1))] for value in values[-MAX_BARS:])
