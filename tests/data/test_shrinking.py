"""Smaller copies of encoded images."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ssil.data.decode import UnreadableError, decode_image
from ssil.data.image_index import Files, ImageIndex, Preprocessing
from ssil.data.shrinking import shrink
from ssil.data.store.writer import prepare


def encoded(width: int, height: int, kind: str = "JPEG", turned: bool = False) -> bytes:
    """Black above and white below; if `turned`, stored lying on its side."""
    pixels = np.zeros((height, width), dtype=np.uint8)
    pixels[height // 2 :] = 255
    image, exif, file = Image.fromarray(pixels).convert("RGB"), Image.Exif(), BytesIO()
    if turned:
        image, exif[0x0112] = image.transpose(Image.Transpose.ROTATE_90), 6
    image.save(file, kind, quality=95, exif=exif)
    return file.getvalue()


def kind(data: bytes | memoryview) -> str | None:
    with Image.open(BytesIO(data)) as image:
        return image.format


@pytest.mark.parametrize(
    ("size", "short", "expected"),
    [
        ((300, 200), 100, (150, 100)),
        ((200, 301), 100, (100, 150)),
        ((1000, 101), 100, (990, 100)),
        ((50, 40), 1, (1, 1)),
    ],
)
def test_the_short_side(size: tuple[int, int], short: int, expected: tuple[int, int]) -> None:
    height, width, _ = decode_image(shrink(encoded(*size), short)).shape
    assert (width, height) == expected


def test_no_larger_images_stay_as_they_are() -> None:
    for data in (encoded(100, 300), encoded(40, 30, "PNG"), encoded(100, 300, turned=True)):
        assert shrink(data, 100) is data


@pytest.mark.parametrize("turned", [False, True])
def test_it_stands_upright(turned: bool) -> None:
    pixels = decode_image(shrink(encoded(80, 120, turned=turned), 40))
    assert pixels.shape == (60, 40, 3)
    assert pixels[:25].max() < 30
    assert pixels[35:].min() > 225


def test_how_it_is_encoded() -> None:
    data = encoded(80, 120)
    assert kind(shrink(data, 40)) == "JPEG"
    assert kind(shrink(data, 40, quality=100)) == "PNG"
    grey = shrink(data, 40, channels=1)
    assert kind(grey) == "PNG"
    with Image.open(BytesIO(grey)) as image:
        assert image.mode == "L"
    assert len(shrink(encoded(500, 400), 300, quality=30)) < len(shrink(encoded(500, 400), 300, quality=99))


def test_without_loss_it_is_pillows_antialiased_image() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (90, 60, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    expected = Image.fromarray(noise).resize((20, 30), Image.Resampling.BILINEAR)
    assert np.array_equal(decode_image(shrink(file.getvalue(), 20, quality=100)), np.asarray(expected))


def test_a_damaged_one_is_refused() -> None:
    with pytest.raises(UnreadableError):
        shrink(encoded(300, 200)[:400], 100)


def test_a_store_has_the_small_ones(tmp_path: Path) -> None:
    for number, size in enumerate([(60, 90), (20, 30)]):
        (tmp_path / f"{number}.jpg").write_bytes(encoded(*size))
    files = Files(tmp_path, ("0.jpg", "1.jpg"))
    store = prepare(
        ImageIndex("two", files, np.zeros(2, dtype=np.int64), ("all",), Preprocessing(16)),
        tmp_path / "s",
        short_side=30,
    )
    assert (store.source.columns.width.tolist(), store.source.columns.height.tolist()) == ([30, 20], [45, 30])
    assert store.source.read(1) == files.read(1)
    again = prepare(store.image_index(), tmp_path / "smaller", short_side=10)
    assert (again.source.columns.width.tolist(), again.source.columns.height.tolist()) == ([10, 10], [15, 15])
