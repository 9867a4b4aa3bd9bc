"""Encoded images with their class names: what an update learns from, and what a model directory keeps."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar
from unicodedata import normalize

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.samples import Samples
from ssil.data.assemble import class_remarks
from ssil.data.encoded_images import Encoded
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Preprocessing, Remark, as_utf8
from ssil.data.shrinking import shrink

MAX_DECODED_BYTES = 1 << 30
"""Up to this size, a set of images is decoded once and held in memory."""


Value = TypeVar("Value")


@dataclass(frozen=True)
class ImageFile:
    """One encoded image (JPEG, PNG, ...), on disk or in memory."""

    name: str
    """The name shown to the user: a path, or a description."""
    digest: str
    """The checksum of the encoded bytes."""
    read: Callable[[], bytes]
    origin: str = ""
    """If the image is a reduced copy, the checksum of the original."""
    features: Callable[[], Tensor] | None = None
    """Reads the image's features, if a frozen backbone has computed them."""
    pixels: NDArray[np.uint8] | None = field(default=None, compare=False)
    """The decoded image, where it is held in memory."""

    @classmethod
    def from_bytes(cls, name: str, data: bytes, origin: str = "") -> "ImageFile":
        """Return an image whose encoded bytes are in memory."""
        return cls(name, checksum(data), partial(_same, data), origin)

    def with_features(self, features: Tensor) -> "ImageFile":
        """Return the image with these features."""
        return replace(self, features=partial(_same, features))

    @property
    def original_digest(self) -> str:
        """The checksum of the image as it first arrived, by which it is recognised when it arrives again."""
        return self.origin or self.digest

    def shrunk(self, short_side: int, channels: int) -> "ImageFile":
        """Return a copy in memory whose short side is at most `short_side` pixels."""
        data = bytes(shrink(self.read(), short_side, channels))
        origin = self.original_digest if checksum(data) != self.digest else self.origin
        return replace(ImageFile.from_bytes(self.name, data, origin), features=self.features)


def _same(value: Value) -> Value:
    """Return `value`: unlike a lambda, it can be pickled."""
    return value


ImagesByClass = tuple[tuple[ImageFile, ...], ...]
"""One group of images per class, in order of the classes' arrival; exemplars with the most valuable first."""

LabelledImages = Sequence[tuple[ImageFile, str]]
"""Images, each with the name of its class."""


def normalized_name(class_name: str) -> str:
    """Return the class name in Unicode's composed form: file systems and keyboards differ in letters with accents."""
    return normalize("NFC", class_name)


@dataclass(frozen=True)
class _ImageSource:
    """Images as a source that `Encoded` can decode."""

    images: Sequence[ImageFile]

    @property
    def names(self) -> Sequence[str]:
        return [image.name for image in self.images]

    def read(self, index: int) -> bytes:
        return self.images[index].read()

    def __len__(self) -> int:
        return len(self.images)


def image_samples(images: Sequence[ImageFile], labels: Sequence[int], preprocessing: Preprocessing) -> Samples:
    """Return images and labels as samples; decoded once if no random crop is used and the pixels fit into memory."""
    digests = np.array([list(bytes.fromhex(image.digest)) for image in images], np.uint8).reshape(-1, 16)
    held = {row: image.pixels for row, image in enumerate(images) if image.pixels is not None}
    encoded = Encoded(_ImageSource(images), np.arange(len(images)), preprocessing, digests, digests, held={**held})
    small = preprocessing.augment != "crop" and len(encoded) * math.prod(encoded.shape) <= MAX_DECODED_BYTES
    return Samples(encoded.decoded() if small else encoded, torch.tensor(labels, dtype=torch.long))


def load_images(
    name: str, on_progress: ProgressCallback | None = None
) -> tuple[list[tuple[ImageFile, str]], tuple[Remark, ...]]:
    """Find the labelled images of a folder with one sub-folder per class, a manifest or a store.

    Returns:
        The readable images, without those that the source reserves for testing; and remarks on the others.

    Raises:
        UserError: `name` is none of these.
    """
    from ssil.data.data_settings import DataSettings
    from ssil.data.load import find_validated_index  # imports all sources of data, which predictions don't need

    found = find_validated_index(DataSettings(dataset=name), on_progress=on_progress)
    if found is None:
        raise UserError(f"images: {name} is no folder with one sub-folder per class, and no .csv or .parquet manifest")
    index, validation = found
    tested = np.zeros_like(validation.good) if index.is_test is None else index.is_test & validation.good
    left_out = [Remark(name, f"{tested.sum()} images are for testing, and not learnt")] if tested.any() else []
    remarks = (*index.remarks, *validation.remarks(index.source.names), *class_remarks(index, validation), *left_out)

    def images() -> Iterator[tuple[ImageFile, str]]:
        for row in (validation.good & ~tested).nonzero()[0].tolist():
            digest = validation.digests[row].tobytes().hex()
            read = partial(_read_bytes, index.source.read, row)
            name = as_utf8(index.source.names[row])
            yield ImageFile(name, digest, read), normalized_name(index.classes[index.labels[row]])

    return list(images()), remarks


def _read_bytes(read: Callable[[int], bytes | memoryview], row: int) -> bytes:
    return bytes(read(row))
