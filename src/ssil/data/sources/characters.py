"""Common Chinese characters, drawn in the typefaces of the system: many classes with many images each.

The images are drawn, not photographed: results on them say nothing about photographs. Training and test images are of
different designs; a typeface and what is derived from it count as one design, with all its weights and regions.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import pi
from pathlib import Path
from typing import NamedTuple

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


class Design(NamedTuple):
    """Typefaces of one design: how their families' names begin, the Debian package of one, and their side."""

    families: tuple[str, ...]
    package: str
    test: bool = False


DESIGNS = (
    Design(("Noto Sans CJK", "Source Han Sans"), "fonts-noto-cjk"),
    Design(("Noto Serif CJK", "Source Han Serif"), "fonts-noto-cjk"),
    Design(("LXGW WenKai", "Klee One"), "fonts-lxgw-wenkai"),
    Design(("WenQuanYi Zen Hei",), "fonts-wqy-zenhei"),
    Design(("KouzanBrushFont", "AoyagiKouzanFont", "AoyagiSosekiFont"), "fonts-kouzan-mouhitsu"),
    Design(("AR PL UMing",), "fonts-arphic-uming", test=True),
    Design(("AR PL UKai",), "fonts-arphic-ukai", test=True),
    Design(("WenQuanYi Micro Hei", "Droid Sans Fallback"), "fonts-wqy-microhei", test=True),
)
"""The sides are fixed, so that more typefaces on a system never bring a design to the other side."""
COPIES = ("Mono", "Sharp", "Sousyo")
"""Words in the names of families that are left out: the same characters again, and a cursive script."""
LEAST = (3, 1)
"""The numbers of designs to train and to test on without which there is no data set."""

VERSION = 1  # to be raised with any change of the pixels
SIDE = 64  # of the bitmap that images are made from
# Each range is (from, to) of a uniform draw; angles in degrees, lengths in half image sides.
ANGLE = (-6.0, 6.0)
SCALE = (0.8, 0.95)
STRETCH = (0.93, 1.07)
SHEAR = (-0.1, 0.1)
SHIFT = (-0.08, 0.08)
DRAWS = 6

INFOS = (
    DatasetInfo(
        "characters",
        "Chinese characters in the typefaces of this system, tested in other designs than trained in",
        "1,000, or up to 1,711",
        "32x32 grey, or as you say",
        "drawn when first used; needs typefaces, such as those of Debian's fonts-noto-cjk",
    ),
)


class Face(NamedTuple):
    """A typeface: its file, its number in the file, its printed name, and its design's place in `DESIGNS`."""

    path: Path
    number: int
    name: str
    design: int


def characters(
    classes: int = 1000, train_per_class: int = 100, test_per_class: int = 18, size: int = 32, seed: int = 0
) -> Dataset:
    """Return images of common characters, from the cache if they were drawn before.

    Designs take turns, and the faces of a design. Each image is rotated, stretched, sheared and shifted a little, by
    draws that depend on its character, its number, its split and the seed: a larger set contains the smaller ones.

    Raises:
        UserError: The system lacks typefaces, or an option is out of range.
    """
    alphabet = common_characters()
    for option, value, most in (
        ("classes", classes, len(alphabet)),
        ("train_per_class", train_per_class, 10_000),
        ("test_per_class", test_per_class, 10_000),
    ):
        _check(option, value, 1, most)
    _check("image_size", size, 8, SIDE)
    faces = find_faces(alphabet[:classes])
    files = sorted({face.path for face in faces})
    options = (VERSION, classes, train_per_class, test_per_class, size, seed, DESIGNS, [face[1:] for face in faces])
    key = checksum(b"".join([repr(options).encode(), *(sha256(file.read_bytes()).digest() for file in files)]), 16)
    counts = {"train": train_per_class, "test": test_per_class}
    arrays = cached(f"characters-{key}", lambda: _draw_all(alphabet[:classes], faces, counts, size, seed))
    train, test = (_samples(arrays[split], classes) for split in counts)
    names = tuple(f"{character} {ord(character):x}" for character in alphabet[:classes])
    described = tuple(f"{face.name} ({'test' if DESIGNS[face.design].test else 'training'})" for face in faces)
    return Dataset("characters", train, test, names, Transform((0.24,), (0.36,), pad=2), True, sources=described)


