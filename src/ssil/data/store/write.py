"""Packing the images of a listing into a store, a shard at a time; one that was stopped goes on."""

import os
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ssil.data.ahead import ahead
from ssil.data.assemble import on_classes
from ssil.data.listing import Listing, Remark, plain, stop_at
from ssil.data.store import layout
from ssil.data.store.disk import locked, read_json, read_table, replacing, write_json
from ssil.data.store.index import finish
from ssil.data.store.layout import PREPARE, SHARD_SCHEMA, STORE, UNREAD, Settings, shard_name
from ssil.data.store.pack import Row, batch, pack
from ssil.data.store.read import Store, open_store
from ssil.data.store.shrink import LOSSLESS
from ssil.data.survey import Told
from ssil.errors import UserError


def prepare(
    listing: Listing,
    out: Path,
    short_side: int | None = None,
    quality: int = 90,
    progress: Told | None = None,
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


def _settings(listing: Listing, short_side: int | None, quality: int) -> Settings:
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
        per_shard=layout.PER_SHARD,
    )


def _digest(listing: Listing) -> str:
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


def _rows(listing: Listing, settings: Settings, files: list[int], workers: int | None) -> Iterator[Row]:
    """The rows of these files, made by a pool of threads."""
    threads = workers or os.cpu_count() or 1
    return ahead(partial(pack, listing, settings), files, 4 * threads, threads)


def _followed(rows: Iterator[Row], done: int, total: int, progress: Told | None, strict: bool) -> Iterator[Row]:
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
            for start in range(0, len(files), layout.PER_BATCH):
                writer.write_batch(batch(islice(rows, len(files[start : start + layout.PER_BATCH]))))
