"""A classifier's directory: immutable versions, the pictures they share, and one small file that names the current.

docs/model-directory.md describes it. Nothing in it is code, and nothing is unpickled.
"""

import math
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ssil.classifier import images
from ssil.classifier.classifier import Classifier
from ssil.classifier.classifier_settings import ModelSettings, make_settings
from ssil.classifier.feature_extraction import bench_for
from ssil.classifier.images import Groups, Picture
from ssil.classifier.model_files import (
    FORMAT,
    folder_name,
    picture,
    reason,
    refuse_strange,
    seal,
    sealed,
    tensors,
    text,
)
from ssil.classifier.versions import MODEL, PICTURES, WEIGHTS, History, Shelf
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.files import checksum, temporary, write_atomic
from ssil.core.samples import Samples
from ssil.core.tensor_files import pack
from ssil.data.resident_images import Resident
from ssil.learning.model_state import restore_snapshot, snapshot_tensors
from ssil.learning.snapshot import Snapshot


@dataclass(frozen=True)
class ModelVersion:
    """A classifier as it was published, and how it came to be: one entry an update, the newest last."""

    number: int
    classifier: Classifier
    history: tuple[Mapping[str, Any], ...]

    def arrivals(self) -> list[int]:
        """For each class, which of the updates behind this version brought it, from 1."""
        return [task + 1 for task in self.classifier.classes.task_of().tolist()]


