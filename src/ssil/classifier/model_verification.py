"""Verify a model directory: the current version, every version, every image, every reference."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ssil.classifier.exported_model import open_session, read_exported
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_files import read_checked, read_checked_json, refuse_special_files, write_checked_json
from ssil.classifier.model_tensors import FEATURES, STORED, features_reader, read_weights, stored_reader, tensors_path
from ssil.classifier.versions import EXEMPLARS, HOLDOUT, ONNX
from ssil.core.defects import Defect, OnFile, left_over, move_aside, told
from ssil.core.errors import UserError
from ssil.core.model_layout import CURRENT, EXAM, MODEL, VALIDATED, VERSIONS, WEIGHTS
from ssil.data.decode import UnreadableError, decode_image

Description = Mapping[str, Any]
UPDATES = "updates that train on it stop"


def is_model(folder: Path) -> bool:
    """Return whether this is a model directory."""
    return (folder / CURRENT).is_file() or any((folder / VERSIONS).glob(f"*/{MODEL}"))


def verify_model(folder: Path, on_file: OnFile, trusted: Collection[str] = ()) -> list[Defect]:
    """Return all defects of a model directory.

    Args:
        folder: A directory of which `is_model` is true.
        on_file: Called after each image.
        trusted: Code of the user's own that may be loaded; a version that names other code is not loaded, but its
            files are verified.
    """
    try:
        refuse_special_files(folder)
    except UserError as error:
        return [Defect(folder, str(error), "the model is refused")]
    return _ModelVerification(ModelDirectory(folder, trusted)).defects(on_file)


class _ModelVerification:
    """The verification of one directory; `whole` are the numbers of the versions that are found whole."""

    def __init__(self, directory: ModelDirectory) -> None:
        self.directory, self.folder = directory, directory.folder
        self.whole: dict[int, Description] = {}
        self.candidate: Description | None = None

    def defects(self, on_file: OnFile) -> list[Defect]:
        """Return all defects; those of versions before that of the current one, whose repair needs a whole version."""
        broken = [*self._version_defects(), *self._candidate_defects(), *self._exam_defects()]
        exported = list(self._onnx_defects())
        return [*self._current_defects(), *broken, *exported, *self._image_defects(on_file), *self._left_over()]

    def _version_defects(self) -> Iterator[Defect]:
        for number in self.directory.numbers():
            try:
                self.whole[number] = self._verified(number)
            except UserError as error:
                path = self.directory.version(number) / (WEIGHTS if WEIGHTS in str(error) else MODEL)
                meaning = f"version {number} can't be used"
                yield Defect(path, told(error, path), meaning, partial(self._give_up, number))

    def _candidate_defects(self) -> Iterator[Defect]:
        """Yield a defect if the update that was refused last is kept, and damaged."""
        folder = self.directory.candidate
        try:
            if found := self.directory.candidate_description():
                read_weights(folder / WEIGHTS, str(found.get("weights")))
                if validated := found.get("validated"):
                    read_checked(folder / VALIDATED, str(validated))
                if exported := found.get("onnx"):
                    read_checked(folder / ONNX, str(exported))
                self.candidate = found
        except UserError as error:
            path = next((folder / name for name in (WEIGHTS, VALIDATED, ONNX) if name in str(error)), folder / MODEL)
            yield Defect(path, told(error, path), "the refused update can't be accepted", self._give_up_candidate)

    def _exam_defects(self) -> Iterator[Defect]:
        """Yield a defect if the file that names the test folder is damaged."""
        path = self.folder / EXAM
        try:
            if path.exists():
                read_checked_json(path)
        except UserError as error:
            meaning = "updates stop; name the test folder again with ssil exam"
            yield Defect(path, told(error, path), meaning, lambda: move_aside(self.folder, path))

    def _give_up_candidate(self) -> str:
        return move_aside(self.folder, self.directory.candidate)

    def _verified(self, number: int) -> Description:
        """Return a version's description; raise UserError if a file of the version is damaged."""
        description = self.directory.description(number)
        if description.get("version") != number:
            raise UserError(f"states version {description.get('version')!r}")
        read_weights(self.directory.version(number) / WEIGHTS, str(description.get("weights")))
        settings = description.get("settings", {})
        code = [str(settings.get(kind)) for kind in ("method", "backbone")]
        if all(":" not in name or name in self.directory.trusted for name in code):
            self.directory.load(number)
        return description

    def _onnx_defects(self) -> Iterator[Defect]:
        """Yield a defect for each whole version whose `model.onnx` is missing, damaged or not to be trusted."""
        for number in self.whole:
            path = self.directory.version(number) / ONNX
            try:
                if exported := read_exported(self.folder, number):
                    open_session(exported.content, threads=1, name=str(path))
            except UserError as error:
                yield Defect(
                    path, told(error, path), f"version {number} can't predict", partial(self._drop_onnx, number)
                )

    def _drop_onnx(self, number: int) -> str:
        """Take `model.onnx` out of a version, which PyTorch then predicts; move the file aside if there is one."""
        self.whole[number] = {key: value for key, value in self.whole[number].items() if key != "onnx"}
        write_checked_json(self.directory.version(number) / MODEL, self.whole[number])
        path = self.directory.version(number) / ONNX
        done = f", and {move_aside(self.folder, path)}" if path.exists() else ""
        return f"PyTorch predicts instead{done}"

    def _current_defects(self) -> list[Defect]:
        """Return a defect if the current version can't be told, or is not whole."""
        path = self.folder / CURRENT
        try:
            number = self.directory.current()
            problem = "" if number in self.whole else f"names version {number}, which is missing or damaged"
        except UserError as error:
            problem = told(error, path)
        return [Defect(path, problem, "the model can't predict", self._going_back())] if problem else []

    def _going_back(self) -> Callable[[], str] | None:
        """Return the repair that makes the newest whole version the current one."""
        newest = max(self.whole, default=None)
        if newest is None:
            return None

        def go_back() -> str:
            path = self.folder / CURRENT
            done = f"; the old one {move_aside(self.folder, path)}" if path.exists() else ""
            self.directory.point_to(newest)
            return f"version {newest} is the current one{done}"

        return go_back

    def _give_up(self, number: int) -> str:
        """Move a damaged version aside with the images of its own, unless there is no whole one to go on with."""
        if not self.whole:
            return "left as it is: no version is whole; restore one from a copy"
        done = move_aside(self.folder, self.directory.version(number))
        with suppress(UserError):  # that another version can't be read; then nothing is unused
            for path in self.directory.unused_files():
                move_aside(self.folder, path)
        return done

    def _image_defects(self, on_file: OnFile) -> Iterator[Defect]:
        """Yield a defect for each image or features of a whole version that is missing or damaged."""
        kept = [*self.whole.values(), *([self.candidate] if self.candidate else [])]
        entries = {entry["file"]: entry for one in kept for entry in _entries(one)}
        for done, (file, entry) in enumerate(sorted(entries.items()), start=1):
            if problem := _image_problem(self.folder / file, str(entry["sha256"])):
                meaning = UPDATES if problem != "missing" else "the class has one image less to be remembered by"
                yield Defect(self.folder / file, problem, meaning, partial(self._drop, file, None))
            yield from self._tensor_defects(file, entry)
            on_file(done, len(entries))

    def _tensor_defects(self, file: str, entry: Description) -> Iterator[Defect]:
        for kind, reader in (FEATURES, features_reader), (STORED, stored_reader):
            if kind not in entry:
                continue
            path = tensors_path(self.folder / file, str(entry[kind]))
            read = reader(self.folder / file, str(entry[kind]))
            try:
                problem = "" if read and read() is not None else "missing"
            except UserError as error:
                problem = told(error, path)
            if problem:
                drop = partial(self._drop, file, (kind, path))
                yield Defect(path, problem, f"{UPDATES}, or compute them again if they are missing", drop)

    def _drop(self, file: str, tensors: tuple[str, Path] | None) -> str:
        """Take an image, or only a kind of its tensors, out of every version; move the file aside if there is one."""
        kind, path = tensors or (None, self.folder / file)
        for number, description in self.whole.items():
            changed = {group: _without(description[group], file, kind) for group in (EXEMPLARS, HOLDOUT)}
            if any(changed[group] != description[group] for group in changed):
                self.whole[number] = description | changed  # type: ignore[operator]
                write_checked_json(self.directory.version(number) / MODEL, self.whole[number])
        if self.candidate and any(entry["file"] == file for entry in _entries(self.candidate)):
            self.directory.drop_candidate()
            self.candidate = None
        done = f", and {move_aside(self.folder, path)}" if path.exists() else ""
        return f"no version refers to it any more{done}"

    def _left_over(self) -> list[Defect]:
        """Return defects for files of killed processes, and for images that no version refers to."""
        unfinished = self.directory.unfinished()
        parts = [Defect(path, "left over", "a process was killed", partial(self._tidy, path)) for path in unfinished]
        all_whole = len(self.whole) == len(self.directory.numbers())  # else an image may be a damaged version's
        all_whole = all_whole and self.directory.candidate.is_dir() == bool(self.candidate)
        return [*parts, *(left_over(self.directory.unused_files(), "no version refers to it") if all_whole else [])]

    def _tidy(self, path: Path) -> str:
        self.directory.remove_unfinished()
        return "removed" if not path.exists() else "not removed"


def _entries(description: Description) -> Iterator[Description]:
    for kind in (EXEMPLARS, HOLDOUT):
        for group in description[kind]:
            yield from group


def _image_problem(path: Path, digest: str) -> str:
    """Return what is wrong with an image; nothing if it is as it was stored."""
    if not path.exists():
        return "missing"
    try:
        decode_image(read_checked(path, digest))
    except (UserError, UnreadableError) as error:
        return told(error, path)
    return ""


def _without(groups: list[list[dict[str, str]]], file: str, kind: str | None) -> list[list[dict[str, str]]]:
    """Return the entries of images without those of a file, or only without a kind of its tensors."""
    if kind is None:
        return [[entry for entry in group if entry["file"] != file] for group in groups]
    return [
        [{key: value for key, value in entry.items() if entry["file"] != file or key != kind} for entry in group]
        for group in groups
    ]
