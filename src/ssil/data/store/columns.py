"""The index of a store as arrays, which are views of the mapped file."""

from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssil.data.encoded import Digests
from ssil.data.listing import Flags
from ssil.data.survey import digests

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Names(Sequence[str]):
    """A column of strings, of which one is made when it is asked for."""

    def __init__(self, column: pa.StringArray) -> None:
        self._column = column

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        found: str | list[str] = (
            self._column[index].to_pylist() if isinstance(index, slice) else self._column[index].as_py()
        )
        return found

    def __len__(self) -> int:
        return len(self._column)


class Columns(NamedTuple):
    """What the index holds of each good image; `test` is None where the source leaves the split open."""

    label: Ints
    test: Flags | None
    width: Ints
    height: Ints
    length: Longs
    digest: Digests
    pixels: Digests
    shard: Longs
    row: Longs
    name: Names


def columns(index: pa.RecordBatch) -> Columns:
    """The columns of an index."""
    label, width, height, length, shard, row = (
        index[name].to_numpy() for name in ("label", "width", "height", "length", "shard", "row")
    )
    test = None if index["test"].null_count else index["test"].to_numpy(zero_copy_only=False)
    digest, pixels = (digests(index[name]) for name in ("digest", "pixels"))
    return Columns(label, test, width, height, length, digest, pixels, shard, row, Names(index["name"]))
