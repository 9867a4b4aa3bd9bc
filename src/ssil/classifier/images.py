"""Pictures in their encoded form, with the names of their classes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from unicodedata import normalize

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.files import checksum, write_atomic
from ssil.core.samples import Samples
from ssil.core.tensor_files import pack
from ssil.data.assemble import on_classes, viewed
from ssil.data.data_settings import DataSettings
from ssil.data.encoded_images import Encoded
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Preprocessing, Remark, content, why
from ssil.data.load import find_validated_index
from ssil.data.shrinking import shrink


@dataclass(frozen=True)
class Picture:
    """An encoded image: what people call it, a checksum of its bytes, how to read them, and what it was made from."""

    name: str
    digest: str
    read: Callable[[], bytes]
    origin: str = ""
    """The checksum of the picture that it is a smaller copy of, if it is one."""
    features: Callable[[], Tensor] | None = None
    """How to read what a frozen backbone made of it when it arrived, if there is one."""
    pixels: NDArray[np.uint8] | None = field(default=None, compare=False)
    """The picture itself, where it is decoded already."""

    @classmethod
    def of(cls, name: str, data: bytes, origin: str = "") -> "Picture":
        """One that is in memory."""
        return cls(name, checksum(data), lambda: data, origin)

    def with_features(self, features: Tensor) -> "Picture":
        """The same, with what a frozen backbone makes of it."""
        return replace(self, features=lambda: features)

    @property
    def known_as(self) -> str:
        """The checksum by which it is known again when it arrives once more."""
        return self.origin or self.digest

    def shrunk(self, short_side: int, channels: int) -> "Picture":
        """A copy to keep: no larger than needed, in memory."""
        data = bytes(shrink(self.read(), short_side, channels))
        copy = Picture.of(self.name, data, self.known_as if checksum(data) != self.digest else self.origin)
        return replace(copy, features=self.features)


def intact(path: Path, digest: str) -> bytes:
    """A kept file's content; one that has changed is refused by name."""
    try:
        data = content(path)
    except OSError as error:
        raise UserError(f"model: {path} can't be read ({why(error)}); delete it, or restore it") from None
    if checksum(data) != digest:
        raise UserError(f"model: {path} is damaged (its checksum differs); delete it, or restore it")
    return data


DECODED = 1 << 30
"""Bytes of decoded pictures that are held in memory."""

Groups = tuple[tuple["Picture", ...], ...]
"""Pictures by class, in order of arrival; exemplars the most valuable first."""

Labelled = Sequence[tuple[Picture, str]]
"""Pictures, each with its class."""


@dataclass(frozen=True)
class Pictures:
    """Pictures as a source that can be decoded."""

    members: tuple[Picture, ...]

    @property
    def names(self) -> Sequence[str]:
        """What a message calls them."""
        return [picture.name for picture in self.members]

    def read(self, index: int) -> bytes:
        """The encoded picture."""
        return self.members[index].read()

    def __len__(self) -> int:
        return len(self.members)

    def samples(self, labels: Sequence[int], look: Preprocessing) -> Samples:
        """Ready to be learnt from, or looked at; decoded once and for all if they are always seen alike."""
        digests = np.array([list(bytes.fromhex(picture.digest)) for picture in self.members], np.uint8).reshape(-1, 16)
        held = {row: picture.pixels for row, picture in enumerate(self.members) if picture.pixels is not None}
        images = Encoded(self, np.arange(len(self.members)), look, digests, digests, held={**held})
        small = look.augment != "crop" and len(images) * math.prod(images.shape) <= DECODED
        return Samples(viewed(images) if small else images, torch.tensor(labels, dtype=torch.long))


def from_data(name: str, on_progress: ProgressCallback | None = None) -> tuple[Labelled, tuple[Remark, ...]]:
    """The good pictures of a folder with a sub-folder a class, a manifest or a store, and remarks on the others.

    Those that the source sets aside for testing are left to that.
    """
    found = find_validated_index(DataSettings(dataset=name), on_progress=on_progress)
    if found is None:
        raise UserError(f"images: {name} is no folder with a sub-folder a class, and no .csv or .parquet manifest")
    listing, survey = found
    tested = np.zeros_like(survey.good) if listing.tested is None else listing.tested & survey.good
    aside = [Remark(name, f"{tested.sum()} pictures are for testing, and not learnt")] if tested.any() else []
    remarks = (*listing.remarks, *survey.remarks(listing.source.names), *on_classes(listing, survey), *aside)

    def pictures() -> Iterator[tuple[Picture, str]]:
        for row in (survey.good & ~tested).nonzero()[0].tolist():
            digest = survey.digests[row].tobytes().hex()
            read = partial(_bytes, listing.source.read, row)
            yield Picture(listing.source.names[row], digest, read), spelt(listing.classes[listing.labels[row]])

    return list(pictures()), remarks


def spelt(class_name: str) -> str:
    """A class's name in one spelling: disks and keyboards have two for letters with marks."""
    return normalize("NFC", class_name)


def _bytes(read: Callable[[int], bytes | memoryview], row: int) -> bytes:
    return bytes(read(row))


NAME = "features"


def keep(path: Path, picture: Picture) -> dict[str, str]:
    """Write the features of a picture whose file is `path`; what is to be said of them in the model's own file."""
    if not picture.features:
        return {}
    data = pack({NAME: picture.features()})
    if not (file := _beside(path, checksum(data))).exists():
        write_atomic(file, data)
    return {NAME: checksum(data)}


def kept(path: Path, digest: str | None) -> Callable[[], Tensor] | None:
    """How to read the features of a picture; None if there are none, or their owner has deleted them."""
    if digest is None or not (file := _beside(path, digest)).exists():
        return None
    return partial(_read, file, digest)


def _beside(path: Path, digest: str) -> Path:
    return path.with_name(f"{path.stem}-{digest}.safetensors")


def _read(path: Path, digest: str) -> Tensor:
    try:
        return safetensors.torch.load(intact(path, digest))[NAME]
    except (KeyError, SafetensorError):
        raise UserError(f"model: {path} holds no features; delete it, or restore it") from None
