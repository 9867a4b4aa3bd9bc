"""An encoded image as a value, and groups of them. Nothing here imports torch, which predictions need not load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from unicodedata import normalize

from ssil.core.files import checksum
from ssil.data.shrinking import shrink

if TYPE_CHECKING:
    from torch import Tensor

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
    features: Callable[[], "Tensor"] | None = None
    """Reads the image's features, if a frozen backbone has computed them."""
    stored: Callable[[], "Mapping[str, Tensor]"] | None = None
    """Reads what the method stores with the image, if it is an exemplar of a method that stores anything."""

    @classmethod
    def from_bytes(cls, name: str, data: bytes, origin: str = "") -> "ImageFile":
        """Return an image whose encoded bytes are in memory."""
        return cls(name, checksum(data), partial(_same, data), origin)

    def with_features(self, features: "Tensor") -> "ImageFile":
        """Return the image with these features."""
        return replace(self, features=partial(_same, features))

    def with_stored(self, values: "Mapping[str, Tensor]") -> "ImageFile":
        """Return the image with what a method stores with it."""
        return replace(self, stored=partial(_same, values))

    @property
    def original_digest(self) -> str:
        """The checksum of the image as it first arrived, by which it is recognised when it arrives again."""
        return self.origin or self.digest

    def shrunk(self, short_side: int, channels: int) -> "ImageFile":
        """Return a copy in memory whose short side is at most `short_side` pixels."""
        data = bytes(shrink(self.read(), short_side, channels))
        origin = self.original_digest if checksum(data) != self.digest else self.origin
        return replace(ImageFile.from_bytes(self.name, data, origin), features=self.features, stored=self.stored)


def _same(value: Value) -> Value:
    """Return `value`: unlike a lambda, it can be pickled."""
    return value


ImagesByClass = tuple[tuple[ImageFile, ...], ...]
"""One group of images per class, in order of the classes' arrival; exemplars with the most valuable first."""

LabelledImages = Sequence[tuple[ImageFile, str]]
"""Images, each with the name of its class."""


def labelled(names: Sequence[str], groups: Sequence[Sequence[ImageFile]]) -> LabelledImages:
    """Return the images of each class's group, with the names of the classes."""
    return [(image, name) for name, group in zip(names, groups, strict=True) for image in group]


def normalized_name(class_name: str) -> str:
    """Return the class name in Unicode's composed form: file systems and keyboards differ in letters with accents."""
    return normalize("NFC", class_name)
