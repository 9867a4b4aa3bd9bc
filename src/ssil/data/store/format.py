"""The files of a store: shards of encoded images, an index of the good ones, and JSON that describes them.

`store.json` is written last: its presence means that the store is complete.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from ssil.core import files
from ssil.core.errors import UserError
from ssil.data.encoded_images import Digests
from ssil.data.file_validation import digest_array
from ssil.data.image_index import Flags, Preprocessing

PER_SHARD = 2048
"""The number of a source's files per shard, refused ones included."""
PER_BATCH = 128
"""The number per record batch: what is in memory at once while a shard is written."""

PREPARE, STORE, INDEX, REFUSED = "prepare.json", "store.json", "index.arrow", "refused.csv"

_DIGEST = pa.binary(16)
_COMMON = [
    pa.field("label", pa.int32(), nullable=False),
    pa.field("test", pa.bool_()),
    pa.field("width", pa.int32(), nullable=False),
    pa.field("height", pa.int32(), nullable=False),
    pa.field("digest", _DIGEST, nullable=False),
    pa.field("pixels", _DIGEST, nullable=False),
    pa.field("name", pa.string(), nullable=False),
]
_CRC32 = pa.field("crc32", pa.int64())
"""Of an image's bytes, compared when it is first read: a third of the time of SHA-256. Stores of earlier versions don't
have the column."""
_SHARD_ONLY = [pa.field("reason", pa.string()), pa.field("before", pa.int64(), nullable=False)]
_INDEX_ONLY = [pa.field(name, pa.int64(), nullable=False) for name in ("shard", "row", "length")]

SHARD_SCHEMA = pa.schema([pa.field("bytes", pa.large_binary()), *_COMMON, *_SHARD_ONLY, _CRC32])
"""One row per file of the source; a refused one has a reason and no bytes. `test` is null where the source has no test
part, `before` is the length of the source's file."""

UNREAD = -1
"""The `before` of a file that could not be read at all. The cause may pass, so a new attempt writes its shard again."""

INDEX_SCHEMA = pa.schema([*_COMMON, *_INDEX_ONLY, _CRC32])
"""The good rows without the images, and where these are."""


class StoreSettings(BaseModel):
    """The settings that determine a store's content, byte for byte: the fields of prepare.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    source: str
    files: int
    listing: str
    """A SHA-256 over the source's image index."""
    short_side: int | None
    quality: int
    per_shard: int

    @property
    def shards(self) -> list[range]:
        """The source's files in each shard."""
        starts = range(0, self.files, self.per_shard)
        return [range(start, min(start + self.per_shard, self.files)) for start in starts]


class StoreFacts(StoreSettings):
    """The description of a complete store: the fields of store.json; `look` is the preprocessing."""

    classes: tuple[str, ...]
    keys: tuple[str, ...]
    look: Preprocessing
    images: int
    refused: int
    bytes_before: int
    bytes_after: int
    fingerprint: str
    """See `fingerprint`."""
    lengths: tuple[int, ...]
    """The number of bytes of each shard's file."""
    index: str
    """The SHA-256 of the index's file."""
    refused_sha256: str | None = None
    """The SHA-256 of refused.csv; stores of earlier versions don't have it, nor the checksum."""
    checksum: str | None = None
    """See `facts_checksum`."""


def facts_checksum(facts: StoreFacts) -> str:
    """Return the SHA-256 of all other fields of store.json."""
    return sha256(facts.model_dump_json(exclude={"checksum"}).encode()).hexdigest()


def shard_name(number: int) -> str:
    """Return the file name of a shard.

    >>> shard_name(7)
    'data-00007.arrow'
    """
    return f"data-{number:05d}.arrow"


def is_store(path: Path) -> bool:
    """Return whether this is the directory of a store, complete or not."""
    return any(_describes_store(path / name) for name in (STORE, PREPARE))


def _describes_store(path: Path) -> bool:
    """Return whether a file is ours by its content: other programs have files of these names too."""
    try:
        content = files.read_file(path)
    except OSError:
        return False
    return b'"listing"' in content and b'"per_shard"' in content


Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Names(Sequence[str]):
    """A column of strings as a sequence; a string is created when it is asked for."""

    def __init__(self, column: pa.StringArray) -> None:
        self._column = column

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        value = self._column[index]
        names: str | list[str] = value.to_pylist() if isinstance(index, slice) else value.as_py()
        return names

    def __len__(self) -> int:
        return len(self._column)


