"""Looking at every image of a store, whether it is still what was stored."""

import os
from collections.abc import Iterator
from functools import partial
from hashlib import file_digest, sha256

import numpy as np

from ssil.core.errors import UserError
from ssil.data.decode import UnreadableError, whole
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Labels, Remark
from ssil.data.prefetch import ahead
from ssil.data.store.format import INDEX, STORE, shard_name
from ssil.data.store.reader import Store
from ssil.data.store.writer import fingerprint


def check(
    store: Store, progress: ProgressCallback | None = None, workers: int | None = None, chosen: Labels | None = None
) -> list[Remark]:
    """What is wrong: files that can't be used, images (all, or those chosen) that have changed or can't be decoded."""
    with (store.path / INDEX).open("rb") as file:
        if file_digest(file, "sha256").hexdigest() != store.facts.index:
            return [Remark(INDEX, "its content has changed")]  # and may lead anywhere
    unusable = dict(_unusable(store))
    chosen = np.arange(len(store.source)) if chosen is None else chosen
    rows = chosen[~np.isin(store.source.columns.shard[chosen], list(unusable))].tolist()
    threads = workers or os.cpu_count() or 1
    wrong = [*_changed(store), *(Remark(shard_name(shard), reason) for shard, reason in unusable.items())]
    for done, reason in enumerate(ahead(partial(_fault, store), rows, 4 * threads, threads), start=1):
        if progress:
            progress(done, len(rows))
        if reason:
            wrong.append(Remark(store.source.names[rows[done - 1]], reason))
    return wrong


def _changed(store: Store) -> Iterator[Remark]:
    facts = store.facts
    if fingerprint(facts.classes, facts.keys, facts.look, store.source.columns) != facts.fingerprint:
        yield Remark(STORE, "its classes, keys or look have changed since the store was made")


def _unusable(store: Store) -> Iterator[tuple[int, str]]:
    for shard in range(len(store.facts.lengths)):
        try:
            store.source.images(shard)
        except UserError as error:
            yield shard, str(error)


def _fault(store: Store, index: int) -> str | None:
    data, where = store.source.read(index), shard_name(int(store.source.columns.shard[index]))
    if sha256(data).digest()[:16] != store.source.columns.digest[index].tobytes():
        return f"its bytes have changed since they were stored in {where}"
    try:
        whole(data)
    except UnreadableError as error:
        return f"{error}, in {where}"
    return None
