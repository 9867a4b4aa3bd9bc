"""A model directory on the level of files: its versions, the current one, locking, removal of unused files."""

import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ssil.classifier.model_files import FORMAT, read_checked_json, refuse_special_files, walk, write_checked_json
from ssil.classifier.name_history import name_there, without_suspects
from ssil.core.errors import UserError
from ssil.core.files import LOCK, checksum, flush_folder, locked, temporary
from ssil.core.model_layout import CANDIDATE, CURRENT, EXAM, MODEL, PAGE, VALIDATED, VERSIONS, version_folder

IMAGES, ONNX = "pictures", "model.onnx"
EXEMPLARS, HOLDOUT, COUNTED = "exemplars", "quiz", "counted"
"""The keys in model.json of both kinds of kept images, and of the checksums of images that were counted."""
STAGING = "staging"
"""The folder of images that wait to be learnt, see `ssil studio`; it may exist before there is a model."""
THRESHOLD = "unknown_below"
"""The key in model.json of the threshold of unknown images."""
DROPPED = ".dropped.part"
"""The name of a candidate that is being removed."""
UNFINISHED = (
    f".{CURRENT}.part",
    f".{CANDIDATE}.part",
    f".{EXAM}.part",
    f".{PAGE}.part",
    DROPPED,
    *(f"{folder}/.*.part" for folder in (VERSIONS, f"{VERSIONS}/*", CANDIDATE)),
)
"""Files and folders that are being written or removed."""
KEPT_FILE = re.compile(r"(?:[0-9a-f]{32}-)?([0-9a-f]{32})\.\w+")
"""The name of a kept image, or of its features; the last 32 digits are its own checksum."""
UNFINISHED_FILE = re.compile(rf"\.{KEPT_FILE.pattern}\.part")
"""The name of such a file that is being written."""

NAME_LISTS, ACCURACIES = ("new", "more", "renamed"), ("old_before", "old_after", "new_after")
"""Keys of an entry of the history: lists of class names, and percentages."""
MAX_VERSION = 10**9
"""No model has more versions."""

Version = TypeVar("Version")


