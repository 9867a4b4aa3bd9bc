"""Every image of a store, looked at."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssil.data.decode import UnreadableError
from ssil.data.image_index import ImageIndex
from ssil.data.store.reader import Store, open_store
from ssil.data.store.verification import check
from ssil.data.store.writer import prepare


@pytest.fixture
def store(listing: ImageIndex, tmp_path: Path) -> Store:
    return prepare(listing, tmp_path / "store")


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_good_store(store: Store) -> None:
    calls: list[tuple[int, int]] = []
    assert check(store, lambda *call: calls.append(call)) == []
    assert calls == [(done, 15) for done in range(1, 16)]


@pytest.mark.parametrize("index", [0, 6, 14])
def test_a_flipped_bit_is_found(store: Store, index: int) -> None:
    shard = store.path / f"data-{store.source.columns.shard[index]:05d}.arrow"
    data = bytes(store.source.read(index))
    flip(shard, shard.read_bytes().index(data) + len(data) // 2)
    (fault,) = check(open_store(store.path))
    assert fault.path == store.source.names[index]
    assert "its bytes have changed" in fault.reason
    assert shard.name in fault.reason
    assert fault.left_out


def test_a_shard_that_cannot_be_opened(store: Store) -> None:
    shard = store.path / "data-00001.arrow"
    shard.write_bytes(shard.read_bytes()[:-100] + bytes(100))
    (fault,) = check(open_store(store.path))
    assert fault.path == "data-00001.arrow"
    assert "run the same `ssil data prepare` again" in fault.reason


def test_a_changed_index(store: Store) -> None:
    content = (store.path / "index.arrow").read_bytes()
    flip(store.path / "index.arrow", content.index(store.source.columns.label.tobytes()))
    assert [fault.path for fault in check(open_store(store.path))] == ["index.arrow"]


@pytest.mark.parametrize(
    ("field", "change"),
    [("classes", lambda names: names[::-1]), ("keys", lambda keys: ["k"]), ("look", lambda look: look | {"size": 9})],
)
def test_changed_facts(store: Store, field: str, change: Callable[[Any], Any]) -> None:
    facts = json.loads((store.path / "store.json").read_text())
    (store.path / "store.json").write_text(json.dumps(facts | {field: change(facts[field])}))
    (fault,) = check(open_store(store.path))
    assert fault == ("store.json", "its classes, keys or look have changed since the store was made", True)


def test_whole_numbers_in_a_look(listing: ImageIndex, tmp_path: Path) -> None:
    look = replace(listing.look, mean=(0, 0, 0), std=(1, 1, 1))
    assert check(prepare(replace(listing, look=look), tmp_path / "whole")) == []


def test_some_rows_only(store: Store) -> None:
    calls: list[tuple[int, int]] = []
    assert check(store, lambda *call: calls.append(call), chosen=np.array([2, 9])) == []
    assert calls == [(1, 2), (2, 2)]


def test_an_image_that_can_no_longer_be_decoded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: memoryview) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        raise UnreadableError("no decoder")

    monkeypatch.setattr("ssil.data.store.verification.whole", refuse)
    faults = check(store, workers=2)
    assert [fault.path for fault in faults] == list(store.source.names)
    assert faults[0].reason == "no decoder, in data-00000.arrow"
