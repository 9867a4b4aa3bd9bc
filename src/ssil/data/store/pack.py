"""From a listed file to a row of a shard."""

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from ssil.data.decode import UnreadableError
from ssil.data.listing import Bytes, Listing, plain, why
from ssil.data.store.layout import SHARD_SCHEMA, UNREAD, Settings
from ssil.data.store.shrink import shrink
from ssil.data.survey import Found, examine


class Row(NamedTuple):
    """A row of a shard, in the schema's order; what is stored is its column `bytes`."""

    stored: Bytes | None
    label: int
    test: bool | None
    width: int
    height: int
    digest: bytes
    pixels: bytes
    name: str
    reason: str | None
    before: int


def pack(listing: Listing, settings: Settings, index: int) -> Row:
    """The row of the listed file at this index."""
    label, test = int(listing.labels[index]), None if listing.tested is None else bool(listing.tested[index])
    stored, found = _packed(listing, settings, index)
    seen = found.width, found.height, found.digest, found.pixels
    return Row(stored, label, test, *seen, plain(listing.source.names[index]), found.reason or None, found.length)


def _packed(listing: Listing, settings: Settings, index: int) -> tuple[Bytes | None, Found]:
    """What is stored of an image, or nothing and the reason; `length` is that of the source's file."""
    data: Bytes = b""
    try:
        stored = data = listing.source.read(index)
        if settings.short_side is not None:
            stored = shrink(data, settings.short_side, listing.look.channels, settings.quality)
        return stored, examine(stored)._replace(length=len(data))
    except UnreadableError as error:
        return None, Found(length=len(data), reason=str(error))
    except OSError as error:
        return None, Found(length=UNREAD, reason=why(error))


def batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Rows as Arrow's columns."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SHARD_SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=SHARD_SCHEMA)
