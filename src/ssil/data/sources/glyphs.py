"""Synthetic glyphs: seeded distortions of characters, a benchmark that needs no download.

The images are drawn, not photographed: results on them say nothing about photographs.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain, islice, zip_longest
from math import pi
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.cache import Arrays, cached
from ssil.data.dataset import Dataset, DatasetInfo
from ssil.data.resident_images import Resident

# Two families x two weights x two slants, halved so that either half has every family, weight and slant twice. The
# Mono faces are left out: with them, fewer than 2,000 characters stay distinct in every face.
TRAIN_FACES = ("DejaVuSans", "DejaVuSans-BoldOblique", "DejaVuSerif-Bold", "DejaVuSerif-Italic")
TEST_FACES = ("DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSerif", "DejaVuSerif-BoldItalic")
FACES = TRAIN_FACES + TEST_FACES

LARGEST = 2000
SIDE = 48
SHAPE = 16
# The largest cosine similarity of a character to any earlier one, in the face where they are most similar. The first
# limit gives some 420 characters; each further one admits more, which are harder to tell apart.
LIMITS = (0.8, 0.9, 0.95, 0.98)
GROUPS = ("LATIN", "GREEK", "CYRILLIC", "N", "S", "GEORGIAN", "ARMENIAN")

VERSION = 1  # to be raised with any change of the pixels
POOL = 100  # the number of characters from which fragments are taken
INFOS = (
    DatasetInfo(
        "glyphs",
        "synthetic: distorted characters, tested in other typefaces than trained in",
        f"100, or up to {LARGEST:,}",
        "28x28 grey, or as you say",
        "made when first used",
    ),
)

DRAWS = 26  # random numbers per image
# Each range is (from, to) of a uniform draw; angles in degrees, lengths in half image sides.
ANGLE = (-15.0, 15.0)
SCALE = (0.6, 0.85)
STRETCH = (0.85, 1.18)
SHEAR = (-0.25, 0.25)
SHIFT = (-0.18, 0.18)
WEIGHT = (-0.8, 0.8)
FRAGMENTS = 2
DISTANCE = (0.9, 1.3)
BLUR = (0.0, 1.0)
PAPER = (0.0, 0.35)
INK = (0.55, 1.0)
NOISE = (0.02, 0.2)


def glyphs(
    classes: int = 100, train_per_class: int = 60, test_per_class: int = 20, size: int = 28, seed: int = 0
) -> Dataset:
    """Return synthetic images of characters, from the cache if they were drawn before.

    Characters are drawn in four typefaces for training and in four others for testing, then rotated, sheared,
    stretched, shifted, made bolder or lighter, cluttered, blurred and covered with noise. An image depends only on its
    character, its number, its split, the size and the seed: a larger set contains the smaller ones.
    """
    _check("classes", classes, 1, LARGEST)
    _check("train_per_class", train_per_class, 1, 10_000)
    _check("test_per_class", test_per_class, 1, 10_000)
    _check("image_size", size, 8, 64)
    options = (VERSION, classes, train_per_class, test_per_class, size, seed)
    key = checksum(repr(options).encode(), 16)
    arrays = cached(f"glyphs-{key}", lambda: _draw_all(classes, train_per_class, test_per_class, size, seed))
    train, test = _samples(arrays["train"], classes), _samples(arrays["test"], classes)
    names = tuple(f"{character} {unicodedata.name(character).lower()}" for character in map(chr, arrays["characters"]))
    return Dataset("glyphs", train, test, names, Transform((0.35,), (0.25,), pad=2), synthetic=True)


def _check(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UserError(f"{option}={value} must be between {least:,} and {most:,} for glyphs")


def _samples(pixels: NDArray[np.uint8], classes: int) -> Samples:
    labels = torch.arange(classes).repeat_interleave(len(pixels) // classes)
    return Samples(Resident(torch.from_numpy(pixels)), labels)


def _draw_all(classes: int, train_per_class: int, test_per_class: int, size: int, seed: int) -> Arrays:
    characters = list(islice(alphabet(), max(classes, POOL)))
    arrays = {"characters": np.array([ord(character) for character in characters[:classes]])}
    for split, faces, count in (("train", TRAIN_FACES, train_per_class), ("test", TEST_FACES, test_per_class)):
        pool = torch.stack([_masters(character, faces) for character in characters[:POOL]])
        images = [_draw(c, _masters(c, faces), pool, split, count, size, seed) for c in characters[:classes]]
        arrays[split] = torch.cat(images).unsqueeze(3).numpy()
    return arrays


def _masters(character: str, faces: tuple[str, ...]) -> Tensor:
    return torch.from_numpy(np.stack([master(character, face) for face in faces])) / 255


def _draw(character: str, masters: Tensor, pool: Tensor, split: str, count: int, size: int, seed: int) -> Tensor:
    """Return images of one character, uint8 (count, size, size)."""
    random = Randomness(seed)
    draws = torch.rand(count, 1 + FRAGMENTS + DRAWS, generator=random.at(f"glyphs {split}", ord(character)))
    noise = torch.rand(count, size, size, generator=random.at(f"glyphs {split} noise", ord(character)))
    face, others, rest = draws.split([1, FRAGMENTS, DRAWS], dim=1)
    face, others = (face * len(masters)).long(), (others * len(pool)).long()
    return distort(masters[face.squeeze(1)], pool[others, face], rest, noise)


def alphabet() -> Iterator[str]:
    """Yield the characters in class order: scripts alternate, and no two are similar in any face at equal size.

    >>> from itertools import islice
    >>> "".join(islice(alphabet(), 12))
    'AͰЂ0$ႠЄ1+ႡͲ2'
    """
    chosen = np.zeros((len(FACES), LARGEST, SHAPE**2), dtype=np.float32)
    norms = np.zeros((len(FACES), LARGEST))
    count, remaining = 0, candidates()
    for limit in LIMITS:
        rest = []
        for character in remaining:
            # Integers below 2^24, so these products are exact: the choice does not depend on the order of summation.
            shape = _shapes(character).astype(np.float32)
            norm = np.sqrt((shape * shape).sum(1, dtype=np.float64))
            similar = (chosen[:, :count] @ shape[:, :, None]).squeeze(2) >= limit * norm[:, None] * norms[:, :count]
            if similar.any() or not norm.all():
                rest.append(character)
                continue
            chosen[:, count], norms[:, count] = shape, norm
            count += 1
            yield character
            if count == LARGEST:
                return
        remaining = rest


def candidates() -> list[str]:
    """Return the letters, numbers and symbols that all faces have: groups alternate, plain forms first."""
    shared = map(chr, set.intersection(*map(_covered, FACES)))
    ordered = sorted(shared, key=lambda character: (unicodedata.decomposition(character) != "", character))
    turns = zip_longest(*([c for c in ordered if _group(c) == group] for group in GROUPS), fillvalue="")
    return [character for character in chain.from_iterable(turns) if character]


@cache
def _group(character: str) -> str | None:
    kind = unicodedata.category(character)
    if kind in ("Lm", "Sk"):
        return None
    return unicodedata.name(character).split()[0] if kind[0] == "L" else kind[0]


@cache
def master(character: str, face: str) -> NDArray[np.uint8]:
    """Return the character as a bitmap of 0-255, (SIDE, SIDE): centred, its longer side filling the bitmap."""
    left, top, right, bottom = map(int, _font(face).getbbox(character))
    ink = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(ink).text((-left, -top), character, fill=255, font=_font(face))
    box = ink.getbbox()
    if box is None:
        return np.zeros((SIDE, SIDE), dtype=np.uint8)
    ink = ink.crop(box)
    scale = SIDE / max(ink.size)
    ink = ink.resize([max(1, round(side * scale)) for side in ink.size], Image.Resampling.BILINEAR)
    square = Image.new("L", (SIDE, SIDE))
    square.paste(ink, ((SIDE - ink.width) // 2, (SIDE - ink.height) // 2))
    return np.array(square)


@cache
def _shapes(character: str) -> NDArray[np.uint8]:
    """Return a coarse bitmap of the character in each face, (faces, SHAPE * SHAPE)."""
    return np.stack([np.asarray(Image.fromarray(master(character, f)).reduce(SIDE // SHAPE)).ravel() for f in FACES])


def _path(face: str) -> Path:
    import matplotlib  # here, because it takes a third of a second

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{face}.ttf"


def _covered(face: str) -> set[int]:
    from matplotlib.ft2font import FT2Font

    return set(FT2Font(str(_path(face))).get_charmap())


@cache
def _font(face: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(_path(face)), 2 * SIDE, layout_engine=ImageFont.Layout.BASIC)


def distort(glyphs: Tensor, others: Tensor, draws: Tensor, noise: Tensor) -> Tensor:
    """Return distorted images, uint8 (B, S, S), of glyphs (B, M, M) with fragments of others (B, FRAGMENTS, M, M).

    `draws` (B, DRAWS) and `noise` (B, S, S) are uniform in [0, 1); an image depends only on its own rows of them.
    """
    size, unit = noise.shape[-1], iter(draws.unbind(1))
    ink = _warp(glyphs, _place(unit, _between(unit, SHIFT), _between(unit, SHIFT)), size)
    ink = _reweigh(ink, _between(unit, WEIGHT))
    for other in others.unbind(1):
        ink = torch.maximum(ink, _warp(other, _beside(unit), size))
    ink = torch.maximum(ink, _stroke(unit, size))
    ink = _blur(F.avg_pool2d(ink[:, None], 2)[:, 0], _between(unit, BLUR))
    paper, contrast = _column(_between(unit, PAPER)), _column(_between(unit, INK))
    grey = paper + ink * contrast * (1 - paper) + _column(_between(unit, NOISE)) * (noise - 0.5)
    return grey.clamp(0, 1).mul(255).round().to(torch.uint8)


def _between(unit: Iterator[Tensor], bounds: tuple[float, float]) -> Tensor:
    low, high = bounds
    return low + (high - low) * next(unit)


def _column(values: Tensor) -> Tensor:
    return values[:, None, None]


def _beside(unit: Iterator[Tensor]) -> Tensor:
    """Return maps that move a fragment to the edge."""
    direction, distance = _between(unit, (-pi, pi)), _between(unit, DISTANCE)
    return _place(unit, distance * direction.cos(), distance * direction.sin())


def _place(unit: Iterator[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Return maps from image to glyph (B, 2, 3) that rotate, shear, stretch and scale it, with its centre at (x, y)."""
    angle, scale = _between(unit, ANGLE) * pi / 180, _between(unit, SCALE)
    stretch, shear = _between(unit, STRETCH), _between(unit, SHEAR)
    cos, sin = angle.cos() / scale, angle.sin() / scale
    a, b = cos * stretch, sin * stretch
    c, d = -sin / stretch + shear * a, cos / stretch + shear * b
    return torch.stack([a, b, -(a * x + b * y), c, d, -(c * x + d * y)], 1).view(-1, 2, 3)


