"""`ssil history`: a model's versions."""

from collections.abc import Mapping, Sequence
from typing import Any

from cyclopts import App

from ssil.cli.terminal import Json, Model, console, json_line, percent, plain, table

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
    shown = table("version", "from", "when (UTC)", "what", "images", "old before", "old after", "new after", words=4)
    for number, entry in entries.items():
        label = f"{number} (current)" if number == current else str(number)
        accuracies = (entry.get(name) for name in ("old_before", "old_after", "new_after"))
        when, parent, images = (str(entry.get(name) or "-") for name in ("time", "parent", "pictures"))
        minute = when[:16].replace("T", " ")
        shown.add_row(
            label, plain(parent), plain(minute), plain(_change(entry)), plain(images), *map(percent, accuracies)
        )
    console().print(shown)


def _change(entry: Mapping[str, Any]) -> str:
    """Describe a change of the model in a few words.

    >>> _change({"error": "model: it is damaged"})
    'model: it is damaged'
    >>> _change({"new": ["ant", "bee"], "more": ["cat"]})
    '+ ant, bee; more of cat'
    >>> _change({"forgotten": "ant"}), _change({"renamed": ["ant", "emu"]})
    ('forgot ant', 'ant is now emu')
    """
    if "error" in entry:
        return str(entry["error"])
    if "forgotten" in entry:
        return f"forgot {entry['forgotten']}"
    if "renamed" in entry:
        return " is now ".join(entry["renamed"])
    parts = (f"{words}{_few(entry[kind])}" for kind, words in (("new", "+ "), ("more", "more of ")) if entry.get(kind))
    return "; ".join(parts)


def _few(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