class IndexColumns(NamedTuple):
    """The columns of the index of good images; `test` is None where the source has no test part."""

    label: Ints
    test: Flags | None
    width: Ints
    height: Ints
    length: Longs
    digest: Digests
    pixels: Digests
    shard: Longs
    row: Longs
    crc32: Longs
    """-1 where there is none."""
    name: Names


def index_columns(index: pa.RecordBatch) -> IndexColumns:
    """Return the columns of an index as arrays."""
    label, width, height, length, shard, row = (
        index[name].to_numpy() for name in ("label", "width", "height", "length", "shard", "row")
    )
    test = None if index["test"].null_count else index["test"].to_numpy(zero_copy_only=False)
    digest, pixels = (digest_array(index[name]) for name in ("digest", "pixels"))
    crc32 = index["crc32"].fill_null(-1).to_numpy()
    return IndexColumns(label, test, width, height, length, digest, pixels, shard, row, crc32, Names(index["name"]))


def fingerprint(
    classes: tuple[str, ...], keys: tuple[str, ...], preprocessing: Preprocessing, columns: IndexColumns
) -> str:
    """Return a SHA-256 over classes, keys, preprocessing, labels, the test part and the images' digests."""
    mean, std = (
        tuple(map(float, values)) for values in (preprocessing.mean, preprocessing.std)
    )  # as JSON returns them
    digest = sha256(repr((classes, keys, replace(preprocessing, mean=mean, std=std))).encode())
    digest.update(columns.label.tobytes())
    digest.update(columns.digest.tobytes())
    digest.update(b"open" if columns.test is None else columns.test.tobytes())
    return digest.hexdigest()


Model = TypeVar("Model", bound=BaseModel)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file as `files.replacing` does; raise UserError if it can't be written: the store can be continued."""
    try:
        with files.replacing(path) as file:
            yield file
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"out: {path} can't be written ({reason}); repair that, and run the same command again to continue"
        ) from error


def locked(folder: Path) -> AbstractContextManager[None]:
    """Hold the lock of a store's directory, new or begun."""
    return files.locked(folder, "store", _ours(folder))


def _ours(folder: Path) -> bool:
    """Return whether the directory holds a store, or only the files of one that was stopped at its very start."""
    begun = {files.LOCK, files.temporary(folder / PREPARE).name}
    return is_store(folder) or (folder.is_dir() and begun.issuperset(path.name for path in folder.iterdir()))


def write_json(path: Path, value: BaseModel) -> None:
    """Write a model's fields."""
    with replacing(path) as file:
        file.write(value.model_dump_json(indent=1).encode() + b"\n")


def read_json(path: Path, kind: type[Model]) -> Model:
    """Return the model that `write_json` wrote; raise UserError if it can't be read."""
    try:
        return kind.model_validate_json(files.read_file(path))
    except OSError as error:
        raise damaged(path, error.strerror) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def read_table(path: Path, schema: pa.Schema, digest: str | None = None) -> pa.Table:
    """Return an Arrow file mapped into memory: only its description is read, unless there is a SHA-256 to compare."""
    try:
        if not path.is_file():  # a pipe would keep the reader waiting
            raise OSError("not a regular file")
        with pa.memory_map(os.fsencode(path)) as file:  # the map outlives the file object, as long as an array needs it
            if digest and sha256(file.read_buffer()).hexdigest() != digest:
                raise OSError("its checksum differs")
            table = pa.ipc.open_file(file).read_all()
        if table.schema == without_crc32(schema):
            table = table.append_column(_CRC32, pa.nulls(len(table), _CRC32.type))
        if table.schema != schema:
            raise pa.ArrowInvalid("it has other columns")
        table.validate()
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from error
    return table


def without_crc32(schema: pa.Schema) -> pa.Schema:
    """Return the schema that files of earlier versions have."""
    return schema.remove(schema.get_field_index(_CRC32.name))


def validate(path: Path, content: pa.Table | pa.ChunkedArray) -> None:
    """Raise UserError unless every value of a file's content lies inside the file, and text is UTF-8."""
    try:
        content.validate(full=True)
    except pa.ArrowException as error:
        raise damaged(path, error) from error


def damaged(path: Path, why: object) -> UserError:
    """Return the error for a file of a store that can't be used."""
    first = {PREPARE: "remove the directory", STORE: "remove it"}.get(path.name, f"remove it and {STORE}")
    reason = " ".join(str(why).split())
    return UserError(f"data: {path} can't be used ({reason}); {first}, and run the same `ssil data prepare` again")