class VersionedDirectory:
    """One folder per version, the image files that all versions share, and a file that names the current version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether there is a model."""
        return (self.folder / CURRENT).exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory's lock for a change, and remove unused files in the end.

        A directory that was made for the change is removed if no file was written to it.

        Raises:
            UserError: Another process holds the lock, or the directory is not a model's.
        """
        refuse_special_files(self.folder)
        found = self.folder.exists()
        with locked(self.folder, "model", self.is_model_directory()):
            try:
                yield
            finally:
                with suppress(OSError, UserError, KeyError, TypeError):
                    self._remove_unused()
                if not found and not any(entry.name != LOCK and entry.is_file() for entry in walk(self.folder)):
                    shutil.rmtree(self.folder, ignore_errors=True)

    def is_model_directory(self) -> bool:
        """Whether there is a model, nothing but images that wait, or what a killed first update leaves."""
        found = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        begun = LOCK in found and found <= {LOCK, VERSIONS, IMAGES, STAGING, PAGE, f".{CURRENT}.part"}
        return self.exists or begun or found <= {STAGING}

    def numbers(self) -> list[int]:
        """Return the numbers of the versions that are kept."""
        return sorted(int(path.name) for path in (self.folder / VERSIONS).glob("*") if path.name.isdecimal())

    def current(self) -> int:
        """Return the number of the version that predicts."""
        if not self.exists:
            raise UserError(f"model: {self.folder} holds no model; make one with: ssil learn {self.folder} IMAGES")
        path = self.folder / CURRENT
        number = read_checked_json(path).get("version")
        if type(number) is not int or not 0 < number <= MAX_VERSION:
            raise UserError(f"model: {path} is not what it should be (its version is no number); restore it")
        return number

    def current_or_none(self) -> int | None:
        """Return the number of the version that predicts; None if that can't be read, but there are versions."""
        try:
            return self.current()
        except UserError:
            if self.numbers():
                return None
            raise

    def read(self, number: int | None, read: Callable[[Path, int], Version]) -> Version:
        """Return `read(folder, number)` of a version, by default of the current one."""
        refuse_special_files(self.folder)
        if number is not None:
            return read(self._kept(number), number)
        while True:
            number = self.current()
            try:
                return read(self._kept(number), number)
            except UserError:  # which another process may have caused by publishing and pruning: then try again
                if self.current() == number:
                    raise

    def _kept(self, number: int) -> Path:
        if not (folder := self.version(number)).is_dir():
            kept = ", ".join(map(str, self.numbers()))
            raise UserError(f"version: {number} is not kept in {self.folder}; there are {kept}")
        return folder

    def version(self, number: int) -> Path:
        """Return the folder of a version."""
        return self.folder / VERSIONS / version_folder(number)

    @property
    def candidate(self) -> Path:
        """The folder of an update that was refused, if it is kept: a version that is not published."""
        return self.folder / CANDIDATE

    def candidate_description(self) -> dict[str, Any] | None:
        """Return the content of the candidate's model.json; None if there is no candidate."""
        return self._description(self.candidate) if self.candidate.is_dir() else None

    def drop_candidate(self) -> bool:
        """Remove the candidate; return whether there was one. Its images are removed with other unused files."""
        if not self.candidate.is_dir():
            return False
        with self.writing():
            shutil.rmtree(self.folder / DROPPED, ignore_errors=True)
            self.candidate.replace(self.folder / DROPPED)
            flush_folder(self.folder)
            shutil.rmtree(self.folder / DROPPED, ignore_errors=True)
        return True

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn an OSError, such as that of a full disk, into a UserError."""
        try:
            yield
        except OSError as error:
            cure = "make room, and try again; it predicts as before"
            raise UserError(f"model: {self.folder} can't be written ({error.strerror}); {cure}") from None

    def point_to(self, number: int) -> None:
        """Make a version the current one."""
        with self.writing():
            write_checked_json(self.folder / CURRENT, {"format": FORMAT, "version": number})

    def last_entry(self, number: int) -> Mapping[str, Any]:
        """Return the history entry of the change that made a version; `{"error": ...}` if it can't be read."""
        try:
            return [{}, *self._history(number)][-1]
        except UserError as error:
            return {"error": str(error)}

    def _history(self, number: int) -> list[dict[str, Any]]:
        return [dict(entry) for entry in self.description(number)["history"]]

    def description(self, number: int) -> dict[str, Any]:
        """Return the content of a version's model.json, after a check that its lists are lists."""
        return self._description(self.version(number))

    def _description(self, folder: Path) -> dict[str, Any]:
        path = folder / MODEL
        description = read_checked_json(path)
        if not _is_description(description):
            raise UserError(f"model: {path} is not what it should be; restore it, or prune it")
        return description

    def size(self) -> int:
        """Return the bytes on disk of all versions and images."""
        total = 0
        for entry in walk(self.folder):
            with suppress(FileNotFoundError):
                total += entry.stat().st_size if entry.is_file() else 0
        return total

    def erase_images(self, class_name: str) -> None:
        """Remove a class's images from every version, under whatever name it has there, and from the disk.

        A candidate is removed as a whole, and so is the page of the last update, and what the history says of images.
        """
        self.drop_candidate()
        (self.folder / PAGE).unlink(missing_ok=True)
        here = self._history(self.current())
        versions = {number: self.description(number) for number in self.numbers()}  # read all before changing any
        erased = set[str]()
        with self.writing():
            for number, description in versions.items():
                names = description["classes"]["names"]
                name = name_there(class_name, here, description["history"])
                description["history"] = without_suspects(description["history"])
                if name in names:
                    label = names.index(name)
                    images = [*description[EXEMPLARS][label], *description[HOLDOUT][label]]
                    erased |= {image["sha256"] for image in images}
                    for kind in (EXEMPLARS, HOLDOUT, COUNTED):
                        if description.get(kind):
                            description[kind][label] = []
                    (self.version(number) / VALIDATED).unlink(missing_ok=True)  # it has features of the images
                write_checked_json(self.version(number) / MODEL, description)
            self._remove_unused(erased)

    def prune(self, keep: int) -> list[int]:
        """Remove all versions but the newest `keep` and the current one; return the numbers of those removed."""
        removed = [number for number in self.numbers()[:-keep] if number != self.current()]
        with self.writing():
            for number in removed:
                self.version(number).replace(temporary(self.version(number)))
        return removed

    def _remove_unused(self, erased: Collection[str] = ()) -> None:
        """Remove unfinished files, then images of no version; images stay if any version can't be read.

        A file whose content does not have the checksum in its name is not ours and stays, unless it is one of the
        `erased` images: these are removed even if they are damaged.
        """
        self.remove_unfinished()
        for path in self.unused_files(erased):
            path.unlink()
        for class_folder in (self.folder / IMAGES).glob("*"):
            if not any(class_folder.iterdir()):
                class_folder.rmdir()

    def unfinished(self) -> list[Path]:
        """Return the files and folders that were being written or removed when a process was killed."""
        images = [path for path in (self.folder / IMAGES).glob("*/.*") if UNFINISHED_FILE.fullmatch(path.name)]
        return [*images, *(path for pattern in UNFINISHED for path in self.folder.glob(pattern))]

    def remove_unfinished(self) -> None:
        """Remove what `unfinished` returns."""
        for path in self.unfinished():
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def unused_files(self, erased: Collection[str] = ()) -> list[Path]:
        """Return the images, and features, of ours that no version refers to; see `_remove_unused`."""
        used = self._used_images()
        return [
            path
            for class_folder in (self.folder / IMAGES).glob("*")
            for path in class_folder.iterdir()
            if path.name[:32] not in used.get(_inode(class_folder), set())
            and (path.name[:32] in erased or _is_kept_file(path))
        ]

    def _used_images(self) -> dict[int, set[str]]:
        """Return the checksums of the images that versions refer to, by their folder's inode.

        Not by its name: a file system may spell it in another way than model.json does.
        """
        candidate = self.candidate_description()
        descriptions = [*map(self.description, self.numbers()), *([candidate] if candidate else [])]
        groups = [group for one in descriptions for group in (*one[EXEMPLARS], *one[HOLDOUT])]
        used: dict[int, set[str]] = defaultdict(set)
        for path in {self.folder / image["file"] for group in groups for image in group}:
            with suppress(FileNotFoundError):
                used[_inode(path.parent)].add(path.stem)
        return used


