"""Packing the images of a listing into a store, a shard at a time; one that was stopped goes on."""

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.data.assemble import on_classes
from ssil.data.decode import UnreadableError
from ssil.data.file_validation import Found, ProgressCallback, examine
from ssil.data.image_index import Bytes, ImageIndex, Preprocessing, Remark, plain, stop_at, why
from ssil.data.prefetch import ahead
from ssil.data.shrinking import LOSSLESS, shrink
from ssil.data.store import format
from ssil.data.store.format import (
    INDEX,
    INDEX_SCHEMA,
    PREPARE,
    REFUSED,
    SHARD_SCHEMA,
    STORE,
    UNREAD,
    Columns,
    Facts,
    Settings,
    columns,
    locked,
    read_json,
    read_table,
    replacing,
    shard_name,
    write_json,
)
from ssil.data.store.reader import Store, open_store


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


def pack(listing: ImageIndex, settings: Settings, index: int) -> Row:
    """The row of the listed file at this index."""
    label, test = int(listing.labels[index]), None if listing.tested is None else bool(listing.tested[index])
    stored, found = _packed(listing, settings, index)
    seen = found.width, found.height, found.digest, found.pixels
    return Row(stored, label, test, *seen, plain(listing.source.names[index]), found.reason or None, found.length)


def _packed(listing: ImageIndex, settings: Settings, index: int) -> tuple[Bytes | None, Found]:
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


def finish(out: Path, listing: ImageIndex, settings: Settings) -> None:
    """Write all but the shards, which are there."""
    rows = pa.concat_tables([_small(out, number) for number in range(len(settings.shards))])
    refused = rows.filter(pc.is_valid(rows["reason"]))
    if len(refused) == len(rows):
        for number in range(len(settings.shards)):  # all will be made again, whatever is mended
            (out / shard_name(number)).unlink()
        first = f"{refused['name'][0]}: {refused['reason'][0]}"
        raise UserError(f"data: {listing.name} has no image that can be read; the first of {len(rows)} is {first}")
    _write_refused(out / REFUSED, listing.remarks, refused)
    index = rows.filter(pc.is_null(rows["reason"])).select(INDEX_SCHEMA.names).combine_chunks().to_batches()[0]
    with replacing(out / INDEX) as file, pa.ipc.new_file(file, INDEX_SCHEMA) as writer:
        writer.write_batch(index)
    write_json(out / STORE, _facts(out, listing, settings, rows, index))


def _small(out: Path, number: int) -> pa.Table:
    """A shard without its images, and where these are."""
    shard = read_table(out / shard_name(number), SHARD_SCHEMA)
    place = {
        "shard": pa.array(np.full(len(shard), number)),
        "row": pa.array(np.arange(len(shard))),
        "length": pc.binary_length(shard["bytes"]),
    }
    shard = shard.drop_columns("bytes")
    for name, column in place.items():
        shard = shard.append_column(INDEX_SCHEMA.field(name), column)
    return shard


