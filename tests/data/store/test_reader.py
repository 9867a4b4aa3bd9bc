"""Opening a store, and what stands in the way."""

import gc
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ssil.core.errors import UserError
from ssil.data.data_settings import DataSettings
from ssil.data.decode import UnreadableError
from ssil.data.image_index import ImageIndex
from ssil.data.load import load
from ssil.data.store.format import INDEX_SCHEMA, Names, fingerprint, index_columns, is_store, without_crc32
from ssil.data.store.reader import Store, StoredImages, check_store, open_store
from ssil.data.store.verification import verify_store
from ssil.data.store.writer import prepare


@pytest.fixture
def store(image_index: ImageIndex, tmp_path: Path) -> Store:
    return prepare(image_index, tmp_path / "store")


def mapped() -> set[str]:
    """The Arrow files that this process has in its memory map."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("no /proc here")
    return set(re.findall(r"[\w-]+\.arrow$", maps.read_text(), re.MULTILINE))


def test_opening_reads_no_shard(image_index: ImageIndex, tmp_path: Path) -> None:
    path = prepare(image_index, tmp_path / "store").path
    gc.collect()
    assert mapped() == set()
    opened = open_store(path)
    assert mapped() == {"index.arrow"}
    opened.source.read(0)
    assert mapped() == {"index.arrow", "data-00000.arrow"}


def test_reading_copies_nothing(store: Store) -> None:
    before = pa.total_allocated_bytes()
    views = [store.source.read(index) for index in range(len(store.source))]
    assert pa.total_allocated_bytes() == before
    assert all(view.readonly and view.format == "B" for view in views)
    content = [bytes(view) for view in views]
    del store
    gc.collect()
    assert [bytes(view) for view in views] == content


def test_any_number_of_threads_may_read(store: Store) -> None:
    wanted = list(range(len(store.source))) * 20
    one = [bytes(store.source.read(index)) for index in wanted]
    fresh = open_store(store.path)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda index: bytes(fresh.source.read(index)), wanted)) == one


def test_what_a_survey_would_find(store: Store) -> None:
    found = store.source.validation()
    assert found.good.all()
    assert found.reasons == {}
    assert len(found.good) == len(store.source) == store.facts.images == 15
    assert found.lengths.tolist() == [len(store.source.read(index)) for index in range(15)]


def test_names_are_a_sequence(store: Store) -> None:
    names = store.source.names
    assert isinstance(names, Names)
    assert names[0] == "ant/0.png"
    assert names[-1] == names[14] == "cat/4.jpg"
    assert names[:2] == ["ant/0.png", "ant/1.jpg"]
    assert names.index("bee/3.jpg") == 8
    with pytest.raises(IndexError):
        names[15]


def test_a_large_store_opens_at_once(store: Store) -> None:
    count = 200_000
    index = pa.table(
        {
            "label": np.arange(count, dtype=np.int32) % 3,
            "test": np.zeros(count, dtype=bool),
            "width": np.full(count, 500, dtype=np.int32),
            "height": np.full(count, 375, dtype=np.int32),
            "digest": pa.array([b"d" * 16] * count, pa.binary(16)),
            "pixels": pa.array([b"p" * 16] * count, pa.binary(16)),
            "name": [f"train/{number:08d}.JPEG" for number in range(count)],
            "shard": np.zeros(count, dtype=np.int64),
            "row": np.zeros(count, dtype=np.int64),
            "length": np.zeros(count, dtype=np.int64),
            "crc32": np.zeros(count, dtype=np.int64),
        },
        schema=INDEX_SCHEMA,
    )
    with pa.ipc.new_file(str(store.path / "index.arrow"), INDEX_SCHEMA) as writer:
        writer.write_batch(index.combine_chunks().to_batches()[0])
    facts, columns = store.facts, index_columns(index.combine_chunks().to_batches()[0])
    change(store.path, images=count, fingerprint=fingerprint(facts.classes, facts.keys, facts.look, columns))
    start = time.process_time()  # not by the clock: other programs may be at work
    assert len(open_store(store.path).image_index()) == count
    assert time.process_time() - start < 0.3


def change(store: Path, **facts: object) -> None:
    """Change store.json and the checksum of the index in it, without a checksum of store.json itself."""
    path, index = store / "store.json", sha256((store / "index.arrow").read_bytes()).hexdigest()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"checksum": None, "index": index} | facts))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def spoil(path: Path) -> None:
    """As long as before, without the end that tells where all is."""
    path.write_bytes(path.read_bytes()[:-100] + bytes(100))


def garble(path: Path) -> None:
    """Make a name that is no text."""
    path.write_bytes(path.read_bytes().replace(b"bee/3.jpg", b"bee/\xff.jpg"))
    change(path.parent)


def misplace(path: Path) -> None:
    """Make an image begin outside the file."""
    content = path.read_bytes()
    place = content.index(np.array([0, (lengths := _lengths(path))[0], sum(lengths[:2])], dtype=np.int64).tobytes())
    path.write_bytes(content[: place + 8] + np.int64(2**40).tobytes() + content[place + 16 :])


def _lengths(path: Path) -> list[int]:
    with pa.memory_map(str(path)) as file:
        return [len(data) for data in pa.ipc.open_file(file).get_batch(0)["bytes"].to_pylist()]


@pytest.mark.parametrize(
    ("damage", "name", "said"),
    [
        (Path.unlink, "store.json", "is not complete; run the same `ssil data prepare` again"),
        (
            Path.unlink,
            "data-00001.arrow",
            r"data-00001.arrow can't be used \(No such file or directory\); remove it and",
        ),
        (cut, "data-00001.arrow", r"it has [\d,]+ bytes, not [\d,]+"),
        (Path.unlink, "index.arrow", "index.arrow can't be used"),
        (cut, "index.arrow", "index.arrow can't be used"),
        (garble, "index.arrow", r"index.arrow can't be used \(.*UTF8"),
        (cut, "store.json", r"store.json can't be used \(.*JSON"),
        (lambda path: change(path.parent, version=2), "store.json", r"store.json can't be used \(version: "),
        (lambda path: change(path.parent, images=3), "store.json", "index.arrow can't be used .it is not of 3 images"),
        (Path.unlink, "refused.csv", "refused.csv can't be used"),
        (spoil, "data-00000.arrow", "data-00000.arrow can't be used"),
        (misplace, "data-00000.arrow", "data-00000.arrow can't be used"),
    ],
)
def test_damaged_stores(store: Store, damage: Callable[[Path], None], name: str, said: str) -> None:
    damage(store.path / name)
    with pytest.raises(UserError, match=said) as caught:
        open_store(store.path).image_index().source.read(1)
    assert "\n" not in str(caught.value)


def test_a_mended_store_is_as_good_as_new(store: Store, image_index: ImageIndex) -> None:
    whole = {file.name: file.read_bytes() for file in store.path.iterdir()}
    for name in ("data-00001.arrow", "index.arrow", "store.json"):
        (store.path / name).unlink()
    prepare(image_index, store.path)
    assert {file.name: file.read_bytes() for file in store.path.iterdir()} == whole


def test_what_is_no_store(tmp_path: Path) -> None:
    assert not is_store(tmp_path)
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match=r"holds no store; make one with"):
            open_store(path)


def test_remarks_on_classes_that_are_not_chosen_are_left_out(image_index: ImageIndex, tmp_path: Path) -> None:
    prepare(image_index, tmp_path / "out")
    (tmp_path / "bees.txt").write_text("bee\n")
    everything, bees = (
        load(DataSettings(dataset=str(tmp_path / "out"), class_list=chosen)) for chosen in (None, tmp_path / "bees.txt")
    )
    assert len(everything.left_out) == 3
    assert bees.classes == ("bee",)
    assert not bees.left_out


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_good_store(store: Store) -> None:
    calls: list[tuple[int, int]] = []
    assert check_store(store, lambda *call: calls.append(call)) == []
    assert calls == [(done, 15) for done in range(1, 16)]


@pytest.mark.parametrize("index", [0, 6, 14])
def test_a_flipped_bit_is_found(store: Store, index: int) -> None:
    shard = store.path / f"data-{store.source.columns.shard[index]:05d}.arrow"
    data = bytes(store.source.read(index))
    flip(shard, shard.read_bytes().index(data) + len(data) // 2)
    (fault,) = check_store(open_store(store.path))
    assert fault.path == store.source.names[index]
    assert "its bytes have changed" in fault.reason
    assert shard.name in fault.reason
    assert fault.left_out


def test_a_shard_that_cannot_be_opened(store: Store) -> None:
    shard = store.path / "data-00001.arrow"
    shard.write_bytes(shard.read_bytes()[:-100] + bytes(100))
    (fault,) = check_store(open_store(store.path))
    assert fault.path == "data-00001.arrow"
    assert "run the same `ssil data prepare` again" in fault.reason


def test_a_changed_index(store: Store) -> None:
    content = (store.path / "index.arrow").read_bytes()
    flip(store.path / "index.arrow", content.index(store.source.columns.label.tobytes()))
    with pytest.raises(UserError, match=r"index.arrow can't be used .its checksum differs"):
        open_store(store.path)


def as_earlier(store: Store) -> Store:
    """Make of a store what earlier versions wrote: no file has a column of CRC-32."""
    for path in store.path.glob("*.arrow"):
        whole = pa.ipc.open_file(path.read_bytes())
        with pa.ipc.new_file(str(path), without_crc32(whole.schema)) as writer:
            for number in range(whole.num_record_batches):
                writer.write_batch(whole.get_batch(number).drop_columns(["crc32"]))
    change(store.path, lengths=[path.stat().st_size for path in sorted(store.path.glob("data-*.arrow"))])
    return open_store(store.path)


def test_a_store_without_crc_32_is_read_verified_and_its_index_built_again(store: Store) -> None:
    content = [bytes(store.source.read(row)) for row in range(len(store.source))]
    earlier = as_earlier(store)
    assert {*earlier.source.columns.crc32.tolist()} == {-1}
    assert [bytes(earlier.source.read(row)) for row in range(len(earlier.source))] == content
    assert verify_store(store.path, lambda *_: None) == []
    index = store.path / "index.arrow"
    before = index.read_bytes()
    index.unlink()
    (defect,) = verify_store(store.path, lambda *_: None)
    assert defect.repair
    defect.repair()
    assert index.read_bytes() == before


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("index", [0, 6, 14])
def test_a_changed_image_is_not_read(store: Store, index: int, earlier: bool) -> None:
    store = as_earlier(store) if earlier else store
    shard = store.path / f"data-{store.source.columns.shard[index]:05d}.arrow"
    data = bytes(store.source.read(index))
    flip(shard, shard.read_bytes().index(data) + len(data) // 2)
    source, name = open_store(store.path).source, store.source.names[index]
    with pytest.raises(UserError, match=f"{shard} can't be used .the bytes of {name} have changed"):
        source.read(index)
    assert source.read(index - 1) == bytes(store.source.read(index - 1))


def test_an_image_is_verified_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[int]()

    def seems_unchanged(self: StoredImages, row: int, data: memoryview) -> bool:
        read.append(row)
        return True

    monkeypatch.setattr(StoredImages, "_seems_unchanged", seems_unchanged)
    source = open_store(store.path).source
    assert [source.read(row).nbytes > 0 for row in (3, 4, 3, 3)] == [True] * 4
    assert read == [3, 4]


def test_changed_remarks(store: Store) -> None:
    flip(store.path / "refused.csv", -2)
    with pytest.raises(UserError, match=r"refused.csv can't be used .its checksum differs"):
        open_store(store.path).remarks()


@pytest.mark.parametrize(
    ("field", "change"),
    [("classes", lambda names: names[::-1]), ("keys", lambda keys: ["k"]), ("look", lambda look: look | {"size": 9})],
)
def test_changed_facts(store: Store, field: str, change: Callable[[Any], Any]) -> None:
    facts = json.loads((store.path / "store.json").read_text())
    changed = facts | {field: change(facts[field])}
    (store.path / "store.json").write_text(json.dumps(changed))
    with pytest.raises(UserError, match=r"store.json can't be used .its checksum differs"):
        open_store(store.path)
    (store.path / "store.json").write_text(json.dumps(changed | {"checksum": None}))
    with pytest.raises(UserError, match=r"store.json can't be used .its classes, keys or preprocessing have changed"):
        open_store(store.path)


def test_a_store_of_an_earlier_version_has_no_checksums(store: Store) -> None:
    facts = json.loads((store.path / "store.json").read_text())
    del facts["checksum"], facts["refused_sha256"]
    (store.path / "store.json").write_text(json.dumps(facts))
    assert check_store(open_store(store.path)) == []


def test_whole_numbers_in_a_look(image_index: ImageIndex, tmp_path: Path) -> None:
    look = replace(image_index.preprocessing, mean=(0, 0, 0), std=(1, 1, 1))
    assert check_store(prepare(replace(image_index, preprocessing=look), tmp_path / "whole")) == []


def test_some_rows_only(store: Store) -> None:
    calls: list[tuple[int, int]] = []
    assert check_store(store, lambda *call: calls.append(call), rows=np.array([2, 9])) == []
    assert calls == [(1, 2), (2, 2)]


def test_an_image_that_can_no_longer_be_decoded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: memoryview) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        raise UnreadableError("no decoder")

    monkeypatch.setattr("ssil.data.store.reader.decode_image", refuse)
    faults = check_store(store, threads=2)
    assert [fault.path for fault in faults] == list(store.source.names)
    assert faults[0].reason == "no decoder, in data-00000.arrow"


@pytest.mark.parametrize("name", ["store.json", "prepare.json"])
def test_another_programs_files_make_no_store(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"name": "my shop", "version": 1}')
    assert not is_store(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    assert not is_store(tmp_path)
