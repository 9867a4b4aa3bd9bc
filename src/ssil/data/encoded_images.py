"""Images that are decoded when they are asked for, by a pool of threads."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssil.core.errors import UserError
from ssil.data.augmentation import Draws
from ssil.data.cropping import centre_box, random_box
from ssil.data.decode import Box, UnreadableError, measure, resize, view, whole
from ssil.data.image_index import Bytes, Preprocessing, Source, plain

Digests = NDArray[np.uint8]
"""16 bytes of a SHA-256 a picture, (N, 16)."""

Pixels = NDArray[np.uint8]
Form = Literal["bytes", "decoded"]


def workers() -> int:
    """Threads that keep all cores busy, also while one waits for a file."""
    return (os.cpu_count() or 1) + 1


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """Threads that decode: the libraries release the interpreter while they are at it. None starts others."""
    return ThreadPoolExecutor(threads, "decode", initializer=partial(torch.set_num_threads, 1))


@dataclass(frozen=True, eq=False)
class Encoded:
    """Some rows of a source, seen as `look` says; what `ssil.core.samples.Images` asks for.

    `digests` (of the bytes) and `pixels` (of the pictures) belong to all rows of the source; `held` are rows in memory.
    """

    source: Source
    rows: NDArray[np.int64]
    look: Preprocessing
    digests: Digests
    pixels: Digests
    threads: int = field(default_factory=workers)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    held: dict[int, Bytes | Pixels] = field(default_factory=dict)
    resident: bool = False
    """Whether all of them are held."""

    @property
    def ahead(self) -> int:
        """Two batches while a GPU computes; none on a CPU, which would only be taken from the computing."""
        return 0 if self.device.type == "cpu" else 2

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.look.size, self.look.size, self.look.channels

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device | str) -> "Encoded":
        """The same pictures, handed out on another device."""
        return replace(self, device=torch.device(device))

    def take(self, indices: Tensor) -> "Encoded":
        """Some of them."""
        return replace(self, rows=self.rows[indices.numpy()])

    def content(self) -> Iterator[bytes]:
        """How they are seen, and the digests of the files: what tells these pictures from others."""
        yield repr(self.look).encode()
        yield self.digests[self.rows].tobytes()

    def keys(self) -> list[bytes]:
        """A digest of each picture's pixels."""
        return [digest.tobytes() for digest in self.pixels[self.rows]]

    def hold(self, indices: Tensor, form: Form) -> None:
        """Keep these, and no others, in memory; it changes nothing but the time that fetching takes.

        A decoded one takes its full size, and views are cut from it; one that may be decoded at a smaller scale than
        its own is held as its bytes, for its views would differ.
        """
        if self.resident:
            return
        rows = self.rows[indices.numpy()].tolist()
        new = [row for row in rows if row not in self.held]
        read = pool(self.threads).map(self._decoded if form == "decoded" else self._bytes, new)
        held = dict(zip(new, read, strict=True)) | {row: self.held[row] for row in rows if row in self.held}
        self.held.clear()
        self.held.update(held)

    def in_memory(self) -> "Encoded":
        """All of them, held as their bytes."""
        images = replace(self, held={})
        images.hold(torch.arange(len(self)), "bytes")
        return replace(images, resident=True)

    def fetch(self, indices: Tensor, draws: Draws | None = None) -> Tensor:
        """Views of these pictures: as drawn, or of their centres."""
        rows = self.rows[indices.cpu().numpy()].tolist()
        batch = torch.empty(len(rows), *self.shape, dtype=torch.uint8, pin_memory=self.device.type == "cuda")
        out = batch.numpy()
        crops = draws.crop.tolist() if draws and draws.crop is not None else None

        slots = iter(range(len(rows)))

        def fill(_: int) -> None:
            for slot in slots:  # which the threads share: each takes the next
                self._see(rows[slot], crops and crops[slot], out[slot])

        for _ in pool(self.threads).map(fill, range(self.threads)):
            pass
        return batch.to(self.device, non_blocking=True)

    def _see(self, row: int, crop: list[float] | None, out: Pixels) -> None:
        """Fill `out` with a view."""
        kept = self.held.get(row)
        try:
            if isinstance(kept, np.ndarray):
                height, width, _ = kept.shape
                resize(kept, self._box(width, height, crop), out)
            else:
                data = self.source.read(row) if kept is None else kept
                view(data, self._box(*measure(data), crop), out)
        except (OSError, UnreadableError) as error:
            name = plain(self.source.names[row])
            raise UserError(f"data: {name} was good, but can't be read any more ({error}); restore it") from error

    def _box(self, width: int, height: int, crop: list[float] | None) -> Box:
        if crop:
            return random_box(width, height, crop)
        return centre_box(width, height, self.look.centre)

    def _bytes(self, row: int) -> bytes:
        return bytes(self.source.read(row))

    def _decoded(self, row: int) -> Bytes | Pixels:
        data = self._bytes(row)
        return whole(data, self.look.channels) if min(measure(data)) < 2 * self.look.size else data


@dataclass(frozen=True, eq=False)
class Viewed(Encoded):
    """Pictures that are always seen in the same way, all decoded, on the device where training happens."""

    views: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def ahead(self) -> int:
        """They are there."""
        return 0

    def to(self, device: torch.device | str) -> "Viewed":
        """The same pictures, handed out on another device; there, if they take at most half of what is free."""
        device = torch.device(device)
        fits = device.type != "cuda" or self.views.nbytes <= torch.cuda.mem_get_info(device)[0] / 2
        return replace(self, device=device, views=self.views.to(device) if fits else self.views)

    def take(self, indices: Tensor) -> "Viewed":
        """A copy of some of them."""
        views = self.views.index_select(0, indices.to(self.views.device))
        return replace(self, rows=self.rows[indices.numpy()], views=views)

    def hold(self, indices: Tensor, form: Form) -> None:
        """They are in memory already."""

    def fetch(self, indices: Tensor, draws: Draws | None = None) -> Tensor:
        """The views at these indices."""
        return self.views.index_select(0, indices.to(self.views.device)).to(self.device)
