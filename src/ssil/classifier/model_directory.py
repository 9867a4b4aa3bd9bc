"""A classifier's directory: immutable versions, the images they share, and a file that names the current version.

docs/model-directory.md describes the format. Nothing in it is code, and nothing is unpickled.
"""

import math
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ssil.classifier import model_files, model_tensors
from ssil.classifier.classifier_settings import ClassifierSettings, make_settings
from ssil.classifier.image_file import ImageFile, ImagesByClass
from ssil.classifier.name_history import History
from ssil.classifier.onnx_export import try_export
from ssil.classifier.prediction import Classifier, execution_context
from ssil.classifier.unknown import checked_threshold, stated_threshold
from ssil.classifier.versions import COUNTED, EXEMPLARS, HOLDOUT, IMAGES, ONNX, THRESHOLD, VersionedDirectory
from ssil.core import __version__
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError, one_line
from ssil.core.files import checksum, flush_folder, temporary, write_atomic
from ssil.core.model_layout import MODEL, VALIDATED, WEIGHTS
from ssil.core.plugins import names_code
from ssil.core.samples import Samples
from ssil.core.tensor_files import pack
from ssil.data.resident_images import Resident
from ssil.learning.model_state import restore_snapshot, snapshot_tensors
from ssil.learning.snapshot import Snapshot

SUFFIXES = {b"\xff\xd8": ".jpg", b"\x89PNG": ".png", b"RIFF": ".webp", b"GIF8": ".gif", b"BM": ".bmp"}
"""The first bytes of a kind of image file, and its suffix."""


@dataclass(frozen=True)
class ModelVersion:
    """A published classifier, and its history."""

    number: int
    classifier: Classifier
    history: tuple[Mapping[str, Any], ...]
    onnx_problem: str | None = None
    """Why the version was published without `model.onnx`, if it was."""

    def arrivals(self) -> list[int]:
        """Return for each class which update brought it, counted from 1."""
        return [task + 1 for task in self.classifier.classes.task_of().tolist()]


