"""The characters of the synthetic glyphs: which ones, in which order, and their bitmaps in eight DejaVu faces."""

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

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
