"""Looking at every image of a store, whether it is still what was stored."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import file_digest, sha256

import numpy as np

from ssil.data.decode import UnreadableError, whole
from ssil.data.listing import Remark
from ssil.data.store.layout import INDEX, shard_name
from ssil.data.store.pack import in_order
from ssil.data.store.read import Store
from ssil.data.survey import Told
from ssil.errors import UserError


def check(store: Store, progress: Told | None = None, workers: int | None = None) -> list[Remark]:
    """What is wrong: files that can't be used, images whose bytes have changed or that can't be decoded."""
    with (store.path / INDEX).open("rb") as file:
        if file_digest(file, "sha256").hexdigest() != store.facts.index:
            return [Remark(INDEX, "its content has changed")]  # and may lead anywhere
    unusable = dict(_unusable(store))
    rows = np.flatnonzero(~np.isin(store.source.columns.shard, list(unusable))).tolist()
    threads = workers or os.cpu_count() or 1
    wrong = [Remark(shard_name(shard), reason) for shard, reason in unusable.items()]
    with ThreadPoolExecutor(threads, thread_name_prefix="check") as pool:
        for done, reason in enumerate(in_order(pool, partial(_fault, store), rows, ahead=4 * threads), start=1):
            if progress:
                progress(done, len(rows))
            if reason:
                wrong.append(Remark(store.source.names[rows[done - 1]], reason))
    return wrong


def _unusable(store: Store) -> Iterator[tuple[int, str]]:
    for shard in range(len(store.facts.lengths)):
        try:
            store.source.images(shard)
        except UserError as error:
            yield shard, str(error)


def _fault(store: Store, index: int) -> str | None:
    data, where = store.source.read(index), shard_name(int(store.source.columns.shard[index]))
    if sha256(data).digest()[:16] != store.digest[index].tobytes():
        return f"its bytes have changed since they were stored in {where}"
    try:
        whole(data)
    except UnreadableError as error:
        return f"{error}, in {where}"
    return None
