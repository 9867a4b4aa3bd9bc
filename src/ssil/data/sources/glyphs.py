"""Synthetic characters: a benchmark that needs no download. Made, not taken: it says nothing about photographs."""

import unicodedata
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.cache import Arrays, cached
from ssil.data.dataset import Dataset, DatasetInfo
from ssil.data.resident_images import Resident
from ssil.data.sources.glyph_characters import LARGEST, TEST_FACES, TRAIN_FACES, alphabet, master
from ssil.data.sources.glyph_distortion import DRAWS, FRAGMENTS, distort

VERSION = 1  # to be raised with any change of the pixels
POOL = 100  # the characters of which fragments are taken
INFO = DatasetInfo(
    "glyphs",
    "synthetic: distorted characters, tested in other typefaces than trained in",
    f"100, or up to {LARGEST:,}",
    "28x28 grey, or as you say",
    "made when first used",
)


def glyphs(
    classes: int = 100, train_per_class: int = 60, test_per_class: int = 20, size: int = 28, seed: int = 0
) -> Dataset:
    """Synthetic pictures of characters, kept in the cache.

    Characters are drawn in four typefaces for training and in four others for testing, then turned, sheared, stretched,
    shifted, made bolder or lighter, cluttered, blurred and covered with noise. A picture depends on nothing but its
    character, its number, its split, the size and the seed: asking for more adds to what there was.
    """
    _check("classes", classes, 1, LARGEST)
    _check("train_per_class", train_per_class, 1, 10_000)
    _check("test_per_class", test_per_class, 1, 10_000)
    _check("image_size", size, 8, 64)
    options = (VERSION, classes, train_per_class, test_per_class, size, seed)
    key = checksum(repr(options).encode(), 16)
    made = cached(f"glyphs-{key}", lambda: _make(classes, train_per_class, test_per_class, size, seed))
    train, test = _samples(made["train"], classes), _samples(made["test"], classes)
    names = tuple(f"{character} {unicodedata.name(character).lower()}" for character in map(chr, made["characters"]))
    return Dataset("glyphs", train, test, names, Transform((0.35,), (0.25,), pad=2), synthetic=True)


def _check(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UserError(f"{option}={value} must be between {least:,} and {most:,} for glyphs")


def _samples(pixels: NDArray[np.uint8], classes: int) -> Samples:
    labels = torch.arange(classes).repeat_interleave(len(pixels) // classes)
    return Samples(Resident(torch.from_numpy(pixels)), labels)


def _make(classes: int, train_per_class: int, test_per_class: int, size: int, seed: int) -> Arrays:
    characters = list(islice(alphabet(), max(classes, POOL)))
    arrays = {"characters": np.array([ord(character) for character in characters[:classes]])}
    for split, faces, count in (("train", TRAIN_FACES, train_per_class), ("test", TEST_FACES, test_per_class)):
        pool = torch.stack([_masters(character, faces) for character in characters[:POOL]])
        pictures = [_draw(c, _masters(c, faces), pool, split, count, size, seed) for c in characters[:classes]]
        arrays[split] = torch.cat(pictures).unsqueeze(3).numpy()
    return arrays


def _masters(character: str, faces: tuple[str, ...]) -> Tensor:
    return torch.from_numpy(np.stack([master(character, face) for face in faces])) / 255


def _draw(character: str, masters: Tensor, pool: Tensor, split: str, count: int, size: int, seed: int) -> Tensor:
    """Pictures of one character, uint8 (count, size, size)."""
    random = Randomness(seed)
    draws = torch.rand(count, 1 + FRAGMENTS + DRAWS, generator=random.at(f"glyphs {split}", ord(character)))
    noise = torch.rand(count, size, size, generator=random.at(f"glyphs {split} noise", ord(character)))
    face, others, rest = draws.split([1, FRAGMENTS, DRAWS], dim=1)
    face, others = (face * len(masters)).long(), (others * len(pool)).long()
    return distort(masters[face.squeeze(1)], pool[others, face], rest, noise)