def _is_kept_file(path: Path) -> bool:
    """Return whether this is an image or features that ssil has written: its name contains its checksum."""
    name = KEPT_FILE.fullmatch(path.name)
    return name is not None and path.is_file() and checksum(path.read_bytes()) == name[1]


def _is_description(value: Mapping[str, Any]) -> bool:
    """Return whether the parts of model.json that are used without loading the model have their types."""
    try:
        groups = [group for key in (EXEMPLARS, HOLDOUT) for group in _list(value[key])]
        files = [image["file"] for group in groups for image in _list(group)]
        names = _list(value["classes"]["names"])
        changes = [
            name for entry in _list(value["history"]) for key in NAME_LISTS for name in _list(entry.get(key, []))
        ]
        numbers = [entry.get(key) for entry in value["history"] for key in ACCURACIES]
    except (KeyError, TypeError, AttributeError):
        return False
    texts = all(isinstance(one, str) for one in (*files, *names, *changes))
    return texts and all(one is None or isinstance(one, int | float) for one in numbers)


def _list(value: Any) -> list[Any]:
    """Return `value` if it is a list; raise TypeError otherwise."""
    if not isinstance(value, list):
        raise TypeError(f"{type(value).__name__} is no list")
    return value


def _inode(folder: Path) -> int:
    return folder.stat().st_ino