class ModelDirectory(Shelf):
    """Readers see the current version or an earlier one, never a part of one; writers take turns."""

    def __init__(self, folder: Path, trusted: Collection[str] = ()) -> None:
        """Of methods and backbones that are code of their own only those are loaded which are `trusted`."""
        super().__init__(folder)
        self.trusted = trusted

    def load(self, number: int | None = None) -> ModelVersion:
        """A version, the current one if not said otherwise; weights are checked now, pictures when they are read."""
        refuse_strange(self.folder)
        if number is not None:
            return self._load(number)
        while True:
            number = self.current()
            try:
                return self._load(number)
            except UserError:  # unless it is another by now
                if self.current() == number:
                    raise

    def _load(self, number: int) -> ModelVersion:
        folder = self.version(number)
        if not folder.is_dir():
            kept = ", ".join(map(str, self.numbers()))
            raise UserError(f"version: {number} is not kept in {self.folder}; there are {kept}")
        return self._read(folder, number)

    def _read(self, folder: Path, number: int) -> ModelVersion:
        said = sealed(folder / MODEL)
        try:
            return self._restored(folder, number, said)
        except UserError:
            raise
        except Exception as error:  # of any kind that a stranger's nonsense can bring about
            raise UserError(f"model: {folder / MODEL} is not what it should be ({reason(error)})") from None

    def _restored(self, folder: Path, number: int, said: Mapping[str, Any]) -> ModelVersion:
        settings = make_settings(said["settings"])
        _refuse_code(folder / MODEL, settings, self.trusted)
        classes = ClassTable(tuple(map(text, said["classes"]["names"])), tuple(said["classes"]["bounds"]))
        weights = tensors(folder / WEIGHTS, said["weights"])
        snapshot = restore_snapshot(weights, settings.configured().method, classes, bench_for(settings))
        _try(snapshot, settings)
        exemplars, quiz = (self._pictures(said[kind], classes.seen) for kind in ("exemplars", "quiz"))
        history = tuple(dict(entry) for entry in said["history"])
        temperature = float(said.get("temperature", 1.0))
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature {temperature}")
        return ModelVersion(number, Classifier(settings, snapshot, exemplars, quiz, temperature), history)

    def publish(self, classifier: Classifier, history: History) -> ModelVersion:
        """Write a new version aside, check it by loading it, and make it the current one by a rename."""
        number = max(self.numbers(), default=0) + 1
        folder = self.version(number)
        shutil.rmtree(temporary(folder), ignore_errors=True)
        with self.writing():
            self._write(temporary(folder), number, classifier, history)
            made = self._read(temporary(folder), number)
            temporary(folder).replace(folder)
        self.point_to(number)
        return made

    def _write(self, folder: Path, number: int, classifier: Classifier, history: History) -> None:
        exemplars, quiz = (self._keep(classifier, groups) for groups in (classifier.exemplars, classifier.quiz))
        weights = pack(snapshot_tensors(classifier.snapshot))
        write_atomic(folder / WEIGHTS, weights)
        said = {
            "format": FORMAT,
            "version": number,
            "settings": classifier.settings.model_dump(mode="json"),
            "classes": {"names": classifier.classes.names, "bounds": classifier.classes.bounds},
            "weights": checksum(weights),
            "temperature": classifier.temperature,
            "exemplars": exemplars,
            "quiz": quiz,
            "history": [*history],
        }
        seal(folder / MODEL, said)

    def _keep(self, classifier: Classifier, groups: Groups) -> list[list[dict[str, str]]]:
        """The pictures of each class as files, which versions share."""
        return [
            [self._file(name, picture) for picture in group]
            for name, group in zip(classifier.classes.names, groups, strict=True)
        ]

    def _file(self, class_name: str, picture: Picture) -> dict[str, str]:
        data = picture.read()
        path = self.folder / PICTURES / folder_name(class_name) / f"{picture.digest}{_suffix(data)}"
        if not path.exists():
            write_atomic(path, data)
        return {
            "file": str(path.relative_to(self.folder)),
            "sha256": picture.digest,
            "name": picture.name,
            "origin": picture.origin,
            **images.keep(path, picture),
        }

    def _pictures(self, said: Sequence[Sequence[Mapping[str, str]]], classes: int) -> Groups:
        """Those that are still there: their owner may have deleted some."""
        found = tuple(tuple(filter(None, map(self._picture, group))) for group in said)
        if len(found) != classes:
            raise ValueError(f"pictures of {len(found)} classes, not of {classes}")
        return found

    def _picture(self, said: Mapping[str, str]) -> Picture | None:
        file, digest, name, origin = (text(said[field]) for field in ("file", "sha256", "name", "origin"))
        if Path(file).parts[:1] != (PICTURES,) or ".." in Path(file).parts:
            raise UserError(f"model: {file!r} is none of its pictures; the model is not to be trusted")
        if not re.fullmatch("[0-9a-f]{32}", digest):
            raise ValueError(f"{digest!r} is no checksum")
        path = self.folder / file
        known = images.kept(path, said.get("features"))
        return Picture(name, digest, partial(picture, path, digest), origin, known) if path.exists() else None


def _try(snapshot: Snapshot, settings: ModelSettings) -> None:
    """Look at a black picture: shapes that don't fit must not wait for somebody's."""
    look, first = settings.look(), torch.zeros(1, dtype=torch.long)
    black = torch.zeros(1, look.size, look.size, look.channels, dtype=torch.uint8)
    context = bench_for(settings, Samples(Resident(black), first))
    scores = snapshot.scores(context.outputs(snapshot.network, first))
    if scores.shape != (1, snapshot.classes.seen):
        raise ValueError(f"{scores.shape[1]} scores for {snapshot.classes.seen} classes")


def _refuse_code(path: Path, settings: ModelSettings, trusted: Collection[str]) -> None:
    """A stranger's model must not name code that would then be run."""
    for kind, name in (("method", settings.method), ("backbone", settings.backbone)):
        if ":" in name and name not in trusted:
            raise UserError(f"{kind}: {path} names code of its own, {name}; if you trust it, say --trust {name}")


def _suffix(data: bytes) -> str:
    kinds = {b"\xff\xd8": ".jpg", b"\x89PNG": ".png", b"RIFF": ".webp", b"GIF8": ".gif", b"BM": ".bmp"}
    return next((suffix for start, suffix in kinds.items() if data.startswith(start)), ".image")