class ModelDirectory(VersionedDirectory):
    """Loads and publishes versions: readers see a whole version, the old or the new; one writer at a time."""

    def __init__(self, folder: Path, trusted: Collection[str] = ()) -> None:
        """Open a directory; methods and backbones from files (`file.py:name`) are loaded only if `trusted`."""
        super().__init__(folder)
        self.trusted = trusted

    def load(self, number: int | None = None) -> ModelVersion:
        """Load a version, by default the current one; weights are validated now, images when they are read."""
        return self.read(number, self._read)

    def _read(self, folder: Path, number: int) -> ModelVersion:
        description = model_files.read_checked_json(folder / MODEL)
        try:
            return self._restore(folder, number, description)
        except UserError:
            raise
        except Exception as error:  # of any type: the file may be made to cause it
            raise UserError(f"model: {folder / MODEL} is not what it should be ({one_line(error)})") from None

    def _restore(self, folder: Path, number: int, description: Mapping[str, Any]) -> ModelVersion:
        settings = make_settings(description["settings"])
        _refuse_code(folder / MODEL, settings, self.trusted)
        names, bounds = description["classes"]["names"], description["classes"]["bounds"]
        classes = ClassTable(tuple(map(model_files.text, names)), tuple(bounds))
        weights = model_tensors.read_weights(folder / WEIGHTS, description["weights"])
        snapshot = restore_snapshot(weights, settings.configured().method, classes, execution_context(settings))
        _check_shapes(snapshot, settings)
        exemplars, holdout = (self._images(description[kind], classes.seen) for kind in (EXEMPLARS, HOLDOUT))
        history = tuple(dict(entry) for entry in description["history"])
        temperature = float(description.get("temperature", 1.0))
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature {temperature}")
        counted = model_files.digests_by_class(description.get(COUNTED, ()), classes.seen)
        threshold = checked_threshold(description.get(THRESHOLD))
        validated = model_tensors.read_validated(folder / VALIDATED, description.get("validated"), classes.seen)
        classifier = Classifier(settings, snapshot, exemplars, holdout, counted, temperature, threshold, validated)
        return ModelVersion(number, classifier, history)

    def publish_change(self, parent: ModelVersion | None, classifier: Classifier, **change: Any) -> ModelVersion:
        """Publish a classifier that was derived from `parent`, with `change` as its entry in the history."""
        return self.publish(classifier, _with_entry(parent, change))

    def publish(self, classifier: Classifier, history: History) -> ModelVersion:
        """Write a new version under a temporary name, validate it by loading it, rename it, and make it current.

        A candidate, which was made from an earlier version, is removed.
        """
        number = self._next_number()
        version = self._write_version(self.version(number), number, classifier, history)
        self.point_to(number)
        self.drop_candidate()
        return version

    def keep_candidate(self, parent: ModelVersion, classifier: Classifier, **change: Any) -> ModelVersion:
        """Write an update that was refused as the model's candidate, in place of an earlier one.

        It is what `publish_change` would have published; `accept_candidate` publishes it.
        """
        self.drop_candidate()
        return self._write_version(self.candidate, self._next_number(), classifier, _with_entry(parent, change))

    def accept_candidate(self) -> ModelVersion:
        """Publish the candidate: it becomes a version, and the current one.

        Raises:
            UserError: There is no candidate; it is damaged; or it was made from another version than the current one.
        """
        if not (description := self.candidate_description()):
            raise UserError(f"model: {self.folder} has no update that was refused; there is nothing to accept")
        number, parent, current = self._next_number(), [{}, *description["history"]][-1].get("parent"), self.current()
        if parent != current or description.get("version") != number:
            newer = f"{current} is the current one" if parent != current else f"version {number - 1} was made since"
            cure = "discard it (ssil discard), and learn the images again"
            raise UserError(f"candidate: it was made from version {parent}, and {newer}; {cure}")
        version = self._read(self.candidate, number)
        with self.writing():
            self.candidate.replace(self.version(number))
            for folder in (self.version(number).parent, self.folder):
                flush_folder(folder)  # before current.json names it
        self.point_to(number)
        return version

    def _next_number(self) -> int:
        return max(self.numbers(), default=0) + 1

    def _write_version(self, folder: Path, number: int, classifier: Classifier, history: History) -> ModelVersion:
        """Write a version under a temporary name, validate it by loading it, and rename it."""
        shutil.rmtree(temporary(folder), ignore_errors=True)
        with self.writing():
            problem = self._write(temporary(folder), number, classifier, history)
            version = replace(self._read(temporary(folder), number), onnx_problem=problem)
            temporary(folder).replace(folder)
            flush_folder(folder.parent)
        return version

    def _write(self, folder: Path, number: int, classifier: Classifier, history: History) -> str | None:
        """Write a version's files; return why `model.onnx` is not among them, or None if it is."""
        exemplars, holdout = (
            self._write_images(classifier.classes.names, groups)
            for groups in (classifier.exemplars, classifier.holdout)
        )
        weights = pack(snapshot_tensors(classifier.snapshot))
        write_atomic(folder / WEIGHTS, weights)
        exported, problem = try_export(classifier, number)
        if exported:
            write_atomic(folder / ONNX, exported)
        description = {
            "format": model_files.FORMAT,
            "version": number,
            "settings": classifier.settings.model_dump(mode="json"),
            "classes": {"names": classifier.classes.names, "bounds": classifier.classes.bounds},
            "weights": checksum(weights),
            **({"onnx": checksum(exported)} if exported else {}),
            **model_tensors.write_validated(folder / VALIDATED, classifier.validated),
            "temperature": classifier.temperature,
            THRESHOLD: stated_threshold(classifier.threshold),
            EXEMPLARS: exemplars,
            HOLDOUT: holdout,
            **({COUNTED: classifier.counted} if classifier.counted else {}),
            "history": [*history],
        }
        model_files.write_checked_json(folder / MODEL, description)
        return problem

    def _write_images(self, names: Sequence[str], groups: ImagesByClass) -> list[list[dict[str, str]]]:
        """Write each class's images into the folder that versions share; return their entries in model.json."""
        named = zip(names, groups, strict=True)
        return [[self._write_image(name, image) for image in group] for name, group in named]

    def _write_image(self, class_name: str, image: ImageFile) -> dict[str, str]:
        data = image.read()
        suffix = next((suffix for start, suffix in SUFFIXES.items() if data.startswith(start)), ".image")
        path = self.folder / IMAGES / model_files.folder_name(class_name) / f"{image.digest}{suffix}"
        if not path.exists():
            write_atomic(path, data)
        return {
            "file": str(path.relative_to(self.folder)),
            "sha256": image.digest,
            "name": image.name,
            "origin": image.origin,
            **model_tensors.write_tensors(path, image),
        }

    def _images(self, entries: Sequence[Sequence[Mapping[str, str]]], classes: int) -> ImagesByClass:
        """Return the images of these entries of model.json, without those whose files the user has deleted."""
        found = tuple(tuple(filter(None, map(self._image, group))) for group in entries)
        if len(found) != classes:
            raise ValueError(f"images of {len(found)} classes, not of {classes}")
        return found

    def _image(self, entry: Mapping[str, str]) -> ImageFile | None:
        file, digest, name, origin = (model_files.text(entry[field]) for field in ("file", "sha256", "name", "origin"))
        if Path(file).parts[:1] != (IMAGES,) or ".." in Path(file).parts:
            raise UserError(f"model: {file!r} is none of its images; the model is not to be trusted")
        model_files.check_digest(digest)
        path = self.folder / file
        features = model_tensors.features_reader(path, entry.get(model_tensors.FEATURES))
        stored = model_tensors.stored_reader(path, entry.get(model_tensors.STORED))
        if not path.exists():
            return None
        return ImageFile(name, digest, partial(model_files.read_image, path, digest), origin, features, stored)


def _with_entry(parent: ModelVersion | None, change: Mapping[str, Any]) -> History:
    """Return the history of a version that was derived from `parent` by a change."""
    entry = {
        "parent": parent.number if parent else None,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "ssil": __version__,
        **change,
    }
    return [*(parent.history if parent else ()), entry]


def _check_shapes(snapshot: Snapshot, settings: ClassifierSettings) -> None:
    """Predict a black image, so that weights of wrong shapes are found when the model is loaded."""
    size, channels = settings.preprocessing().size, settings.preprocessing().channels
    black, index = torch.zeros(1, size, size, channels, dtype=torch.uint8), torch.zeros(1, dtype=torch.long)
    context = execution_context(settings, Samples(Resident(black), index))
    scores = snapshot.scores(context.outputs(snapshot.network, index))
    if scores.shape != (1, snapshot.classes.seen):
        raise ValueError(f"{scores.shape[1]} scores for {snapshot.classes.seen} classes")


def _refuse_code(path: Path, settings: ClassifierSettings, trusted: Collection[str]) -> None:
    """Raise UserError if the model names a Python file that is not trusted: loading it would run its code."""
    for kind, name in (("method", settings.method), ("backbone", settings.backbone)):
        if names_code(name) and name not in trusted:
            raise UserError(f"{kind}: {path} names code of its own, {name}; if you trust it, say --trust {name}")
