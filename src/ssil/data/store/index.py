"""What makes a store complete: the index of its good rows, the list of the others, and `store.json`."""

import csv
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssil.data.listing import Listing, Look, Remark, plain
from ssil.data.store.columns import Columns, columns
from ssil.data.store.disk import read_table, replacing, write_json
from ssil.data.store.layout import (
    INDEX,
    INDEX_SCHEMA,
    REFUSED,
    SHARD_SCHEMA,
    STORE,
    Facts,
    Settings,
    shard_name,
)
from ssil.errors import UserError


def finish(out: Path, listing: Listing, settings: Settings) -> None:
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


def _facts(out: Path, listing: Listing, settings: Settings, rows: pa.Table, index: pa.RecordBatch) -> Facts:
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
        index=sha256((out / INDEX).read_bytes()).hexdigest(),
    )


def fingerprint(classes: tuple[str, ...], keys: tuple[str, ...], look: Look, found: Columns) -> str:
    """What tells a store from others, whatever its shards are."""
    look = replace(look, mean=tuple(map(float, look.mean)), std=tuple(map(float, look.std)))  # as JSON gives them back
    digest = sha256(repr((classes, keys, look)).encode())
    digest.update(found.label.tobytes())
    digest.update(found.digest.tobytes())
    digest.update(b"open" if found.test is None else found.test.tobytes())
    return digest.hexdigest()