def _check(option: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UserError(f"{option}={value} must be between {least:,} and {most:,} for characters")


def _samples(pixels: NDArray[np.uint8], classes: int) -> Samples:
    labels = torch.arange(classes).repeat_interleave(len(pixels) // classes)
    return Samples(Resident(torch.from_numpy(pixels)), labels)


def common_characters() -> list[str]:
    """Return the characters that are common in Chinese and in Japanese, in the order of a checksum.

    They are those of the first level of both GB 2312 and JIS X 0208.

    >>> len(common_characters()), "".join(common_characters()[:8])
    (1711, '座吾道壕痢稼任北')
    """
    both = {*_first_level("gb2312", range(16, 56))} & {*_first_level("euc_jp", range(16, 48))}
    return sorted(both, key=lambda character: sha256(character.encode()).digest())


def _first_level(codec: str, rows: range) -> Iterator[str]:
    """Yield the characters in these rows of a code table of 94 x 94 places."""
    for row in rows:
        for place in range(1, 95):
            try:
                yield bytes((160 + row, 160 + place)).decode(codec)
            except UnicodeDecodeError:  # the last places of a level are empty
                return


def find_faces(alphabet: Sequence[str]) -> list[Face]:
    """Return the typefaces of known designs that have all these characters, ordered by design and name.

    Raises:
        UserError: There are too few designs to train or to test on.
    """
    from matplotlib.font_manager import findSystemFonts  # takes a third of a second

    wanted = {ord(character) for character in alphabet}
    found = [face for file in findSystemFonts() for face in _faces(Path(file), wanted)]
    faces = list(
        {(face.design, face.name): face for face in sorted(found, key=lambda face: (face[2:], face[:2]))}.values()
    )
    for test, least in zip((False, True), LEAST, strict=True):
        designs = {face.design for face in faces if DESIGNS[face.design].test == test}
        if len(designs) < least:
            part = "test" if test else "train"
            packages = " ".join(dict.fromkeys(design.package for design in DESIGNS if design.test == test))
            raise UserError(
                f"dataset: characters needs {least} designs of typefaces to {part} on, this system has {len(designs)}; "
                f"install some of these Debian packages or the same typefaces: {packages}"
            )
    return faces


def _faces(file: Path, wanted: set[int]) -> Iterator[Face]:
    """Yield the typefaces of a file that are of a known design and have the wanted characters."""
    from fontTools.ttLib import TTCollection, TTFont, TTLibError

    collection = file.suffix.lower() == ".ttc"
    try:
        with TTCollection(file, lazy=True) if collection else TTFont(file, lazy=True) as opened:
            for number, font in enumerate(opened.fonts if collection else [opened]):
                names = font["name"]
                family = str(names.getDebugName(16) or names.getDebugName(1))
                design = _design(family)
                if design is not None and wanted <= {*(font.getBestCmap() or {})}:
                    yield Face(file, number, f"{family} {names.getDebugName(17) or names.getDebugName(2)}", design)
    except (OSError, KeyError, TTLibError):  # not a typeface, or a damaged one
        return


def _design(family: str) -> int | None:
    """Return the place of a family's design in `DESIGNS`; None if it is not known or the family only a copy."""
    if any(word in family for word in COPIES):
        return None
    return next((place for place, known in enumerate(DESIGNS) if family.startswith(known.families)), None)


def _draw_all(alphabet: Sequence[str], faces: Sequence[Face], counts: dict[str, int], size: int, seed: int) -> Arrays:
    arrays: Arrays = {}
    for split, count in counts.items():
        of_designs = [
            [face for face in faces if face.design == place]
            for place, design in enumerate(DESIGNS)
            if design.test == (split == "test")
        ]
        chosen = _turns([group for group in of_designs if group], count)
        fonts = {face: _font(face) for face in dict.fromkeys(chosen)}
        images = [_draw(character, [fonts[face] for face in chosen], split, size, seed) for character in alphabet]
        arrays[split] = torch.cat(images).unsqueeze(3).numpy()
    return arrays


def _turns(designs: Sequence[Sequence[Face]], count: int) -> list[Face]:
    """Return the face of each image: designs take turns, and within each its faces."""
    return [
        group[number // len(designs) % len(group)]
        for number in range(count)
        for group in (designs[number % len(designs)],)
    ]


def _font(face: Face) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(face.path), SIDE, index=face.number, layout_engine=ImageFont.Layout.BASIC)


def _draw(character: str, fonts: Sequence[ImageFont.FreeTypeFont], split: str, size: int, seed: int) -> Tensor:
    """Return one image of the character in each of the fonts, uint8 (fonts, size, size)."""
    bitmaps = {font: bitmap(character, font) for font in dict.fromkeys(fonts)}
    glyphs = torch.from_numpy(np.stack([bitmaps[font] for font in fonts])) / 255
    draws = torch.rand(len(fonts), DRAWS, generator=Randomness(seed).at(f"characters {split}", ord(character)))
    grid = F.affine_grid(affine_maps(draws), [len(fonts), 1, 2 * size, 2 * size], align_corners=False)
    large = F.grid_sample(glyphs[:, None], grid, align_corners=False)
    return F.avg_pool2d(large, 2)[:, 0].clamp(0, 1).mul(255).round().to(torch.uint8)


def bitmap(character: str, font: ImageFont.FreeTypeFont) -> NDArray[np.uint8]:
    """Return the character as a bitmap of 0-255, (SIDE, SIDE): centred, its longer side filling the bitmap."""
    left, top, right, bottom = map(int, font.getbbox(character))
    ink = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    ImageDraw.Draw(ink).text((-left, -top), character, fill=255, font=font)
    ink = ink.crop(ink.getbbox())
    scale = SIDE / max(ink.size)
    ink = ink.resize([max(1, round(side * scale)) for side in ink.size], Image.Resampling.BILINEAR)
    square = Image.new("L", (SIDE, SIDE))
    square.paste(ink, ((SIDE - ink.width) // 2, (SIDE - ink.height) // 2))
    return np.array(square)


def affine_maps(draws: Tensor) -> Tensor:
    """Return maps from image to bitmap (B, 2, 3) that turn, stretch, shear and shift by uniform draws (B, DRAWS)."""
    ranges = (ANGLE, SCALE, STRETCH, SHEAR, SHIFT, SHIFT)
    angle, scale, stretch, shear, x, y = (
        low + (high - low) * draw for (low, high), draw in zip(ranges, draws.unbind(1), strict=True)
    )
    cos, sin = (angle * pi / 180).cos() / scale, (angle * pi / 180).sin() / scale
    across = torch.stack([cos * stretch, sin * stretch, x], 1)
    down = torch.stack([-sin / stretch + shear * cos, cos / stretch + shear * sin, y], 1)
    return torch.stack([across, down], 1)
