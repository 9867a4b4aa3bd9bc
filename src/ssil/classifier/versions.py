"""A model's directory as files: which versions it holds, which one predicts, who may write, and what may go."""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from ssil.classifier.model_files import FORMAT, entries, refuse_strange, seal, sealed
from ssil.core.errors import UserError
from ssil.core.files import LOCK, locked, temporary

CURRENT, MODEL, WEIGHTS, PICTURES, VERSIONS = (
    "current.json",
    "model.json",
    "weights.safetensors",
    "pictures",
    "versions",
)
PARTS = (".*.part", "versions/.*.part", "versions/*/.*.part", "pictures/*/.*.part")
"""What is being written, or removed."""
KEPT = re.compile(r"[0-9a-f]{32}(-[0-9a-f]{32})?\.\w+")
"""Names of pictures, and of their features."""

History = Sequence[Mapping[str, Any]]


class Shelf:
    """Versions in folders of their own, the pictures they share, and one small file that names the current."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether there is a model."""
        return (self.folder / CURRENT).exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory for a change, and leave it tidy; a second writer is told to wait."""
        refuse_strange(self.folder)
        with locked(self.folder, "model", self._ours()):
            try:
                yield
            finally:
                self._tidy()

    def _ours(self) -> bool:
        """Also where a first update was killed."""
        found = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        begun = LOCK in found and found <= {LOCK, VERSIONS, PICTURES, f".{CURRENT}.part"}
        return self.exists or begun or not found

    def numbers(self) -> list[int]:
        """The versions that are kept."""
        return sorted(int(path.name) for path in (self.folder / VERSIONS).glob("*") if path.name.isdecimal())

    def current(self) -> int:
        """The version that predicts."""
        if not self.exists:
            raise UserError(f"model: {self.folder} holds no model; make one with: ssil learn {self.folder} IMAGES")
        path = self.folder / CURRENT
        number = sealed(path).get("version")
        if not isinstance(number, int):
            raise UserError(f"model: {path} is not what it should be (version {number!r}); restore it")
        return number

    def known_current(self) -> int | None:
        """The version that predicts; None where that can't be read, and there are versions to choose from."""
        try:
            return self.current()
        except UserError:
            if self.numbers():
                return None
            raise

    def version(self, number: int) -> Path:
        """The folder of a version."""
        return self.folder / VERSIONS / f"{number:04d}"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Tell the user of a full disk, and the like."""
        try:
            yield
        except OSError as error:
            cure = "make room, and try again; it predicts as before"
            raise UserError(f"model: {self.folder} can't be written ({error.strerror}); {cure}") from None

    def point_to(self, number: int) -> None:
        """Let this version be the current one."""
        with self.writing():
            seal(self.folder / CURRENT, {"format": FORMAT, "version": number})

    def entry(self, number: int) -> Mapping[str, Any]:
        """The update that made a version, or why that can't be read."""
        try:
            return [{}, *self._history(number)][-1]
        except UserError as error:
            return {"error": str(error)}

    def _history(self, number: int) -> list[dict[str, Any]]:
        history = self._said(number)["history"]
        return [dict(entry) for entry in history]

    def _said(self, number: int) -> dict[str, Any]:
        """What a version says of itself; its lists are lists."""
        path = self.version(number) / MODEL
        said = sealed(path)
        lists = [said.get(kind) for kind in ("exemplars", "quiz", "history")]
        if not all(isinstance(one, list) for one in lists):
            raise UserError(f"model: {path} is not what it should be; restore it, or prune it")
        return said

    def size(self) -> int:
        """Bytes on disk, all versions and pictures together."""
        total = 0
        for entry in entries(self.folder):
            with suppress(FileNotFoundError):
                total += entry.stat().st_size if entry.is_file() else 0
        return total

    def erase(self, class_name: str) -> None:
        """Take a class's pictures out of every version that is kept, whatever it is called there, and off the disk."""
        here = self._history(self.current())
        versions = {number: self._said(number) for number in self.numbers()}  # all, before one is changed
        with self.writing():
            for number, said in versions.items():
                names, name = said["classes"]["names"], _called(class_name, here, said["history"])
                if name in names:
                    said["exemplars"][names.index(name)], said["quiz"][names.index(name)] = [], []
                    seal(self.version(number) / MODEL, said)
            self._sweep()

    def prune(self, keep: int) -> list[int]:
        """Remove all versions but the newest and the current one; which they were."""
        gone = [number for number in self.numbers()[:-keep] if number != self.current()]
        with self.writing():
            for number in gone:
                self.version(number).replace(temporary(self.version(number)))
        return gone

    def _tidy(self) -> None:
        """Remove what is of no use, as far as that is possible."""
        with suppress(OSError, UserError, KeyError, TypeError):
            self._sweep()

    def _sweep(self) -> None:
        """Remove parts, and pictures of no version; not these, if a version can't be read."""
        for path in [path for pattern in PARTS for path in self.folder.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        used = self._used()
        for album in (self.folder / PICTURES).glob("*"):
            of_album = used.get(_inode(album), set())
            for path in album.glob("*"):
                if KEPT.fullmatch(path.name) and path.name[:32] not in of_album:
                    path.unlink()
            if not any(album.iterdir()):
                album.rmdir()

    def _used(self) -> dict[int, set[str]]:
        """The pictures that any version refers to, by folder; a disk may spell its name otherwise than the version."""
        said = [self._said(number) for number in self.numbers()]
        groups = [group for version in said for group in (*version["exemplars"], *version["quiz"])]
        used: dict[int, set[str]] = defaultdict(set)
        for path in {self.folder / one["file"] for group in groups for one in group}:
            with suppress(FileNotFoundError):
                used[_inode(path.parent)].add(path.stem)
        return used


def _inode(folder: Path) -> int:
    return folder.stat().st_ino


def _called(name: str, here: History, there: History) -> str | None:
    """What a class of that name here is called there: renamings are undone back to the common past, then done.

    A class that arrived after that is the one that arrived there under the same name, if there is one.

    >>> past = [{"new": ["ant", "bee"]}]
    >>> _called("wasp", [*past, {"renamed": ["bee", "wasp"]}], [*past, {"renamed": ["bee", "fly"]}])
    'fly'
    >>> _called("bee", [*past, {"renamed": ["bee", "wasp"]}, {"new": ["bee"]}], past)
    """
    common = len([*takewhile(lambda pair: pair[0] == pair[1], zip(here, there, strict=False))])
    there_now = True
    for entry in reversed(here[common:]):
        if name in entry.get("new", ()):
            there_now = False
            break
        before, after = entry.get("renamed", (name, name))
        name = before if name == after else name
    for entry in there[common:]:
        there_now = there_now or name in entry.get("new", ())
        before, after = entry.get("renamed", (name, name))
        name = after if there_now and name == before else name
    return name if there_now else None
