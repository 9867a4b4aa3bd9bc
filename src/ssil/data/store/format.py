"""What a store is made of: shards of encoded images, an index of the good ones, and JSON that says what they are.

`store.json` is written last, so that its presence means that the store is complete.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from ssil.core import files
from ssil.core.errors import UserError
from ssil.data.encoded_images import Digests
from ssil.data.file_validation import digests
from ssil.data.image_index import Flags, Preprocessing

PER_SHARD = 2048
"""Files of the source's listing in a shard, the refused ones included."""
PER_BATCH = 128
"""Those of a record batch: what is in memory at once while a shard is written."""

PREPARE, STORE, INDEX, REFUSED = "prepare.json", "store.json", "index.arrow", "refused.csv"

_DIGEST = pa.binary(16)
_OF_ALL = [
    pa.field("label", pa.int32(), nullable=False),
    pa.field("test", pa.bool_()),
    pa.field("width", pa.int32(), nullable=False),
    pa.field("height", pa.int32(), nullable=False),
    pa.field("digest", _DIGEST, nullable=False),
    pa.field("pixels", _DIGEST, nullable=False),
    pa.field("name", pa.string(), nullable=False),
]
_OF_SHARDS = [pa.field("reason", pa.string()), pa.field("before", pa.int64(), nullable=False)]
_OF_INDEX = [pa.field(name, pa.int64(), nullable=False) for name in ("shard", "row", "length")]

SHARD_SCHEMA = pa.schema([pa.field("bytes", pa.large_binary()), *_OF_ALL, *_OF_SHARDS])
"""A row a listed file; a refused one has a reason and no bytes. `test` is null where the source leaves the split open,
`before` is the length of the source's file."""

UNREAD = -1
"""The `before` of a file that could not be read at all. That may pass, so its shard is made again, if need be."""

INDEX_SCHEMA = pa.schema([*_OF_ALL, *_OF_INDEX])
"""The good rows: all but the images themselves, and where these are."""


class Settings(BaseModel):
    """What decides a store's content, byte for byte."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    source: str
    files: int
    listing: str
    """A SHA-256 over what the source lists."""
    short_side: int | None
    quality: int
    per_shard: int

    @property
    def shards(self) -> list[range]:
        """The listed files that are in each shard."""
        starts = range(0, self.files, self.per_shard)
        return [range(start, min(start + self.per_shard, self.files)) for start in starts]


class Facts(Settings):
    """What a complete store says of itself."""

    classes: tuple[str, ...]
    keys: tuple[str, ...]
    look: Preprocessing
    images: int
    refused: int
    bytes_before: int
    bytes_after: int
    fingerprint: str
    """A SHA-256 over classes, keys, look, labels, the split and the images' digests."""
    lengths: tuple[int, ...]
    """The length of each shard's file."""
    index: str
    """The SHA-256 of the index's file."""


def shard_name(number: int) -> str:
    """The file name of a shard.

    >>> shard_name(7)
    'data-00007.arrow'
    """
    return f"data-{number:05d}.arrow"


def is_store(path: Path) -> bool:
    """Whether this is the directory of a store, be it complete or not."""
    return (path / STORE).is_file() or (path / PREPARE).is_file()


Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Names(Sequence[str]):
    """A column of strings, of which one is made when it is asked for."""

    def __init__(self, column: pa.StringArray) -> None:
        self._column = column

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        found: str | list[str] = (
            self._column[index].to_pylist() if isinstance(index, slice) else self._column[index].as_py()
        )
        return found

    def __len__(self) -> int:
        return len(self._column)


class Columns(NamedTuple):
    """What the index holds of each good image; `test` is None where the source leaves the split open."""

    label: Ints
    test: Flags | None
    width: Ints
    height: Ints
    length: Longs
    digest: Digests
    pixels: Digests
    shard: Longs
    row: Longs
    name: Names


def columns(index: pa.RecordBatch) -> Columns:
    """The columns of an index."""
    label, width, height, length, shard, row = (
        index[name].to_numpy() for name in ("label", "width", "height", "length", "shard", "row")
    )
    test = None if index["test"].null_count else index["test"].to_numpy(zero_copy_only=False)
    digest, pixels = (digests(index[name]) for name in ("digest", "pixels"))
    return Columns(label, test, width, height, length, digest, pixels, shard, row, Names(index["name"]))


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


def locked(folder: Path) -> AbstractContextManager[None]:
    """Hold a store's directory, new or begun."""
    return files.locked(folder, "store", _ours(folder))


def _ours(folder: Path) -> bool:
    """Whether there is a store, or only what one leaves that was stopped before it had begun."""
    begun = {files.LOCK, files.temporary(folder / PREPARE).name}
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
