"""Errors whose message is meant for the user, and hints for their messages."""

from collections.abc import Iterable

from ssil.core.spelling import near_names


class UserError(Exception):
    """Bad input. The message is one line: the field, what is wrong with its value, and what to do."""


class DivergedError(UserError):
    """Training that came to numbers that are infinite or none; nothing of it was written."""


class RefusedError(Exception):
    """An update refused by a guard such as `--max-drop`; the model directory is unchanged."""


def one_line(error: Exception) -> str:
    """Return an error's message on one line, cut after 200 characters; the name of its type if it has none."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def did_you_mean(name: str, known: Iterable[str], otherwise: str, count: int = 1) -> str:
    """Return a hint that asks for one of at most `count` known names similar to `name`, or else `otherwise`.

    >>> did_you_mean("epoks", ["epochs", "batch"], otherwise="see --help")
    "did you mean 'epochs'?"
    >>> did_you_mean("RED", ["red"], otherwise="see --help")
    "did you mean 'red'?"
    >>> did_you_mean("xyz", ["red"], otherwise="see --help")
    'see --help'
    """
    close = near_names(name, known, count)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else otherwise
