"""Defects of a directory that `ssil verify` finds, and the safe ways to repair them."""

import fcntl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ssil.core.errors import UserError
from ssil.core.files import LOCK, create_folder, flush_folder

OnFile = Callable[[int, int], None]
"""Called with the number of files or images that are verified, and the number of all."""


@dataclass(frozen=True)
class Defect:
    """A file that is not what it should be."""

    path: Path
    problem: str
    """What is wrong with it."""
    meaning: str
    """What that leads to, and what can be done."""
    repair: Callable[[], str] | None = None
    """Mends the defect and returns what was done; None if it can't be mended here."""


def move_aside(root: Path, path: Path) -> str:
    """Move a file or folder of the directory `root` to the directory ROOT.damaged beside it; return what was done."""
    root = root.resolve()
    beside = root.with_name(f"{root.name}.damaged")
    target = beside / path.resolve().relative_to(root)
    for number in range(1, 10_000):
        if not target.exists():
            break
        target = target.with_name(f"{path.name}.{number}")
    create_folder(target.parent)
    path.replace(target)
    flush_folder(path.parent)
    return f"moved to {target}"


def left_over(
    paths: Iterable[Path], meaning: str = "a process was killed while it wrote; nothing needs it"
) -> list[Defect]:
    """Return defects for files that nothing needs, which their repair removes."""

    def removal(path: Path) -> Callable[[], str]:
        def remove() -> str:
            path.unlink(missing_ok=True)
            return "removed"

        return remove

    return [Defect(path, "left over", meaning, removal(path)) for path in sorted(paths)]


def refuse_busy(folder: Path) -> None:
    """Raise UserError if another process holds the directory's lock: its files may be changing."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"directory: another process is at work in {folder}; wait until it is done") from None
    except OSError:  # there is no lock file, or no lock to be had: then nobody has it
        return


def told(error: Exception, path: Path) -> str:
    """Return what an error says of a file, without its path and the cure, which are shown beside it.

    >>> told(UserError("run: a/record.json is damaged (its checksum differs); restore it"), Path("a/record.json"))
    'is damaged (its checksum differs)'
    """
    text = " ".join(str(error).split())
    return (text.partition(str(path))[2] or text).partition(";")[0].strip()
