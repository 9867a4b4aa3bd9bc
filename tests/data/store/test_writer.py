"""From a listing to a store."""

import csv
import errno
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ssil.core.errors import UserError
from ssil.data.file_validation import examine
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


def good(listing: ImageIndex) -> list[int]:
    return [index for index, name in enumerate(listing.source.names) if name not in BAD]


def test_images_are_stored_as_they_are(listing: ImageIndex, tmp_path: Path) -> None:
    store = prepare(listing, tmp_path / "out")
    rows = good(listing)
    assert list(store.source.names) == [listing.source.names[row] for row in rows]
    columns = store.source.columns
    assert columns.label.tolist() == listing.labels[rows].tolist()
    for index, row in enumerate(rows):
        data = listing.source.read(row)
        found = examine(data)
        assert store.source.read(index) == data
        measured = columns.width[index], columns.height[index], columns.length[index]
        assert measured == (found.width, found.height, len(data))
        assert (columns.digest[index].tobytes(), columns.pixels[index].tobytes()) == (found.digest, found.pixels)
    assert store.facts.bytes_after == sum(columns.length)
    assert store.facts.bytes_before == sum(len(listing.source.read(row)) for row in range(len(listing)))


def test_what_a_store_lists(listing: ImageIndex, tmp_path: Path) -> None:
    listing = replace(listing, keys=("k1", "k2", "k3"), remarks=(Remark("ant", "an insect", left_out=False),))
    made = prepare(listing, tmp_path / "out").listing()
    same = ("name", "classes", "look", "keys", "tested")
    assert [getattr(made, name) for name in same] == [getattr(listing, name) for name in same]
    assert made.labels.dtype == np.int64
    assert made.remarks[0] == listing.remarks[0]
    assert [(remark.path, remark.left_out) for remark in made.remarks[1:]] == [(path, True) for path in BAD]
    assert all(remark.reason for remark in made.remarks)


def test_a_given_split_is_kept(listing: ImageIndex, tmp_path: Path) -> None:
    tested = np.arange(len(listing)) % 3 == 0
    store = prepare(replace(listing, tested=tested), tmp_path / "out")
    assert store.source.columns.test is not None
    assert store.source.columns.test.tolist() == tested[good(listing)].tolist()
    other = prepare(replace(listing, tested=~tested), tmp_path / "other")
    assert other.facts.fingerprint != store.facts.fingerprint


def test_every_listed_file_has_a_row(listing: ImageIndex, tmp_path: Path) -> None:
    prepare(listing, tmp_path / "out")
    shards = sorted((tmp_path / "out").glob("data-*.arrow"))
    tables = [read_table(shard, SHARD_SCHEMA) for shard in shards]
    assert [len(table) for table in tables] == [7, 7, 4]
    rows = pa.concat_tables(tables).to_pylist()
    assert [row["name"] for row in rows] == list(listing.source.names)
    for row in rows:
        assert (row["bytes"] is None) == (row["reason"] is not None) == (row["name"] in BAD)
    with (tmp_path / "out" / "refused.csv").open(newline="") as file:
        described = list(csv.DictReader(file))
    told_of = [(row["path"], row["left_out"], row["label"]) for row in described]
    assert told_of == [(path, "yes", "0" if path.startswith("ant") else "2") for path in BAD]


def test_two_stores_of_one_source_are_equal(listing: ImageIndex, tmp_path: Path) -> None:
    prepare(listing, tmp_path / "one", short_side=16, workers=1)
    prepare(listing, tmp_path / "two", short_side=16, workers=5)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_store_tells_nothing_of_the_machine(listing: ImageIndex, tmp_path: Path) -> None:
    prepare(listing, tmp_path / "out")
    for name in ("store.json", "prepare.json"):
        assert str(tmp_path) not in (tmp_path / "out" / name).read_text()


