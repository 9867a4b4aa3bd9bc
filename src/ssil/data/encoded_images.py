"""Images that are decoded when they are fetched, by a pool of threads."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssil.core.errors import UserError
from ssil.data.augmentation import Draws
from ssil.data.crop_boxes import centre_box, random_box
from ssil.data.decode import Box, Pixels, UnreadableError, decode_image, measure, resize, view
from ssil.data.image_index import Bytes, Preprocessing, Rows, Source, as_utf8
from ssil.data.prefetch import decoding_pool, default_threads

Digests = NDArray[np.uint8]
"""The first 16 bytes of a SHA-256 per image, (N, 16)."""

Form = Literal["bytes", "decoded"]
BLOCK = 256


@dataclass(frozen=True, eq=False)
class Encoded:
    """Some rows of a source of encoded images; implements `ssil.core.samples.Images`.

    `digests` (of the encoded bytes) and `pixels` (digests of the decoded images) are those of all rows of the source;
    `held` are the rows that are in memory, as bytes or decoded.
    """

    source: Source
    rows: Rows
    preprocessing: Preprocessing
    digests: Digests
    pixels: Digests
    threads: int = field(default_factory=default_threads)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    held: dict[int, Bytes | Pixels] = field(default_factory=dict)
    resident: bool = False
    """Whether all rows are held."""

    @property
    def prefetch_depth(self) -> int:
        """The number of batches to decode in advance: 2 while a GPU computes, 0 on a CPU, which training needs."""
        return 0 if self.device.type == "cpu" else 2

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.preprocessing.size, self.preprocessing.size, self.preprocessing.channels

    @property
    def names(self) -> list[str]:
        """The path of each image, as its source names it."""
        return [self.source.names[row] for row in self.rows.tolist()]

    def __len__(self) -> int:
        return len(self.rows)

    def to(self, device: torch.device | str) -> "Encoded":
        """Return the same images, fetched to another device."""
        return replace(self, device=torch.device(device))

    def take(self, indices: Tensor) -> "Encoded":
        """Return some of the images."""
        return replace(self, rows=self.rows[indices.numpy()])

    def content(self) -> Iterator[bytes]:
        """Yield the bytes for a fingerprint: the preprocessing, then the digests of the files."""
        yield repr(self.preprocessing).encode()
        yield self.digests[self.rows].tobytes()

    def keys(self) -> list[bytes]:
        """Return a digest of each image's pixels."""
        return [digest.tobytes() for digest in self.pixels[self.rows]]

    def hold(self, indices: Tensor, form: Form) -> None:
        """Keep these images, and no others, in memory; fetching them returns the same views as before.

        A decoded image is kept at full size, and views are cropped from it. An image whose views may be decoded at a
        smaller scale is kept as its bytes, because its views would differ.
        """
        if self.resident:
            return
        rows = self.rows[indices.numpy()].tolist()
        new = [row for row in rows if row not in self.held]
        read = decoding_pool(self.threads).map(self._decoded if form == "decoded" else self._bytes, new)
        held = dict(zip(new, read, strict=True)) | {row: self.held[row] for row in rows if row in self.held}
        self.held.clear()
        self.held.update(held)

    def in_memory(self) -> "Encoded":
        """Return the same images, all held as their bytes."""
        images = replace(self, held={})
        images.hold(torch.arange(len(self)), "bytes")
        return replace(images, resident=True)

    def decoded(self) -> "Decoded":
        """Return the same images with their test views decoded, for images whose training views are the same."""
        views = torch.empty(len(self), *self.shape, dtype=torch.uint8)
        for block in torch.arange(len(self)).split(BLOCK):
            views[block] = self.fetch(block)
        return Decoded(**{part.name: getattr(self, part.name) for part in fields(self)}, views=views)

    def fetch(self, indices: Tensor, draws: Draws | None = None) -> Tensor:
        """Return views of these images: random crops as drawn, or centre crops."""
        rows = self.rows[indices.cpu().numpy()].tolist()
        batch = torch.empty(len(rows), *self.shape, dtype=torch.uint8, pin_memory=self.device.type == "cuda")
        out = batch.numpy()
        crops = draws.crop.tolist() if draws and draws.crop is not None else None
        slots = iter(range(len(rows)))

        def fill(_: int) -> None:
            for slot in slots:  # shared by the threads: each takes the next
                self._view(rows[slot], crops and crops[slot], out[slot])

        for _ in decoding_pool(self.threads).map(fill, range(self.threads)):
            pass
        return batch.to(self.device, non_blocking=True)

    def _view(self, row: int, crop: list[float] | None, out: Pixels) -> None:
        """Write a view of an image into `out`."""
        held = self.held.get(row)
        try:
            if isinstance(held, np.ndarray):
                height, width, _ = held.shape
                resize(held, self._box(width, height, crop), out, self.preprocessing.interpolation)
            else:
                data = self.source.read(row) if held is None else held
                view(data, self._box(*measure(data), crop), out, self.preprocessing.interpolation)
        except (OSError, UnreadableError) as error:
            name = as_utf8(self.source.names[row])
            raise UserError(f"data: {name} was good, but can't be read any more ({error}); restore it") from error

    def _box(self, width: int, height: int, crop: list[float] | None) -> Box:
        return random_box(width, height, crop) if crop else centre_box(width, height, self.preprocessing.centre)

    def _bytes(self, row: int) -> bytes:
        return bytes(self.source.read(row))

    def _decoded(self, row: int) -> Bytes | Pixels:
        data = self._bytes(row)
        small = min(measure(data)) < 2 * self.preprocessing.size
        return decode_image(data, self.preprocessing.channels) if small else data


@dataclass(frozen=True, eq=False)
class Decoded(Encoded):
    """Images whose training and test views are the same: all decoded, on the device where training happens."""

    views: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def prefetch_depth(self) -> int:
        """The number of batches to decode in advance: 0, since the views are in memory."""
        return 0

    def to(self, device: torch.device | str) -> "Decoded":
        """Return the same images, fetched to another device; moved there if they take at most half of what is free."""
        device = torch.device(device)
        fits = device.type != "cuda" or self.views.nbytes <= torch.cuda.mem_get_info(device)[0] / 2
        return replace(self, device=device, views=self.views.to(device) if fits else self.views)

    def take(self, indices: Tensor) -> "Decoded":
        """Return a copy of some of the images."""
        views = self.views.index_select(0, indices.to(self.views.device))
        return replace(self, rows=self.rows[indices.numpy()], views=views)

    def hold(self, indices: Tensor, form: Form) -> None:
        """Do nothing: the views are in memory."""

    def fetch(self, indices: Tensor, draws: Draws | None = None) -> Tensor:
        """Return the views at these indices."""
        return self.views.index_select(0, indices.to(self.views.device)).to(self.device)
