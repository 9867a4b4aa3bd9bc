"""What a process writes below a folder, in order: the trace from which `power_cuts.py` simulates a power cut."""

import os
import pickle
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple

WRITING = os.O_WRONLY | os.O_RDWR


class Event(NamedTuple):
    """One event: create, write, rename, remove, mkdir, flush (a file's content) or flush folder (its entries)."""

    kind: str
    path: str
    """Relative to the traced folder."""
    content: bytes = b""
    """The file's content so far, of a write or a flush."""
    target: str = ""
    """The new path, of a rename."""


class WriteTrace:
    """Records every event below a folder, by an audit hook and in place of `os.fsync`; it can't be taken off again."""

    def __init__(self, root: Path) -> None:
        self.root, self.events = root.resolve(), list[Event]()
        self.unflushed = dict[Path, bytes]()
        self.fsync, self.busy = os.fsync, False
        os.fsync = os.fdatasync = self._flush  # type: ignore[assignment]
        sys.addaudithook(self._heard)

    def save(self, path: Path) -> None:
        """Write the events to a file outside of the traced folder."""
        self.busy = True
        self._note_writes()
        path.write_bytes(pickle.dumps(self.events))

    def _add(self, kind: str, path: Path, content: bytes = b"", target: str = "") -> None:
        self.events.append(Event(kind, str(path.relative_to(self.root)), content, target))

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if self.busy or event not in {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}:
            return
        self.busy = True
        try:
            self._note(event, given)
        finally:
            self.busy = False

    def _note(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = given
            if isinstance(path, int) or not flags & WRITING:
                return
            self._opened(self._below(path, -1), flags)
        elif event == "os.rename":
            self._renamed(self._below(given[0], given[2]), self._below(given[1], given[3]))
        else:
            self._changed(event, self._below(given[0], given[-1]))

    def _below(self, path: Any, folder: int) -> Path | None:
        """The absolute path, if it is below the traced folder."""
        base = Path(f"/proc/self/fd/{folder}").readlink() if folder >= 0 else Path.cwd()
        found = Path(os.path.normpath(base / os.fsdecode(path)))
        return found if found.is_relative_to(self.root) else None

    def _opened(self, path: Path | None, flags: int) -> None:
        if path is None or not path.parent.is_dir() or (path.exists() and not path.is_file()):
            return
        self._note_writes()
        if not path.exists():
            self._add("create", path)
        elif flags & os.O_TRUNC:
            self._add("write", path)
        self.unflushed[path] = b"" if flags & os.O_TRUNC or not path.exists() else path.read_bytes()

    def _renamed(self, path: Path | None, target: Path | None) -> None:
        if path is None or target is None:
            return
        self._note_writes()
        self._add("rename", path, target=str(target.relative_to(self.root)))
        for known in [known for known in self.unflushed if known.is_relative_to(path)]:
            self.unflushed[target / known.relative_to(path)] = self.unflushed.pop(known)

    def _changed(self, event: str, path: Path | None) -> None:
        if path is None or path.exists() == (event == "os.mkdir") or not path.parent.is_dir():
            return
        self._note_writes()
        self._add("mkdir" if event == "os.mkdir" else "remove", path)
        if event == "os.remove":
            self.unflushed.pop(path, None)

    def _note_writes(self) -> None:
        """Note the content of files that are open for writing, as far as it has left the process."""
        for path, before in self.unflushed.items():
            if path.is_file() and (now := path.read_bytes()) != before:
                self._add("write", path, now)
                self.unflushed[path] = now

    def _flush(self, file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        self.fsync(number)
        path = self._below(Path(f"/proc/self/fd/{number}").readlink(), -1)
        if path is None:
            return
        self.busy = True
        self._note_writes()
        if stat.S_ISDIR(os.fstat(number).st_mode):
            self._add("flush folder", path)
        else:
            self._add("flush", path, path.read_bytes())
            self.unflushed.pop(path, None)
        self.busy = False
