"""`ssil history`: a model's versions."""

from collections.abc import Mapping
from typing import Any

from cyclopts import App

from ssil.classifier.version_changes import describe_change
from ssil.cli.terminal import Json, Model, console, json_line, plain, table

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
    shown = table("version", "when (UTC)", "what", "images", "old", "new", words=3)
    for number, entry in entries.items():
        label = f"{number} (current)" if number == current else str(number)
        when, images = (str(entry.get(name) or "-") for name in ("time", "pictures"))
        old = " → ".join(_whole(entry.get(name)) for name in ("old_before", "old_after") if entry.get(name) is not None)
        what = f"{_origin(number, entry)}{describe_change(entry)}"
        minute = when[:16].replace("T", " ")
        shown.add_row(label, plain(minute), plain(what), plain(images), old or "-", _whole(entry.get("new_after")))
    screen = console()
    screen.print(shown)
    screen.print("old, new: of 100 images of classes it knew and of new ones, it recognises so many")


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
