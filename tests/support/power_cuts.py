"""A disk after a simulated power cut: what `write_trace.py` has recorded, with any unflushed end of it lost.

The model is POSIX's, and no kinder: a file's content is safe once the file is flushed; a folder's entries (names of new
files and folders, renames, removals) are safe once that folder is flushed. All else may be lost, from any moment on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path, PurePath

from write_trace import Event

ROOT = 0

Tree = dict[str, bytes | None]
"""Files by their paths, with their content; None for a folder."""


@dataclass(frozen=True)
class Change:
    """A change of a folder's entries: a name now leads to a file or folder, or to nothing; a rename has two."""

    folder: int
    entries: tuple[tuple[int, str, int | None], ...]


@dataclass
class Disk:
    """What a process sees, and what is safe on the disk."""

    seen: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    """The entries of each folder."""
    safe: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    written: dict[int, bytes] = field(default_factory=dict)
    """The content of each file."""
    flushed: dict[int, bytes] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)
    """Changes that are not safe yet."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def find(self, path: str) -> int:
        """Return the file or folder that a path leads to."""
        found = ROOT
        for name in PurePath(path).parts:
            found = self.seen[found][name]
        return found

    def _place(self, path: str) -> tuple[int, str]:
        return self.find(str(PurePath(path).parent)), PurePath(path).name

    def _change(self, folder: int, *entries: tuple[int, str, int | None]) -> None:
        _apply(self.seen, entries)
        self.pending.append(Change(folder, entries))

    def happen(self, event: Event) -> None:
        """Let an event happen."""
        if event.kind in ("create", "mkdir"):
            number, (folder, name) = next(self.numbers), self._place(event.path)
            if event.kind == "mkdir":
                self.seen[number], self.safe[number] = {}, {}
            else:
                self.written[number] = b""
            self._change(folder, (folder, name, number))
        elif event.kind == "remove":
            folder, name = self._place(event.path)
            self._change(folder, (folder, name, None))
        elif event.kind == "rename":
            (folder, name), (target, new) = self._place(event.path), self._place(event.target)
            self._change(target, (folder, name, None), (target, new, self.seen[folder][name]))
        elif event.kind == "flush folder":
            self._flush_folder(self.find(event.path))
        else:
            number = self.find(event.path)
            self.written[number] = event.content
            if event.kind == "flush":
                self.flushed[number] = event.content

    def _flush_folder(self, folder: int) -> None:
        for change in [change for change in self.pending if change.folder == folder]:
            _apply(self.safe, change.entries)
            self.pending.remove(change)

    def begin(self, folder: Path) -> None:
        """Start with what lies in a folder, all of it safe."""
        for path in sorted(folder.rglob("*")):
            inner = str(path.relative_to(folder))
            if path.is_dir():
                self.happen(Event("mkdir", inner))
            else:
                self.happen(Event("create", inner))
                self.happen(Event("flush", inner, path.read_bytes()))
        for number in [*self.seen]:
            self._flush_folder(number)

    def after(self, kept: int, with_content: bool) -> Tree:
        """Return what is left if the first `kept` pending changes got to the disk, and unflushed content or not."""
        entries = {number: dict(names) for number, names in self.safe.items()}
        for change in self.pending[:kept]:
            _apply(entries, change.entries)
        content = {**self.flushed, **self.written} if with_content else self.flushed
        return dict(_walk(entries, content, ROOT, ""))


def _apply(entries: dict[int, dict[str, int]], changes: Sequence[tuple[int, str, int | None]]) -> None:
    for folder, name, number in changes:
        if number is None:
            entries[folder].pop(name, None)
        else:
            entries[folder][name] = number


def _walk(
    entries: dict[int, dict[str, int]], content: dict[int, bytes], folder: int, path: str
) -> Iterator[tuple[str, bytes | None]]:
    for name, number in sorted(entries[folder].items()):
        if number in entries:
            yield f"{path}{name}", None
            yield from _walk(entries, content, number, f"{path}{name}/")
        else:
            yield f"{path}{name}", content.get(number, b"")


def cuts(before: Path, events: Sequence[Event]) -> list[tuple[str, Tree]]:
    """Return every different state that a power cut could leave, with the moment in words; the last is at the end.

    Args:
        before: The traced folder as it was before the events.
        events: What happened in it.
    """
    disk, known, found = Disk(), set[str](), list[tuple[str, Tree]]()
    disk.begin(before)
    for number, event in enumerate(events):
        disk.happen(event)
        if event.kind in ("write", "create"):
            continue  # seen again, as the unflushed part of what follows
        for kept in range(len(disk.pending) + 1):
            for with_content in (False, True):
                tree = disk.after(kept, with_content)
                if (key := sha256(repr(tree).encode()).hexdigest()) not in known:
                    known.add(key)
                    lost = f"{kept} of {len(disk.pending)} unflushed changes{' and contents' * with_content} kept"
                    found.append((f"after event {number} ({event.kind} {event.path}), {lost}", tree))
    found.append(("after the end, nothing unflushed kept", disk.after(0, False)))
    return found


def write(tree: Tree, folder: Path) -> Path:
    """Write a tree into a new folder."""
    folder.mkdir()
    for name, content in tree.items():
        path = folder / name
        path.mkdir() if content is None else path.write_bytes(content)
    return folder
