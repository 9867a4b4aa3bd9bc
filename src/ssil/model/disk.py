"""A classifier's directory: immutable versions, the pictures they share, and one small file that names the current.

docs/model-directory.md describes it. Nothing in it is code, and nothing is unpickled.
"""

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import safetensors.torch
from safetensors import SafetensorError

from ssil.checkpoint import pack, write_atomic, write_json
from ssil.errors import UserError
from ssil.files import locked
from ssil.model.classifier import Classifier, Groups, bench_for
from ssil.model.pictures import Picture, checksum
from ssil.model.settings import ModelSettings, make_settings
from ssil.saved import restore_snapshot, snapshot_tensors
from ssil.types import Classes

FORMAT = 1
CURRENT, MODEL, WEIGHTS, PICTURES = "current.json", "model.json", "weights.safetensors", "pictures"


@dataclass(frozen=True)
class Version:
    """A classifier as it was published, and how it came to be: one entry an update, the newest last."""

    number: int
    classifier: Classifier
    history: tuple[Mapping[str, Any], ...]

    def arrivals(self) -> list[int]:
        """For each class, which of the updates behind this version brought it, from 1."""
        return [task + 1 for task in self.classifier.classes.task_of().tolist()]


class ModelDirectory:
    """Readers see the current version or an earlier one, never a part of one; writers take turns."""

    def __init__(self, folder: Path, trusted: Collection[str] = ()) -> None:
        """Of methods and backbones that are code of their own only those are loaded which are `trusted`."""
        self.folder, self.trusted = folder, trusted

    @property
    def exists(self) -> bool:
        """Whether there is a model."""
        return (self.folder / CURRENT).exists()

    def locked(self) -> Any:
        """Hold the directory for an update: a second writer is told to wait."""
        ours = self.folder.is_dir() and (self.exists or {path.name for path in self.folder.iterdir()} <= {"lock"})
        return locked(self.folder, "model", ours)

    def numbers(self) -> list[int]:
        """The versions that are kept."""
        return sorted(int(path.name) for path in (self.folder / "versions").glob("[0-9]*"))

    def current(self) -> int:
        """The version that predicts."""
        if not self.exists:
            raise UserError(f"model: {self.folder} holds no model; make one with: ssil learn {self.folder} IMAGES")
        return int(_sealed(self.folder / CURRENT)["version"])

    def load(self, number: int | None = None) -> Version:
        """A version, the current one if not said otherwise; weights are checked now, pictures when they are read."""
        number = self.current() if number is None else number
        folder = self._version(number)
        if not folder.is_dir():
            kept = ", ".join(map(str, self.numbers()))
            raise UserError(f"version: {number} is not kept in {self.folder}; there are {kept}")
        said = _sealed(folder / MODEL)
        try:
            return self._restored(number, said)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, IndexError) as error:
            raise UserError(f"model: {folder / MODEL} is not what it should be ({_first_line(error)})") from None

    def _restored(self, number: int, said: Mapping[str, Any]) -> Version:
        folder, settings = self._version(number), make_settings(said["settings"])
        _refuse_code(folder / MODEL, settings, self.trusted)
        classes = Classes(tuple(said["classes"]["names"]), tuple(said["classes"]["bounds"]))
        tensors = _tensors(folder / WEIGHTS, said["weights"])
        snapshot = restore_snapshot(tensors, settings.configured().method, classes, bench_for(settings))
        exemplars, quiz = (self._pictures(said[kind], classes.seen) for kind in ("exemplars", "quiz"))
        return Version(number, Classifier(settings, snapshot, exemplars, quiz), tuple(said["history"]))

    def publish(self, classifier: Classifier, history: Sequence[Mapping[str, Any]]) -> Version:
        """Write a new version aside, check it by loading it, and make it the current one by a rename."""
        number = max(self.numbers(), default=0) + 1
        part = self._version(number).with_name(f".{number:04d}.part")
        shutil.rmtree(part, ignore_errors=True)
        exemplars, quiz = (self._keep(classifier, groups) for groups in (classifier.exemplars, classifier.quiz))
        weights = pack(snapshot_tensors(classifier.snapshot))
        write_atomic(part / WEIGHTS, weights)
        classes = {"names": classifier.classes.names, "bounds": classifier.classes.bounds}
        said = {
            "format": FORMAT,
            "version": number,
            "settings": classifier.settings.model_dump(mode="json"),
            "classes": classes,
            "weights": checksum(weights),
            "exemplars": exemplars,
            "quiz": quiz,
            "history": [*history],
        }
        _seal(part / MODEL, said)
        part.replace(self._version(number))
        made = self.load(number)
        self.point_to(number)
        return made

    def entry(self, number: int) -> Mapping[str, Any]:
        """The update that made a version."""
        entry: Mapping[str, Any] = _sealed(self._version(number) / MODEL)["history"][-1]
        return entry

    def size(self) -> int:
        """Bytes on disk, all versions and pictures together."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def erase(self, class_name: str) -> None:
        """Take a class's pictures out of every version that is kept, and off the disk."""
        for number in self.numbers():
            path = self._version(number) / MODEL
            said = _sealed(path)
            if class_name in said["classes"]["names"]:
                label = said["classes"]["names"].index(class_name)
                said["exemplars"][label], said["quiz"][label] = [], []
                _seal(path, said)
        shutil.rmtree(self._album(class_name), ignore_errors=True)

    def _album(self, class_name: str) -> Path:
        return self.folder / PICTURES / quote(class_name, safe=" ")

    def point_to(self, number: int) -> None:
        """Let this version be the current one."""
        _seal(self.folder / CURRENT, {"format": FORMAT, "version": number})

    def _version(self, number: int) -> Path:
        return self.folder / "versions" / f"{number:04d}"

    def _keep(self, classifier: Classifier, groups: Groups) -> list[list[dict[str, str]]]:
        """The pictures of each class as files, which versions share."""
        return [
            [self._file(name, picture) for picture in group]
            for name, group in zip(classifier.classes.names, groups, strict=True)
        ]

    def _file(self, class_name: str, picture: Picture) -> dict[str, str]:
        data = picture.read()
        path = self._album(class_name) / f"{picture.digest}{_suffix(data)}"
        if not path.exists():
            write_atomic(path, data)
        return {
            "file": str(path.relative_to(self.folder)),
            "sha256": picture.digest,
            "name": picture.name,
            "origin": picture.origin,
        }

    def _pictures(self, said: Sequence[Sequence[Mapping[str, str]]], classes: int) -> Groups:
        """Those that are still there: their owner may have deleted some."""
        found = tuple(tuple(filter(None, map(self._picture, group))) for group in said)
        if len(found) != classes:
            raise ValueError(f"pictures of {len(found)} classes, not of {classes}")
        return found

    def _picture(self, said: Mapping[str, str]) -> Picture | None:
        path = self.folder / said["file"]
        if Path(said["file"]).parts[:1] != (PICTURES,) or ".." in Path(said["file"]).parts:
            raise UserError(f"model: {said['file']!r} is none of its pictures; the model is not to be trusted")
        if not path.exists():
            return None
        return Picture(said["name"], said["sha256"], partial(_content, path, said["sha256"]), said["origin"])


