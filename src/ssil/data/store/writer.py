"""Pack the images of an index into a store, shard by shard; one that was stopped is continued."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssil.core.cpu import usable_cores
from ssil.core.errors import UserError
from ssil.data.assemble import class_remarks
from ssil.data.decode import UnreadableError
from ssil.data.file_validation import ImageCheck, ProgressCallback, check_image
from ssil.data.image_index import Bytes, ImageIndex, Remark, as_utf8, error_reason, refuse_remarks
from ssil.data.prefetch import prefetch
from ssil.data.shrinking import LOSSLESS, shrink
from ssil.data.store import format
from ssil.data.store.reader import Store, open_store


def prepare(
    index: ImageIndex,
    out: Path,
    short_side: int | None = None,
    quality: int = 90,
    on_progress: ProgressCallback | None = None,
    threads: int | None = None,
    strict: bool = False,
) -> Store:
    """Pack every good image of an index into a store, or continue a store that was begun.

    Files that can't be decoded are refused, with a reason. Until the store is complete, shards with files that could
    not be read at all are written again.

    Args:
        index: The images.
        out: The store's directory.
        short_side: The short side of shrunk copies of larger images (see `shrink`); by default images stay unchanged.
        quality: The JPEG quality of shrunk copies.
        on_progress: Is called with the number of packed images and the number of all.
        threads: The number of threads that decode; by default one per core.
        strict: Whether to raise UserError at any remark.
    """
    settings = _settings(index, short_side, quality)
    if strict:
        refuse_remarks(index.remarks)
    with format.locked(out):
        _begin(out, settings)
        if not (out / format.STORE).exists():
            shards = {number: rows for number, rows in enumerate(settings.shards) if not _is_done(out, number)}
            todo = [row for rows in shards.values() for row in rows]
            packed = _pack_all(index, settings, todo, threads or usable_cores(), on_progress, strict)
            _write_shards(out, shards, packed)
            _finish(out, index, settings)
    store = open_store(out)
    if strict:
        refuse_remarks((*store.remarks(), *class_remarks(store.image_index(), store.source.validation())))
    return store


def _settings(index: ImageIndex, short_side: int | None, quality: int) -> format.StoreSettings:
    if not len(index):
        raise UserError(f"data: {index.name} lists no image; there is nothing to prepare")
    if short_side is not None and short_side < 1:
        raise UserError(f"short_side: {short_side} must be at least 1")
    if not 1 <= quality <= LOSSLESS:
        raise UserError(f"quality: {quality} must be from 1 to {LOSSLESS}")
    return format.StoreSettings(
        source=as_utf8(index.name),
        files=len(index),
        listing=_index_digest(index),
        short_side=short_side,
        quality=quality,
        per_shard=format.PER_SHARD,
    )


def _index_digest(index: ImageIndex) -> str:
    """Return a SHA-256 over the index; the files are not read."""
    digest = sha256(repr((index.classes, index.keys, index.preprocessing)).encode(errors="surrogateescape"))
    digest.update("\0".join(index.source.names).encode(errors="surrogateescape"))
    digest.update(index.labels.astype("<i8").tobytes())
    digest.update(b"open" if index.is_test is None else index.is_test.tobytes())
    return digest.hexdigest()


def _begin(out: Path, settings: format.StoreSettings) -> None:
    """Write the settings; raise UserError if the directory was begun with others."""
    if not (out / format.PREPARE).exists():
        format.write_json(out / format.PREPARE, settings)
    there, here = format.read_json(out / format.PREPARE, format.StoreSettings).model_dump(), settings.model_dump()
    if differ := [_difference(key, there[key], here[key]) for key in here if there[key] != here[key]]:
        raise UserError(f"out: {out} was begun otherwise ({'; '.join(differ)}); give another --out")


def _difference(key: str, there: object, here: object) -> str:
    return "other files, labels or classes" if key == "listing" else f"{key}: {there} there, {here} here"


def _is_done(out: Path, number: int) -> bool:
    """Return whether a shard is there, and all its files could be read when it was written."""
    shard = out / format.shard_name(number)
    return shard.exists() and pc.min(format.read_table(shard, format.SHARD_SCHEMA)["before"]).as_py() > format.UNREAD


class ShardRow(NamedTuple):
    """A row of a shard, in the schema's order; `stored` is its column `bytes`."""

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
    crc32: int | None


def _pack_all(
    index: ImageIndex,
    settings: format.StoreSettings,
    rows: list[int],
    threads: int,
    on_progress: ProgressCallback | None,
    strict: bool,
) -> Iterator[ShardRow]:
    """Yield the shard rows of these images, computed by threads; with `strict`, raise UserError at a bad image."""
    total = len(index)
    on_progress = on_progress or (lambda *_: None)
    on_progress(total - len(rows), total)
    packed = prefetch(partial(pack, index, settings), rows, 4 * threads, threads)
    for done, row in enumerate(packed, start=total - len(rows) + 1):
        if strict and row.reason:
            refuse_remarks([Remark(row.name, row.reason)])
        on_progress(done, total)
        yield row


def pack(index: ImageIndex, settings: format.StoreSettings, row: int) -> ShardRow:
    """Return the shard row of an image."""
    label, test = int(index.labels[row]), None if index.is_test is None else bool(index.is_test[row])
    stored, check = _packed_bytes(index, settings, row)
    content = check.width, check.height, check.digest, check.pixels
    name = as_utf8(index.source.names[row])
    checksum = None if stored is None else crc32(stored)
    return ShardRow(stored, label, test, *content, name, check.reason or None, check.length, checksum)


