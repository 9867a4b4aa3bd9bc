"""From a image_index to a store."""

import csv
import errno
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ssil.core.errors import UserError
from ssil.data.file_validation import check_image
from ssil.data.image_index import Bytes, ImageIndex, Remark, Source
from ssil.data.sources.folder import folder
from ssil.data.store.format import SHARD_SCHEMA, locked, read_table
from ssil.data.store.reader import open_store
from ssil.data.store.writer import prepare

BAD = ["ant/5.png", "cat/half.jpg", "cat/notes.txt"]


@dataclass(frozen=True)
class Counted:
    """A source that notes what is read of it."""

    source: Source
    read_of: list[int] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.source.names)

    def read(self, index: int) -> Bytes:
        self.read_of.append(index)
        return self.source.read(index)

    def __len__(self) -> int:
        return len(self.source)


def content(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def good(image_index: ImageIndex) -> list[int]:
    return [index for index, name in enumerate(image_index.source.names) if name not in BAD]


def test_images_are_stored_as_they_are(image_index: ImageIndex, tmp_path: Path) -> None:
    store = prepare(image_index, tmp_path / "out")
    rows = good(image_index)
    assert list(store.source.names) == [image_index.source.names[row] for row in rows]
    columns = store.source.columns
    assert columns.label.tolist() == image_index.labels[rows].tolist()
    for index, row in enumerate(rows):
        data = image_index.source.read(row)
        found = check_image(data)
        assert store.source.read(index) == data
        measured = columns.width[index], columns.height[index], columns.length[index]
        assert measured == (found.width, found.height, len(data))
        assert (columns.digest[index].tobytes(), columns.pixels[index].tobytes()) == (found.digest, found.pixels)
    assert store.facts.bytes_after == sum(columns.length)
    assert store.facts.bytes_before == sum(len(image_index.source.read(row)) for row in range(len(image_index)))


def test_what_a_store_lists(image_index: ImageIndex, tmp_path: Path) -> None:
    image_index = replace(image_index, keys=("k1", "k2", "k3"), remarks=(Remark("ant", "an insect", left_out=False),))
    made = prepare(image_index, tmp_path / "out").image_index()
    same = ("name", "classes", "preprocessing", "keys", "is_test")
    assert [getattr(made, name) for name in same] == [getattr(image_index, name) for name in same]
    assert made.labels.dtype == np.int64
    assert made.remarks[0] == image_index.remarks[0]
    assert [(remark.path, remark.left_out) for remark in made.remarks[1:]] == [(path, True) for path in BAD]
    assert all(remark.reason for remark in made.remarks)


def test_a_given_split_is_kept(image_index: ImageIndex, tmp_path: Path) -> None:
    tested = np.arange(len(image_index)) % 3 == 0
    store = prepare(replace(image_index, is_test=tested), tmp_path / "out")
    assert store.source.columns.test is not None
    assert store.source.columns.test.tolist() == tested[good(image_index)].tolist()
    other = prepare(replace(image_index, is_test=~tested), tmp_path / "other")
    assert other.facts.fingerprint != store.facts.fingerprint


def test_every_listed_file_has_a_row(image_index: ImageIndex, tmp_path: Path) -> None:
    prepare(image_index, tmp_path / "out")
    shards = sorted((tmp_path / "out").glob("data-*.arrow"))
    tables = [read_table(shard, SHARD_SCHEMA) for shard in shards]
    assert [len(table) for table in tables] == [7, 7, 4]
    rows = pa.concat_tables(tables).to_pylist()
    assert [row["name"] for row in rows] == list(image_index.source.names)
    for row in rows:
        assert (row["bytes"] is None) == (row["reason"] is not None) == (row["name"] in BAD)
    with (tmp_path / "out" / "refused.csv").open(newline="") as file:
        described = list(csv.DictReader(file))
    told_of = [(row["path"], row["left_out"], row["label"]) for row in described]
    assert told_of == [(path, "yes", "0" if path.startswith("ant") else "2") for path in BAD]


def test_two_stores_of_one_source_are_equal(image_index: ImageIndex, tmp_path: Path) -> None:
    prepare(image_index, tmp_path / "one", short_side=16, threads=1)
    prepare(image_index, tmp_path / "two", short_side=16, threads=5)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_store_tells_nothing_of_the_machine(image_index: ImageIndex, tmp_path: Path) -> None:
    prepare(image_index, tmp_path / "out")
    for name in ("store.json", "prepare.json"):
        assert str(tmp_path) not in (tmp_path / "out" / name).read_text()


def test_only_missing_shards_are_made(image_index: ImageIndex, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(image_index, out)
    whole = content(out)
    for name in ("data-00001.arrow", "store.json"):
        (out / name).unlink()
    source, calls = Counted(image_index.source), list[tuple[int, int]]()
    prepare(replace(image_index, source=source), out, on_progress=lambda *call: calls.append(call))
    assert sorted(source.read_of) == list(range(7, 14))
    assert calls == [(done, 18) for done in range(11, 19)]
    assert content(out) == whole


def test_a_complete_store_is_left_alone(image_index: ImageIndex, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(image_index, out)
    source = Counted(image_index.source)
    prepare(replace(image_index, source=source), out)
    assert source.read_of == []


def test_another_store_is_not_gone_on_with(image_index: ImageIndex, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(image_index, out, short_side=16)
    with pytest.raises(UserError, match=r"short_side: 16 there, 20 here; quality: 90 there, 80 here\); give another"):
        prepare(image_index, out, short_side=20, quality=80)
    (photos / "ant" / "9.png").write_bytes((photos / "ant" / "0.png").read_bytes())
    with pytest.raises(UserError, match="files: 18 there, 19 here; other files, labels or classes"):
        prepare(folder(photos), out, short_side=16)


def test_a_foreign_directory_is_refused(image_index: ImageIndex, tmp_path: Path) -> None:
    for name in ("lock", "record.json"):  # as of a run
        (tmp_path / name).touch()
    with pytest.raises(UserError, match="is not empty and holds no store"):
        prepare(image_index, tmp_path)
    for path in (tmp_path / "lock", tmp_path / "lock" / "below"):
        with pytest.raises(UserError, match="can't be written"):
            prepare(image_index, path)


def test_a_second_process_is_refused(image_index: ImageIndex, tmp_path: Path) -> None:
    with locked(tmp_path / "out"), pytest.raises(UserError, match="another process is at work"):
        prepare(image_index, tmp_path / "out")
    prepare(image_index, tmp_path / "out")


def test_strict_stops_at_the_first_bad_file(image_index: ImageIndex, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data: ant/5.png: .*--strict") as caught:
        prepare(image_index, tmp_path / "out", strict=True)
    assert "\n" not in str(caught.value)
    prepare(image_index, tmp_path / "out")
    with pytest.raises(UserError, match="ant/5"):
        prepare(image_index, tmp_path / "out", strict=True)
    deeper = replace(image_index, remarks=(Remark("odd", "is fine", left_out=False), Remark("ant/deep", "is a folder")))
    with pytest.raises(UserError, match="odd: is fine"):
        prepare(deeper, tmp_path / "new", strict=True)
    assert not (tmp_path / "new").exists()


def test_strict_stops_at_a_class_of_one_image(photos: Path, tmp_path: Path) -> None:
    for name in BAD:
        (photos / name).unlink()
    (photos / "dog").mkdir()
    (photos / "ant" / "0.png").rename(photos / "dog" / "0.png")
    with pytest.raises(UserError, match="dog: the class has a single image"):
        prepare(folder(photos), tmp_path / "out", strict=True)


def test_refused_files_have_labels(image_index: ImageIndex, tmp_path: Path) -> None:
    store = prepare(replace(image_index, remarks=(Remark("odd", "is a folder"),)), tmp_path / "out")
    assert store.refused_labels == {"ant/5.png": 0, "cat/half.jpg": 2, "cat/notes.txt": 2}


def test_a_disk_that_comes_back(image_index: ImageIndex, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    photos.rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"no image that can be read; the first of 18 is ant/0\.png: no such file"):
        prepare(image_index, out)
    assert not list(out.glob("data-*"))
    (tmp_path / "elsewhere").rename(photos)
    prepare(image_index, out)
    prepare(image_index, tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


def test_files_that_could_not_be_read_are_tried_again(image_index: ImageIndex, photos: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 15:
            raise KeyboardInterrupt

    out, gone = tmp_path / "out", photos / "bee" / "2.jpg"
    gone.rename(tmp_path / "gone")
    with pytest.raises(KeyboardInterrupt):
        prepare(image_index, out, on_progress=stop)
    (tmp_path / "gone").rename(gone)
    source = Counted(image_index.source)
    prepare(replace(image_index, source=source), out)
    assert sorted(source.read_of) == list(range(7, 18))
    prepare(image_index, tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


def test_files_that_are_gone_are_refused(image_index: ImageIndex, photos: Path, tmp_path: Path) -> None:
    (photos / "bee" / "2.jpg").unlink()
    store = prepare(image_index, tmp_path / "out")
    assert ("bee/2.jpg", "no such file or directory", True) in store.remarks()
    sizes = [(photos / name).stat().st_size for name in image_index.source.names if name != "bee/2.jpg"]
    assert store.facts.bytes_before == sum(sizes)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"short_side": 0}, "short_side: 0"), ({"quality": 0}, "quality: 0"), ({"quality": 101}, "quality: 101")],
)
def test_bad_options(image_index: ImageIndex, tmp_path: Path, options: dict[str, int], said: str) -> None:
    with pytest.raises(UserError, match=said):
        prepare(image_index, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_nothing_to_store(image_index: ImageIndex, photos: Path, tmp_path: Path) -> None:
    for file in photos.glob("*/*.*"):
        file.write_text("no image")
    with pytest.raises(UserError, match="photos has no image that can be read; the first of 18 is ant/0"):
        prepare(image_index, tmp_path / "out")
    with pytest.raises(UserError, match="is not complete"):
        open_store(tmp_path / "out")
    empty = replace(image_index, source=replace(image_index.source, names=()), labels=image_index.labels[:0])  # type: ignore[type-var]
    with pytest.raises(UserError, match="lists no image"):
        prepare(empty, tmp_path / "empty")


def test_a_full_disk(image_index: ImageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "out").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match=r"can't be written \(No space left on device\)"):
            prepare(image_index, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["lock"]
    prepare(image_index, tmp_path / "out")


def test_an_interrupt_keeps_finished_shards(image_index: ImageIndex, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(image_index, tmp_path / "out", on_progress=stop)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["data-00000.arrow", "lock", "prepare.json"]
    prepare(image_index, tmp_path / "out")
    prepare(image_index, tmp_path / "whole")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_names_that_are_no_text(image_index: ImageIndex, photos: Path, tmp_path: Path) -> None:
    (photos / "bee" / "2.jpg").rename(photos / "bee" / os.fsdecode(b"\xff.jpg"))
    store = prepare(folder(photos), tmp_path / "out")
    assert "bee/\ufffd.jpg" in store.source.names