def _write_refused(path: Path, remarks: Iterable[Remark], refused: pa.Table) -> None:
    """What the source remarked, and each refused file with its label."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*Remark._fields, "label"))
    writer.writerows(
        (plain(path), plain(reason), "yes" if left_out else "no", "") for path, reason, left_out in remarks
    )
    columns = (refused[name].to_pylist() for name in ("name", "reason", "label"))
    writer.writerows((name, reason, "yes", label) for name, reason, label in zip(*columns, strict=True))
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def _facts(out: Path, listing: ImageIndex, settings: Settings, rows: pa.Table, index: pa.RecordBatch) -> Facts:
    names, keys = (tuple(map(plain, called)) for called in (listing.classes, listing.keys))
    found = columns(index)
    return Facts(
        **settings.model_dump(),
        classes=names,
        keys=keys,
        look=listing.look,
        images=len(index),
        refused=len(rows) - len(index),
        bytes_before=pc.sum(pc.max_element_wise(rows["before"], 0)).as_py(),
        bytes_after=int(found.length.sum()),
        fingerprint=fingerprint(names, keys, listing.look, found),
        lengths=tuple((out / shard_name(number)).stat().st_size for number in range(len(settings.shards))),
        index=checksum((out / INDEX).read_bytes(), 64),
    )


def fingerprint(classes: tuple[str, ...], keys: tuple[str, ...], look: Preprocessing, found: Columns) -> str:
    """What tells a store from others, whatever its shards are."""
    look = replace(look, mean=tuple(map(float, look.mean)), std=tuple(map(float, look.std)))  # as JSON gives them back
    digest = sha256(repr((classes, keys, look)).encode())
    digest.update(found.label.tobytes())
    digest.update(found.digest.tobytes())
    digest.update(b"open" if found.test is None else found.test.tobytes())
    return digest.hexdigest()


def prepare(
    listing: ImageIndex,
    out: Path,
    short_side: int | None = None,
    quality: int = 90,
    progress: ProgressCallback | None = None,
    workers: int | None = None,
    strict: bool = False,
) -> Store:
    """Pack every good image of a listing into a store; in a directory where that was begun, go on.

    Images are stored as they are, or with `short_side` the larger ones smaller (see `shrink`). What can't be decoded is
    refused, with a reason; `strict` stops at any remark. Before the store is complete, shards with files that could
    not be read at all are made again.
    """
    settings = _settings(listing, short_side, quality)
    if strict:
        stop_at(listing.remarks)
    with locked(out):
        _begin(out, settings)
        if not (out / STORE).exists():
            shards = {number: files for number, files in enumerate(settings.shards) if not _done(_shard(out, number))}
            files = [file for files in shards.values() for file in files]
            rows = _rows(listing, settings, files, workers)
            _write_shards(out, shards, _followed(rows, len(listing) - len(files), len(listing), progress, strict))
            finish(out, listing, settings)
    store = open_store(out)
    if strict:
        stop_at((*store.remarks(), *on_classes(store.listing(), store.source.survey())))
    return store


def _settings(listing: ImageIndex, short_side: int | None, quality: int) -> Settings:
    if not len(listing):
        raise UserError(f"data: {listing.name} lists no image; there is nothing to prepare")
    if short_side is not None and short_side < 1:
        raise UserError(f"short_side: {short_side} must be at least 1")
    if not 1 <= quality <= LOSSLESS:
        raise UserError(f"quality: {quality} must be from 1 to {LOSSLESS}")
    return Settings(
        source=plain(listing.name),
        files=len(listing),
        listing=_digest(listing),
        short_side=short_side,
        quality=quality,
        per_shard=format.PER_SHARD,
    )


def _digest(listing: ImageIndex) -> str:
    """A SHA-256 over all that a source lists; the files themselves are not read."""
    digest = sha256(repr((listing.classes, listing.keys, listing.look)).encode(errors="surrogateescape"))
    digest.update("\0".join(listing.source.names).encode(errors="surrogateescape"))
    digest.update(listing.labels.astype("<i8").tobytes())
    digest.update(b"open" if listing.tested is None else listing.tested.tobytes())
    return digest.hexdigest()


def _begin(out: Path, settings: Settings) -> None:
    """Note what is prepared here; refuse to go on with something else."""
    if not (out / PREPARE).exists():
        write_json(out / PREPARE, settings)
    there, here = read_json(out / PREPARE, Settings).model_dump(), settings.model_dump()
    if differ := [_difference(key, there[key], here[key]) for key in here if there[key] != here[key]]:
        raise UserError(f"out: {out} was begun otherwise ({'; '.join(differ)}); give another --out")


def _difference(key: str, there: object, here: object) -> str:
    return "other files, labels or classes" if key == "listing" else f"{key}: {there} there, {here} here"


def _shard(out: Path, number: int) -> Path:
    return out / shard_name(number)


def _done(shard: Path) -> bool:
    """Whether a shard is there, and all its files could be read when it was made."""
    return shard.exists() and pc.min(read_table(shard, SHARD_SCHEMA)["before"]).as_py() > UNREAD


def _rows(listing: ImageIndex, settings: Settings, files: list[int], workers: int | None) -> Iterator[Row]:
    """The rows of these files, made by a pool of threads."""
    threads = workers or os.cpu_count() or 1
    return ahead(partial(pack, listing, settings), files, 4 * threads, threads)


def _followed(
    rows: Iterator[Row], done: int, total: int, progress: ProgressCallback | None, strict: bool
) -> Iterator[Row]:
    """The rows, while somebody is told how many are done, and with `strict` only as long as they are good."""
    progress = progress or (lambda *_: None)
    progress(done, total)
    for number, row in enumerate(rows, start=done + 1):
        if strict and row.reason:
            stop_at([Remark(row.name, row.reason)])
        progress(number, total)
        yield row


def _write_shards(out: Path, shards: Mapping[int, range], rows: Iterator[Row]) -> None:
    for number, files in shards.items():
        with replacing(_shard(out, number)) as file, pa.ipc.new_file(file, SHARD_SCHEMA) as writer:
            for start in range(0, len(files), format.PER_BATCH):
                writer.write_batch(batch(islice(rows, len(files[start : start + format.PER_BATCH]))))
