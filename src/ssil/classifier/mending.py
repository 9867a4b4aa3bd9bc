"""Commands for a shell that mend the folders of an update, and learn them again."""

from collections.abc import Mapping, Sequence
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
    """Return the commands that undo updates and learn their folders again.

    Args:
        model: The model directory.
        entries: The updates in the history, from the first that is to be undone to the last.
        published: Whether the last of them has become a version; one that was refused need not be undone.

    Returns:
        Nothing if the folder of an update is not known.
    """
    folders, name = [entry.get("images") for entry in entries], quote(model)
    if not model or not folders or not all(folders):
        return ()
    parent = entries[0].get("parent")
    undo = f"ssil rollback {name} {parent}" if parent else f"rm -r {name}"
    learnt = (f"ssil learn {name} {quote(str(folder))}" for folder in folders)
    return (*([undo] if published or len(entries) > 1 else []), *learnt)
