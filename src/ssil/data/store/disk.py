"""The files of a store: written all at once, read with care."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa
from pydantic import BaseModel, ValidationError

from ssil import files
from ssil.data.store.layout import PREPARE, STORE, is_store
from ssil.errors import UserError

Model = TypeVar("Model", bound=BaseModel)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write all at once; a full disk stops the command, not the store."""
    try:
        with files.replacing(path) as file:
            yield file
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"out: {path} can't be written ({reason}); mend that, and the same command goes on") from error
    finally:
        files.aside(path).unlink(missing_ok=True)


def locked(folder: Path) -> AbstractContextManager[None]:
    """Hold a store's directory, new or begun."""
    return files.locked(folder, "store", _ours(folder))


def _ours(folder: Path) -> bool:
    """Whether there is a store, or only what one leaves that was stopped before it had begun."""
    begun = {files.LOCK, files.aside(folder / PREPARE).name}
    return is_store(folder) or (folder.is_dir() and begun.issuperset(path.name for path in folder.iterdir()))


def write_json(path: Path, value: BaseModel) -> None:
    """A model's fields."""
    with replacing(path) as file:
        file.write(value.model_dump_json(indent=1).encode() + b"\n")


def read_json(path: Path, kind: type[Model]) -> Model:
    """What `write_json` wrote."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise damaged(path, error.strerror) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """A file of Arrow's, mapped into memory: nothing is read but what describes it."""
    try:
        with pa.memory_map(str(path)) as file:  # the map outlives the file, for as long as an array needs it
            table = pa.ipc.open_file(file).read_all()
        if table.schema != schema:
            raise pa.ArrowInvalid("it has other columns")
        table.validate()
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error
    return table


def validate(path: Path, content: pa.Table | pa.ChunkedArray) -> None:
    """Look at every value of what was read from a file: that it lies inside it, that text is text."""
    try:
        content.validate(full=True)
    except pa.ArrowException as error:
        raise damaged(path, error) from error


def damaged(path: Path, why: object) -> UserError:
    """What to say of a file of a store that can't be used."""
    first = {PREPARE: "remove the directory", STORE: "remove it"}.get(path.name, f"remove it and {STORE}")
    reason = " ".join(str(why).split())
    return UserError(f"data: {path} can't be used ({reason}); {first}, and run the same `ssil data prepare` again")
