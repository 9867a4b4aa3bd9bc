"""Verify a store: its description, its index, every shard and every image; rebuild what its other files determine."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ssil.core.defects import Defect, OnFile, left_over, move_aside, told
from ssil.core.errors import UserError
from ssil.core.files import temporary
from ssil.data.store import format
from ssil.data.store.reader import Store, check_store, open_store, read_facts
from ssil.data.store.writer import index_bytes, refused_bytes, without_images

AGAIN = "remove it and store.json, and run the same `ssil data prepare` again"
NEEDED = "the store can't be used"


def verify_store(folder: Path, on_file: OnFile) -> list[Defect]:
    """Return all defects of a store.

    Args:
        folder: A directory of which `is_store` is true.
        on_file: Called after each image.
    """
    names = (format.PREPARE, format.STORE, format.INDEX, format.REFUSED)
    parts = [temporary(folder / name) for name in names]
    found = left_over([*(path for path in parts if path.exists()), *folder.glob(".data-*.arrow.part")])
    try:
        facts = read_facts(folder)
    except UserError as error:
        path = folder / format.STORE
        return [
            *found,
            Defect(path, told(error, path), f"{NEEDED}; run the same `ssil data prepare` again, without this file"),
        ]
    found += _settings_defects(folder, facts)
    found += _shard_defects(folder, facts)
    try:
        store = open_store(folder)
    except UserError as error:
        return (
            [*found, *_index_defects(folder, facts, told(error, folder / format.INDEX))]
            if not _broken(found)
            else found
        )
    return [*found, *_refused_defects(store), *_image_defects(store, on_file)]


def _broken(found: list[Defect]) -> bool:
    return any(defect.path.suffix == ".arrow" for defect in found)


def _settings_defects(folder: Path, facts: format.StoreFacts) -> list[Defect]:
    """Return a defect if prepare.json is not what store.json, which has all of it, says."""
    settings = format.StoreSettings(**{name: getattr(facts, name) for name in format.StoreSettings.model_fields})
    path = folder / format.PREPARE
    try:
        same = format.read_json(path, format.StoreSettings) == settings
        problem = "" if same else "other settings than in store.json"
    except UserError as error:
        problem = told(error, path)

    def repair() -> str:
        done = move_aside(folder, path) if path.exists() else "was missing"
        format.write_json(path, settings)
        return f"written again from {format.STORE}; the old one {done}"

    return [Defect(path, problem, "`ssil data prepare` can't go on in this directory", repair)] if problem else []


def _shard_defects(folder: Path, facts: format.StoreFacts) -> Iterator[Defect]:
    """Yield a defect for each shard that is missing, of another length or not an Arrow file, and for foreign ones."""
    expected = {folder / format.shard_name(number): length for number, length in enumerate(facts.lengths)}
    for path, length in expected.items():
        try:
            if path.stat().st_size != length:
                raise UserError(f"{path.stat().st_size:,} bytes instead of {length:,}")
            format.validate(path, format.read_table(path, format.SHARD_SCHEMA))
        except (OSError, UserError) as error:
            yield Defect(path, told(error, path), f"its images can't be read; {AGAIN}")
    for path in sorted({*folder.glob("data-*.arrow")} - {*expected}):
        yield Defect(path, "not listed in store.json", "nothing reads it", partial(move_aside, folder, path))


def _index_defects(folder: Path, facts: format.StoreFacts, problem: str) -> list[Defect]:
    """Return a defect of the index, to be built again from the shards if that gives what store.json says."""
    path = folder / format.INDEX
    rebuilt = index_bytes(folder, facts)
    whole = sha256(rebuilt).hexdigest() == facts.index
    return [
        Defect(path, problem, NEEDED if whole else f"{NEEDED}; {AGAIN}", _rewrite(path, rebuilt) if whole else None)
    ]


def _rewrite(path: Path, data: bytes) -> Callable[[], str]:
    def repair() -> str:
        done = move_aside(path.parent, path) if path.exists() else "was missing"
        with format.replacing(path) as file:
            file.write(data)
        return f"built again from the shards; the old one {done}"

    return repair


def _refused_defects(store: Store) -> list[Defect]:
    try:
        store.remarks()
    except UserError as error:
        path, rebuilt = store.path / format.REFUSED, refused_bytes(store.path, store.facts)
        whole = sha256(rebuilt).hexdigest() == store.facts.refused_sha256
        meaning = "which files were refused can't be told" + ("" if whole else f"; {AGAIN}")
        return [Defect(path, told(error, path), meaning, _rewrite(path, rebuilt) if whole else None)]
    return []


def _image_defects(store: Store, on_file: OnFile) -> Iterator[Defect]:
    """Yield a defect for each image that has changed or can't be decoded, and one if shards and index disagree."""
    remarks = check_store(store, on_file)
    for remark in remarks:
        yield Defect(
            store.path / remark.path, remark.reason, f"runs that read it stop; {AGAIN.replace('it', 'the shard', 1)}"
        )
    if not remarks and sha256(index_bytes(store.path, store.facts)).hexdigest() != store.facts.index:
        yield from _disagreements(store)


def _disagreements(store: Store) -> Iterator[Defect]:
    """Yield a defect for each shard whose labels, names or sizes are not those of the index."""
    index = format.read_table(store.path / format.INDEX, format.INDEX_SCHEMA)
    for number in range(len(store.facts.lengths)):
        rows = without_images(store.path, number)
        good = rows.filter(pc.is_null(rows["reason"])).select(format.INDEX_SCHEMA.names)
        if not good.equals(index.filter(pc.equal(index["shard"], pa.scalar(number)))):
            path = store.path / format.shard_name(number)
            yield Defect(path, "labels, names or digests are not those of the index", f"nothing reads them; {AGAIN}")
