"""Commands for a shell that mend the folders of an update, and learn them again."""

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any


def merge_command(images: str, first: str, second: str) -> str:
    """Return the command that puts the files of the class `second` into the folder of the class `first`.

    Args:
        images: The folder that was learnt.
        first: A class, which has a folder there or was known before.
        second: A class with a folder there.

    Returns:
        An empty text if `images` is no folder with one of `second`, or if a file would replace another.
    """
    parts = (Path(images).expanduser() / part for part in ("", "train"))
    root = next((one for one in parts if (one / second).is_dir()), None)
    if root is None:
        return ""
    source, target = root / second, root / first
    if not target.exists():
        return f"mv {quote(str(source))} {quote(str(target))}"
    names = [{path.name for path in folder.iterdir()} if folder.is_dir() else set() for folder in (source, target)]
    if names[0] & names[1]:
        return ""
    return f"mv {quote(str(source))}/* {quote(str(target))}/ && rmdir {quote(str(source))}"


def learn_again(model: str, entries: Sequence[Mapping[str, Any]], published: bool) -> tuple[str, ...]:
    """Return the commands that undo updates and learn their folders again; they delete nothing.

    Args:
        model: The model directory.
        entries: The updates in the history, from the first that is to be undone to the last.
        published: Whether the last of them has become a version; one that was refused need not be undone.

    Returns:
        Nothing if the folder of an update is not known, or if that of an update before the last is gone.
    """
    folders, name = [str(entry.get("images") or "") for entry in entries], quote(model)
    gone = any(not Path(folder).expanduser().exists() for folder in folders[:-1])
    if not model or not folders or not all(folders) or gone:
        return ()
    parent = entries[0].get("parent")
    undo = f"ssil rollback {name} {parent}" if parent else f"mv {name} {quote(set_aside(model))}"
    learnt = [f"ssil learn {name} {quote(folder)}" for folder in folders]
    judged = (entries[-1].get("test") or {}).get("folder") if not parent else None
    learnt[1:1] = [f"ssil exam {name} {quote(str(judged))}"] if judged else []
    return (*([undo] if published or len(entries) > 1 else []), *learnt)


def set_aside(model: str) -> str:
    """Return a name beside a model directory that is free, for the model as it is."""
    names = (f"{model.rstrip('/')}-old{number or ''}" for number in count())
    return next(name for name in names if not Path(name).exists())