def _refuse_code(path: Path, settings: ModelSettings, trusted: Collection[str]) -> None:
    """A stranger's model must not name code that would then be run."""
    for kind, name in (("method", settings.method), ("backbone", settings.backbone)):
        if ":" in name and name not in trusted:
            raise UserError(f"{kind}: {path} names code of its own, {name}; if you trust it, say --{kind} {name}")


def _suffix(data: bytes) -> str:
    kinds = {b"\xff\xd8": ".jpg", b"\x89PNG": ".png", b"RIFF": ".webp", b"GIF8": ".gif", b"BM": ".bmp"}
    return next((suffix for start, suffix in kinds.items() if data.startswith(start)), ".image")


def _content(path: Path, digest: str) -> bytes:
    data = path.read_bytes()
    if checksum(data) != digest:
        raise UserError(f"model: {path} is damaged (its checksum differs); delete it, or restore it")
    return data


def _seal(path: Path, said: Mapping[str, Any]) -> None:
    """A JSON file with its own checksum."""
    write_json(path, {**said, "checksum": _checksum(said)})


def _checksum(said: Mapping[str, Any]) -> str:
    return checksum(json.dumps(said, sort_keys=True, ensure_ascii=False).encode())


def _sealed(path: Path) -> dict[str, Any]:
    """What `_seal` has written; a damaged or strange file is named."""
    try:
        said = json.loads(path.read_bytes())
        given = said.pop("checksum")
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise UserError(f"model: {path} can't be read ({_first_line(error)}); restore it, or roll back") from None
    if given != _checksum(said):
        raise UserError(f"model: {path} is damaged (its checksum differs); restore it, or roll back")
    if said.get("format") != FORMAT:
        raise UserError(f"model: {path} has format {said.get('format')!r}; this ssil reads format {FORMAT}")
    return dict(said)


def _tensors(path: Path, digest: str) -> dict[str, Any]:
    try:
        data = path.read_bytes()
        if checksum(data) != digest:
            raise UserError(f"model: {path} is damaged (its checksum differs); restore it, or roll back")
        return safetensors.torch.load(data)
    except (OSError, SafetensorError) as error:
        raise UserError(f"model: {path} can't be read ({_first_line(error)}); restore it, or roll back") from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