def test_only_missing_shards_are_made(listing: ImageIndex, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(listing, out)
    whole = content(out)
    for name in ("data-00001.arrow", "store.json"):
        (out / name).unlink()
    source, calls = Counted(listing.source), list[tuple[int, int]]()
    prepare(replace(listing, source=source), out, progress=lambda *call: calls.append(call))
    assert sorted(source.read_of) == list(range(7, 14))
    assert calls == [(done, 18) for done in range(11, 19)]
    assert content(out) == whole


def test_a_complete_store_is_left_alone(listing: ImageIndex, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(listing, out)
    source = Counted(listing.source)
    prepare(replace(listing, source=source), out)
    assert source.read_of == []


def test_another_store_is_not_gone_on_with(listing: ImageIndex, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(listing, out, short_side=16)
    with pytest.raises(UserError, match=r"short_side: 16 there, 20 here; quality: 90 there, 80 here\); give another"):
        prepare(listing, out, short_side=20, quality=80)
    (photos / "ant" / "9.png").write_bytes((photos / "ant" / "0.png").read_bytes())
    with pytest.raises(UserError, match="files: 18 there, 19 here; other files, labels or classes"):
        prepare(folder(photos), out, short_side=16)


def test_a_foreign_directory_is_refused(listing: ImageIndex, tmp_path: Path) -> None:
    for name in ("lock", "record.json"):  # as of a run
        (tmp_path / name).touch()
    with pytest.raises(UserError, match="is not empty and holds no store"):
        prepare(listing, tmp_path)
    for path in (tmp_path / "lock", tmp_path / "lock" / "below"):
        with pytest.raises(UserError, match="can't be written"):
            prepare(listing, path)


def test_a_second_process_is_refused(listing: ImageIndex, tmp_path: Path) -> None:
    with locked(tmp_path / "out"), pytest.raises(UserError, match="another process is at work"):
        prepare(listing, tmp_path / "out")
    prepare(listing, tmp_path / "out")


def test_strict_stops_at_the_first_bad_file(listing: ImageIndex, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data: ant/5.png: .*--strict") as caught:
        prepare(listing, tmp_path / "out", strict=True)
    assert "\n" not in str(caught.value)
    prepare(listing, tmp_path / "out")
    with pytest.raises(UserError, match="ant/5"):
        prepare(listing, tmp_path / "out", strict=True)
    deeper = replace(listing, remarks=(Remark("odd", "is fine", left_out=False), Remark("ant/deep", "is a folder")))
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


def test_refused_files_have_labels(listing: ImageIndex, tmp_path: Path) -> None:
    store = prepare(replace(listing, remarks=(Remark("odd", "is a folder"),)), tmp_path / "out")
    assert store.refused_labels == {"ant/5.png": 0, "cat/half.jpg": 2, "cat/notes.txt": 2}


def test_a_disk_that_comes_back(listing: ImageIndex, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    photos.rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"no image that can be read; the first of 18 is ant/0\.png: no such file"):
        prepare(listing, out)
    assert not list(out.glob("data-*"))
    (tmp_path / "elsewhere").rename(photos)
    prepare(listing, out)
    prepare(listing, tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


def test_files_that_could_not_be_read_are_tried_again(listing: ImageIndex, photos: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 15:
            raise KeyboardInterrupt

    out, gone = tmp_path / "out", photos / "bee" / "2.jpg"
    gone.rename(tmp_path / "gone")
    with pytest.raises(KeyboardInterrupt):
        prepare(listing, out, progress=stop)
    (tmp_path / "gone").rename(gone)
    source = Counted(listing.source)
    prepare(replace(listing, source=source), out)
    assert sorted(source.read_of) == list(range(7, 18))
    prepare(listing, tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


def test_files_that_are_gone_are_refused(listing: ImageIndex, photos: Path, tmp_path: Path) -> None:
    (photos / "bee" / "2.jpg").unlink()
    store = prepare(listing, tmp_path / "out")
    assert ("bee/2.jpg", "no such file or directory", True) in store.remarks()
    sizes = [(photos / name).stat().st_size for name in listing.source.names if name != "bee/2.jpg"]
    assert store.facts.bytes_before == sum(sizes)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"short_side": 0}, "short_side: 0"), ({"quality": 0}, "quality: 0"), ({"quality": 101}, "quality: 101")],
)
def test_bad_options(listing: ImageIndex, tmp_path: Path, options: dict[str, int], said: str) -> None:
    with pytest.raises(UserError, match=said):
        prepare(listing, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_nothing_to_store(listing: ImageIndex, photos: Path, tmp_path: Path) -> None:
    for file in photos.glob("*/*.*"):
        file.write_text("no image")
    with pytest.raises(UserError, match="photos has no image that can be read; the first of 18 is ant/0"):
        prepare(listing, tmp_path / "out")
    with pytest.raises(UserError, match="is not complete"):
        open_store(tmp_path / "out")
    empty = replace(listing, source=replace(listing.source, names=()), labels=listing.labels[:0])  # type: ignore[type-var]
    with pytest.raises(UserError, match="lists no image"):
        prepare(empty, tmp_path / "empty")


def test_a_full_disk(listing: ImageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match=r"can't be written \(No space left on device\)"):
            prepare(listing, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["lock"]
    prepare(listing, tmp_path / "out")


def test_an_interrupt_keeps_finished_shards(listing: ImageIndex, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(listing, tmp_path / "out", progress=stop)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["data-00000.arrow", "lock", "prepare.json"]
    prepare(listing, tmp_path / "out")
    prepare(listing, tmp_path / "whole")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_names_that_are_no_text(listing: ImageIndex, photos: Path, tmp_path: Path) -> None:
    (photos / "bee" / "2.jpg").rename(photos / "bee" / os.fsdecode(b"\xff.jpg"))
    store = prepare(folder(photos), tmp_path / "out")
    assert "bee/\ufffd.jpg" in store.source.names