def _warp(glyphs: Tensor, maps: Tensor, size: int) -> Tensor:
    """Return the glyphs under these affine maps, at twice the size."""
    across, down, offset = maps[..., None, None].unbind(2)
    position = _positions(size)
    grid = across * position + (down * position[:, None] + offset)
    return F.grid_sample(glyphs[:, None], grid.permute(0, 2, 3, 1), align_corners=False)[:, 0]


def _positions(size: int) -> Tensor:
    """Return the pixels' centres along one side, from -1 to 1, at twice the size."""
    return (torch.arange(2 * size) + 0.5) / size - 1


def _reweigh(ink: Tensor, weight: Tensor) -> Tensor:
    """Make strokes bolder where the weight is above zero, lighter where it is below."""
    bold, light = _widest(ink), -_widest(-ink)
    return torch.lerp(ink, torch.where(_column(weight) > 0, bold, light), _column(weight.abs()))


def _widest(ink: Tensor) -> Tensor:
    """Return the maximum of each pixel and its eight neighbours; with slices, twenty times as fast as max-pooling."""
    ink = F.pad(ink, (1, 1, 1, 1))
    ink = torch.maximum(torch.maximum(ink[:, :-2], ink[:, 1:-1]), ink[:, 2:])
    return torch.maximum(torch.maximum(ink[:, :, :-2], ink[:, :, 1:-1]), ink[:, :, 2:])


def _stroke(unit: Iterator[Tensor], size: int) -> Tensor:
    """Return a straight line across the image."""
    angle, offset, width = _between(unit, (0, pi)), _between(unit, (-0.9, 0.9)), _between(unit, (-1, 1.5))
    position = _positions(size)
    distance = _column(angle.cos()) * position + _column(angle.sin()) * position[:, None] - _column(offset)
    return (_column(width) + 0.5 - distance.abs() * size).clamp(0, 1)


def _blur(ink: Tensor, amount: Tensor) -> Tensor:
    """Return a mixture of the image and its binomial 3x3 blur."""
    soft = F.pad(ink, (1, 1, 1, 1))
    soft = (soft[:, :-2] + 2 * soft[:, 1:-1] + soft[:, 2:]) / 4
    soft = (soft[:, :, :-2] + 2 * soft[:, :, 1:-1] + soft[:, :, 2:]) / 4
    return torch.lerp(ink, soft, _column(amount))
