"""First weights from a model directory or a run directory: a backbone that was trained here, and its input."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ssil.core.errors import UserError, one_line
from ssil.core.files import checksum, json_checksum, read_file
from ssil.core.model_layout import CHECKPOINT, CURRENT, MODEL, RECORD, STATE, VERSIONS, WEIGHTS, version_folder
from ssil.core.network_input import NetworkInput, usual_input
from ssil.core.settings import validated


@dataclass(frozen=True)
class OwnModel:
    """The last model of a directory of ours."""

    name: str
    backbone: str
    input: NetworkInput | None
    """None for a run on a data set that has its own preprocessing."""
    path: Path
    """The file of its tensors."""
    digest: str
    """The checksum of the file, as the directory states it."""

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file of tensors."""
        return checksum(self._content(), 64)

    def tensors(self) -> Mapping[str, Tensor]:
        """Return all tensors of the model."""
        try:
            return safetensors.torch.load(self._content())
        except SafetensorError as error:
            raise UserError(f"init: {self.path} can't be read ({one_line(error)}); restore it") from None

    def _content(self) -> bytes:
        try:
            data = read_file(self.path)
        except OSError as error:
            raise UserError(f"init: {self.path} can't be read ({error.strerror or error}); restore it") from None
        if checksum(data) != self.digest:
            raise UserError(f"init: {self.path} is damaged (its checksum differs); restore it")
        return data


def find_own_model(name: str) -> OwnModel | None:
    """Return the model of a directory; None if there is no such directory.

    Raises:
        UserError: The directory is neither a model's nor a run's, or a file in it is damaged.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return None
    readers = {CURRENT: _of_model_directory, RECORD: _of_run_directory}
    read = next((reader for file, reader in readers.items() if (folder / file).exists()), None)
    if not read:
        raise UserError(f"init: {name} holds neither a model nor a run; give the directory of one, or a file")
    try:
        return read(name, folder)
    except UserError:
        raise
    except Exception as error:  # of any type: a file may be made to cause it
        raise UserError(f"init: {name} is not what it should be ({one_line(error)}); give another") from None


def _of_model_directory(name: str, folder: Path) -> OwnModel:
    version = folder / VERSIONS / version_folder(int(_read(folder / CURRENT, "version")))
    settings, digest = _read(version / MODEL, "settings"), str(_read(version / MODEL, "weights"))
    usual = usual_input(settings["image_size"], settings["grey"])
    needed = validated(NetworkInput, {**usual.model_dump(), **settings.get("input", {}), "size": usual.size})
    return OwnModel(name, str(settings["backbone"]), needed, version / WEIGHTS, digest)


def _of_run_directory(name: str, folder: Path) -> OwnModel:
    config = _read(folder / RECORD, "config")
    if config.get("freeze"):
        raise UserError(f"init: the run {name} trained a head on frozen features; give the weights that it began with")
    needed = config.get("input")
    files = _read(folder / CHECKPOINT / STATE, "files")
    if "snapshot" not in files:
        raise UserError(f"init: the run {name} has finished no task; let it go on, or give another")
    path = folder / CHECKPOINT / Path(files["snapshot"]).name
    given = None if needed is None else validated(NetworkInput, needed)
    return OwnModel(name, str(config["backbone"]), given, path, path.stem.rpartition("-")[2])


def _read(path: Path, key: str) -> Any:
    """Return an entry of a JSON file, whose checksum is compared if it states one."""
    try:
        content = json.loads(read_file(path))
        expected = content.pop("checksum", None)
        intact = expected in (None, json_checksum(content))
        value = content[key]
    except Exception as error:  # of any type: the file may be made to cause it
        raise UserError(f"init: {path} can't be read ({one_line(error)}); restore it") from None
    if not intact:
        raise UserError(f"init: {path} is damaged (its checksum differs); restore it")
    return value
