"""What a store is made of: shards of encoded images, an index of the good ones, and JSON that says what they are.

`store.json` is written last, so that its presence means that the store is complete.
"""

from pathlib import Path
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from ssil.data.listing import Look

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
    look: Look
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
