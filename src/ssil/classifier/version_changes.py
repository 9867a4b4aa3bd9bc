"""What made a version of a model, in a few words, and when."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


def describe_change(entry: Mapping[str, Any]) -> str:
    """Describe the change of a model that an entry of its history tells of.

    >>> describe_change({"error": "model: it is damaged"})
    'model: it is damaged'
    >>> describe_change({"new": ["ant", "bee"], "more": ["cat"]})
    '+ ant, bee; more of cat'
    >>> describe_change({"forgotten": "ant"}), describe_change({"renamed": ["ant", "emu"]})
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


def _few(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def local_time(moment: str) -> str:
    """Return a moment of the history, which is in UTC, in the time of this place; as it is if it is no moment.

    >>> local_time("yesterday")
    'yesterday'
    """
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return moment
