"""Drawings of fruit, each a little different: a data set of one's own that a person can look at."""

import random
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

COLOURS = {
    "apple": (200, 40, 45),
    "banana": (240, 205, 50),
    "orange": (240, 140, 30),
    "pear": (150, 185, 60),
    "plum": (95, 50, 130),
    "lime": (70, 160, 60),
}


def drawing(name: str, number: int, size: int = 160) -> Image.Image:
    """A fruit at a place, in a size and a shade of its own, on a table or a cloth."""
    chance = random.Random(f"{name} {number}")
    ground = tuple(chance.randint(150, 235) for _ in range(3))
    image = Image.new("RGB", (size, size), ground)
    pen = ImageDraw.Draw(image)
    for _ in range(6):
        shade = tuple(max(0, value - chance.randint(5, 30)) for value in ground)
        height = chance.randint(0, size)
        pen.line((0, height, size, height + chance.randint(-20, 20)), fill=shade, width=chance.randint(1, 4))
    fruit = Image.new("RGBA", (size, size))
    _draw(ImageDraw.Draw(fruit), name, _shade(COLOURS[name], chance), size)
    scale = chance.uniform(0.55, 0.95)
    fruit = fruit.rotate(chance.uniform(-25, 25)).resize((int(size * scale),) * 2)
    room = size - fruit.width
    image.paste(fruit, (chance.randint(0, room), chance.randint(0, room)), fruit)
    return image.filter(ImageFilter.GaussianBlur(0.6))


def _shade(colour: tuple[int, int, int], chance: random.Random) -> tuple[int, int, int]:
    red, green, blue = (min(255, max(0, value + chance.randint(-18, 18))) for value in colour)
    return red, green, blue


def _draw(pen: ImageDraw.ImageDraw, name: str, colour: tuple[int, int, int], size: int) -> None:
    def box(left: float, top: float, right: float, bottom: float) -> tuple[float, ...]:
        return tuple(size * value for value in (left, top, right, bottom))

    light = tuple(min(255, value + 50) for value in colour)
    if name == "banana":
        pen.arc(box(0.1, -0.25, 0.9, 0.75), 15, 165, fill=colour, width=size // 5)
        pen.arc(box(0.16, -0.2, 0.84, 0.62), 30, 150, fill=light, width=size // 40)
        return
    if name == "pear":
        pen.ellipse(box(0.33, 0.15, 0.67, 0.6), fill=colour)
    shape = (
        (0.25, 0.22, 0.75, 0.88)
        if name == "plum"
        else (0.18, 0.3, 0.82, 0.7)
        if name == "lime"
        else (0.2, 0.25, 0.8, 0.85)
    )
    pen.ellipse(box(*shape), fill=colour)
    pen.ellipse(box(0.32, 0.4, 0.42, 0.52), fill=light)
    if name == "orange":
        for place in range(24):
            x, y = 0.3 + 0.4 * ((place * 7) % 24) / 24, 0.35 + 0.4 * place / 24
            pen.point((size * x, size * y), fill=light)
    if name in {"apple", "pear"}:
        pen.line(box(0.5, 0.08, 0.5, 0.3), fill=(90, 60, 30), width=size // 30)
        pen.ellipse(box(0.52, 0.1, 0.7, 0.2), fill=(60, 140, 60))


def jpeg(name: str, number: int) -> bytes:
    """A drawing as a JPEG."""
    file = BytesIO()
    drawing(name, number).save(file, "JPEG", quality=88)
    return file.getvalue()


def folder(root: Path, names: Sequence[str], count: int, first: int = 0) -> Path:
    """Drawings in one sub-folder per fruit."""
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)
        for number in range(first, first + count):
            (root / name / f"{name}-{number}.jpg").write_bytes(jpeg(name, number))
    return root
