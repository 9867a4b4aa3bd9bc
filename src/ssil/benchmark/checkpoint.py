"""Checkpoints: a state as safetensors and JSON files, written atomically and checksummed. Nothing is pickled."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.files import checksum, json_checksum, read_file, write_atomic, write_json
from ssil.core.tensor_files import pack

TENSOR_FILE = re.compile(r"\w+-[0-9a-f]{32}\.safetensors|\.\w+-[0-9a-f]{32}\.safetensors\.part")
"""The name of a file of tensors, or of one that is being written."""


class Checkpoints:
    """A folder with one current state: `state.json` names the tensor files that belong to it.

    Saving writes new tensor files first, then replaces `state.json` by one rename, and then removes the tensor files
    that it no longer names; files that are not ours stay. A tensor file's name contains its checksum, so no file of
    the previous state is overwritten: at any moment there is one complete state on disk.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether there is a state to continue from."""
        return (self.folder / "state.json").exists()

    def save(self, meta: Mapping[str, Any], parts: Mapping[str, Mapping[str, Tensor] | None]) -> None:
        """Replace the state; a part given as None stays as it is on disk."""
        files = {name: self._file(name) if part is None else self._write(name, part) for name, part in parts.items()}
        state = {**meta, "files": files}
        write_json(self.folder / "state.json", {**state, "checksum": json_checksum(state)})
        for path in self.folder.iterdir():
            if TENSOR_FILE.fullmatch(path.name) and path.name not in files.values():
                path.unlink()

    def load(self) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]]:
        """Return the current state: `meta`, and the tensors of each part; raise UserError naming a damaged file."""
        meta = self._state()
        return meta, {name: self._read(file) for name, file in meta.pop("files").items()}

    def _file(self, name: str) -> str:
        return str(self._state()["files"][name])

    def _write(self, name: str, tensors: Mapping[str, Tensor]) -> str:
        data = pack(tensors)
        file = f"{name}-{checksum(data)}.safetensors"
        if not (self.folder / file).exists():
            write_atomic(self.folder / file, data)
        return file

    def _read(self, file: str) -> dict[str, Tensor]:
        path = self.folder / file
        try:
            data = read_file(path)
            if checksum(data) not in file:
                raise UserError(f"checkpoint: {path} is damaged (its checksum differs); start again in a new folder")
            return safetensors.torch.load(data)
        except (OSError, SafetensorError) as error:
            raise UserError(f"checkpoint: {path} can't be read ({error}); start again in a new folder") from None

    def _state(self) -> dict[str, Any]:
        path = self.folder / "state.json"
        try:
            state: dict[str, Any] = json.loads(read_file(path))
            expected = state.pop("checksum", None)  # of which states of earlier versions have none
            if not all(re.fullmatch(TENSOR_FILE, file) for file in state["files"].values()):
                raise ValueError("files of other names")
        except (OSError, ValueError, RecursionError, AttributeError, TypeError, KeyError) as error:
            raise UserError(f"checkpoint: {path} can't be read ({error}); start again in a new folder") from None
        if expected not in (None, json_checksum(state)):
            raise UserError(f"checkpoint: {path} is damaged (its checksum differs); start again in a new folder")
        return state