def _packed_bytes(index: ImageIndex, settings: format.StoreSettings, row: int) -> tuple[Bytes | None, ImageCheck]:
    """Return the bytes to store, None for a bad image, and its check, whose `length` is that of the source's file."""
    data: Bytes = b""
    try:
        stored = data = index.source.read(row)
        if settings.short_side is not None:
            stored = shrink(data, settings.short_side, index.preprocessing.channels, settings.quality)
        return stored, check_image(stored)._replace(length=len(data))
    except UnreadableError as error:
        return None, ImageCheck(length=len(data), reason=str(error))
    except OSError as error:
        return None, ImageCheck(length=format.UNREAD, reason=error_reason(error))


def _write_shards(out: Path, shards: Mapping[int, range], rows: Iterator[ShardRow]) -> None:
    for number, files in shards.items():
        with (
            format.replacing(out / format.shard_name(number)) as file,
            pa.ipc.new_file(file, format.SHARD_SCHEMA) as writer,
        ):
            for start in range(0, len(files), format.PER_BATCH):
                writer.write_batch(record_batch(islice(rows, len(files[start : start + format.PER_BATCH]))))


def record_batch(rows: Iterable[ShardRow]) -> pa.RecordBatch:
    """Return rows as Arrow columns."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, format.SHARD_SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=format.SHARD_SCHEMA)


def _finish(out: Path, index: ImageIndex, settings: format.StoreSettings) -> None:
    """Write all files but the shards, which are there; raise UserError if there is no good image."""
    rows = _all_rows(out, settings)
    refused = rows.filter(pc.is_valid(rows["reason"]))
    if len(refused) == len(rows):
        for number in range(len(settings.shards)):  # so that a new attempt writes all again, whatever was repaired
            (out / format.shard_name(number)).unlink()
        first = f"{refused['name'][0]}: {refused['reason'][0]}"
        raise UserError(f"data: {index.name} has no image that can be read; the first of {len(rows)} is {first}")
    with format.replacing(out / format.REFUSED) as file:
        file.write(_refused_table(index.remarks, refused))
    good = _good_rows(rows)
    with format.replacing(out / format.INDEX) as file:
        file.write(_index_file(good))
    format.write_json(out / format.STORE, _facts(out, index, settings, rows, good))


def without_images(out: Path, number: int) -> pa.Table:
    """Return a shard without its images, with the columns of their positions."""
    shard = format.read_table(out / format.shard_name(number), format.SHARD_SCHEMA)
    positions = {
        "shard": pa.array(np.full(len(shard), number)),
        "row": pa.array(np.arange(len(shard))),
        "length": pc.binary_length(shard["bytes"]),
    }
    shard = shard.drop_columns("bytes")
    for name, column in positions.items():
        shard = shard.append_column(format.INDEX_SCHEMA.field(name), column)
    return shard


def _good_rows(rows: pa.Table) -> pa.RecordBatch:
    good = rows.filter(pc.is_null(rows["reason"])).select(format.INDEX_SCHEMA.names)
    return good.combine_chunks().to_batches()[0]


def _index_file(good: pa.RecordBatch) -> bytes:
    buffer = BytesIO()
    if good["crc32"].null_count == len(good):  # of a store of an earlier version
        good = good.select(format.without_crc32(good.schema).names)
    with pa.ipc.new_file(buffer, good.schema) as writer:
        writer.write_batch(good)
    return buffer.getvalue()


def index_bytes(folder: Path, facts: format.StoreFacts) -> bytes:
    """Return the content of index.arrow that the shards of a store determine."""
    return _index_file(_good_rows(_all_rows(folder, facts)))


def refused_bytes(folder: Path, facts: format.StoreFacts) -> bytes:
    """Return the content of refused.csv that the shards determine: all of it if there were no remarks on the source."""
    rows = _all_rows(folder, facts)
    return _refused_table((), rows.filter(pc.is_valid(rows["reason"])))


def _all_rows(folder: Path, settings: format.StoreSettings) -> pa.Table:
    return pa.concat_tables([without_images(folder, number) for number in range(len(settings.shards))])


def _refused_table(remarks: Iterable[Remark], refused: pa.Table) -> bytes:
    """Return the source's remarks, and each refused file with its label, as CSV."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*Remark._fields, "label"))
    writer.writerows(
        (as_utf8(path), as_utf8(reason), "yes" if left_out else "no", "") for path, reason, left_out in remarks
    )
    columns = (refused[name].to_pylist() for name in ("name", "reason", "label"))
    writer.writerows((name, reason, "yes", label) for name, reason, label in zip(*columns, strict=True))
    return text.getvalue().encode()


def _facts(
    out: Path, index: ImageIndex, settings: format.StoreSettings, rows: pa.Table, good: pa.RecordBatch
) -> format.StoreFacts:
    classes, keys = (tuple(map(as_utf8, names)) for names in (index.classes, index.keys))
    columns = format.index_columns(good)
    facts = format.StoreFacts(
        **settings.model_dump(),
        classes=classes,
        keys=keys,
        look=index.preprocessing,
        images=len(good),
        refused=len(rows) - len(good),
        bytes_before=pc.sum(pc.max_element_wise(rows["before"], 0)).as_py(),
        bytes_after=int(columns.length.sum()),
        fingerprint=format.fingerprint(classes, keys, index.preprocessing, columns),
        lengths=tuple((out / format.shard_name(number)).stat().st_size for number in range(len(settings.shards))),
        index=sha256((out / format.INDEX).read_bytes()).hexdigest(),
        refused_sha256=sha256((out / format.REFUSED).read_bytes()).hexdigest(),
    )
    as_read = format.StoreFacts.model_validate_json(facts.model_dump_json())  # with 0.0 for 0
    return facts.model_copy(update={"checksum": format.facts_checksum(as_read)})
