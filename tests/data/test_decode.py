import os
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from ssil.data import decode
from ssil.data.decode import ORIENTATION, Box, Pixels, UnreadableError, decode_image, measure, resize, view


def scene(width: int = 90, height: int = 70, seed: int = 0, grain: int = 6) -> Image.Image:
    """Soft shapes in colour, different everywhere."""
    shape = (height // grain + 2, width // grain + 2, 3)
    noise = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


def encode(image: Image.Image, form: str = "jpeg", **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def by_pillow(data: bytes, mode: str = "RGB") -> Pixels:
    with Image.open(BytesIO(data)) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert(mode))


def seen(data: bytes | memoryview, box: Box, size: int = 32, channels: int = 3) -> Pixels:
    out = np.zeros((size, size, channels), np.uint8)
    view(data, box, out)
    return out


def resized(pixels: Pixels, box: Box, size: int = 32) -> Pixels:
    out = np.zeros((size, size, pixels.shape[2]), np.uint8)
    resize(pixels, box, out)
    return out


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


KINDS: dict[str, dict[str, Any]] = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "restarts": {"subsampling": 2, "restart_marker_rows": 1},
    "progressive": {"progressive": True},
    "optimised": {"optimize": True, "quality": 97},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_jpegs_are_what_pillow_sees(kind: str, mode: str) -> None:
    data = encode(scene().convert(mode), **KINDS[kind])
    assert measure(data) == (90, 70)
    assert np.array_equal(decode_image(data), by_pillow(data))
    assert decode_image(data, channels=1).shape == (70, 90, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shrink", [1, 2, 4, 8])
def test_lines_below_a_part_are_not_decoded(kind: str, shrink: int) -> None:
    data = encode(scene(75, 131), **KINDS[kind])
    header = decode._header(data)
    for bottom in range(1, 132):
        needed = -(-bottom // shrink)
        lines = decode._decode_lines(data, header, bottom, shrink, 3).copy()
        all_lines = decode._decode_lines(data, header._replace(frame=0), bottom, shrink, 3)
        assert np.array_equal(lines[:needed], all_lines[:needed]), bottom
        assert kind == "progressive" or bottom > 112 or len(lines) < len(all_lines)


@st.composite
def boxes(draw: st.DrawFn, width: int, height: int) -> Box:
    wide, high = draw(st.integers(1, width)), draw(st.integers(1, height))
    return Box(draw(st.integers(0, width - wide)), draw(st.integers(0, height - high)), wide, high)


@settings(max_examples=60, deadline=None)
@given(box=boxes(90, 70), kind=st.sampled_from(list(KINDS)), channels=st.sampled_from([1, 3]))
def test_a_view_is_a_part_of_the_whole(box: Box, kind: str, channels: int) -> None:
    data = encode(scene(), **KINDS[kind])
    assert np.array_equal(seen(data, box, 64, channels), resized(decode_image(data, channels), box, 64))


def test_resizing_is_bilinear_with_antialiasing() -> None:
    pixels, box = np.asarray(scene(200, 170)), Box(13, 21, 150, 120)
    part = Image.fromarray(pixels).crop((13, 21, 163, 141))
    for size in (16, 150, 224):
        expected = np.asarray(part.resize((size, size), Image.Resampling.BILINEAR)).astype(int)
        assert np.abs(resized(pixels.copy(), box, size) - expected).max() <= 1


@pytest.mark.parametrize("form", ["jpeg", "png", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_camera_orientation_is_honoured(form: str, orientation: int) -> None:
    data = encode(scene(), form, exif=turned(orientation))
    upright = by_pillow(data)
    assert measure(data) == upright.shape[1::-1] == ((90, 70) if orientation < 5 else (70, 90))
    assert np.array_equal(decode_image(data), upright)
    box = Box(9, 17, 40, 35)
    assert np.array_equal(seen(data, box), resized(upright.copy(), box))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_camera_orientation_is_honoured_at_a_fraction_of_the_size(orientation: int) -> None:
    data, box = encode(scene(grain=30), exif=turned(orientation), quality=95), Box(6, 8, 50, 60)
    shrunk = seen(data, box, 16).astype(int)
    assert np.abs(shrunk - resized(by_pillow(data).copy(), box, 16)).mean() < 3


@pytest.mark.parametrize("exif", [b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\xff", bytes(30), turned(9).tobytes()])
def test_damaged_camera_notes_count_for_nothing(exif: bytes) -> None:
    image = scene()
    assert np.array_equal(decode_image(encode(image, exif=exif)), decode_image(encode(image)))


@pytest.mark.parametrize(
    ("mode", "form", "colour", "expected"),
    [
        ("L", "png", 77, (77, 77, 77)),
        ("RGBA", "png", (10, 20, 30, 255), (10, 20, 30)),
        ("RGBA", "png", (10, 20, 30, 0), (255, 255, 255)),
        ("RGBA", "webp", (10, 20, 30, 0), (255, 255, 255)),
        ("LA", "png", (77, 0), (255, 255, 255)),
        ("1", "png", 1, (255, 255, 255)),
        ("I;16", "png", 77 * 256, (77, 77, 77)),
        ("I;16", "tiff", 77 * 256, (77, 77, 77)),
        ("CMYK", "tiff", (0, 255, 255, 0), (255, 0, 0)),
        ("CMYK", "jpeg", (0, 255, 255, 0), (255, 0, 0)),
        ("P", "gif", 0, (0, 0, 0)),
    ],
)
def test_modes(mode: str, form: str, colour: int | tuple[int, ...], expected: tuple[int, ...]) -> None:
    data = encode(Image.new(mode, (9, 8), colour), form)
    pixels = decode_image(data)
    assert pixels.shape == (8, 9, 3)
    assert np.abs(pixels.astype(int) - expected).max() <= 1
    assert np.array_equal(seen(data, Box(0, 0, 8, 8), 8), pixels[:, :8])
    assert np.array_equal(
        decode_image(data, channels=1), by_pillow(encode(Image.fromarray(pixels), "png"), "L")[..., None]
    )


def test_palettes_with_transparency() -> None:
    image = Image.new("RGB", (8, 8), (200, 100, 50))
    image.paste((0, 0, 0), (0, 0, 4, 8))
    pixels = decode_image(encode(image.quantize(4), "gif", transparency=image.quantize(4).getpixel((0, 0))))
    assert (pixels[:, :4] == 255).all()
    assert (pixels[:, 4:] == (200, 100, 50)).all()


def test_a_large_part_is_decoded_at_a_fraction_of_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    image = scene(640, 480)
    data, shapes = encode(image, quality=95), []
    monkeypatch.setattr(decode, "_resize", lambda part, out, _: shapes.append(part.shape[:2]))
    for side in (63, 64, 127, 128, 256, 400):
        seen(data, Box(8, 16, side, side))
    assert shapes == [(63, 63), (32, 32), (64, 64), (32, 32), (32, 32), (50, 50)]


@pytest.mark.parametrize("times", [2, 4, 8])
def test_a_fraction_looks_like_the_whole(times: int) -> None:
    image = scene(640, 480)
    data, box = encode(image, quality=95), Box(8, 16, 48 * times, 48 * times)
    part = image.crop((box.left, box.top, box.left + box.width, box.top + box.height))
    expected = np.asarray(part.resize((48, 48), Image.Resampling.BOX)).astype(int)
    assert np.abs(seen(data, box, 48) - expected).mean() < 3


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "gif", "bmp", "tiff"])
def test_truncated_images_are_refused(form: str) -> None:
    data = encode(scene(40, 30), form)
    for part in (0.02, 0.3, 0.6, 0.9):
        with pytest.raises(UnreadableError):
            decode_image(data[: int(part * len(data))])


def test_a_png_with_a_broken_stream_is_refused() -> None:
    data = encode(scene(40, 30), "png")
    with pytest.raises(UnreadableError, match="broken data stream"):
        decode_image(data[:-20] + bytes(20))


def test_a_jpeg_is_whole_to_its_last_byte() -> None:
    data = encode(scene(40, 30))
    for end in range(1, len(data)):
        with pytest.raises(UnreadableError) as caught:
            decode_image(data[:end])
        assert "\n" not in str(caught.value)
    with pytest.raises(UnreadableError, match=r"^truncated: .*premature end"):
        decode_image(data[:-100] + b"\xff\xd9")


def test_harmless_flaws_are_left_to_pillow() -> None:
    data = encode(scene())
    flawed = data[:-2] + bytes(50) + data[-2:] + b"more"
    assert np.array_equal(decode_image(flawed), decode_image(data))
    assert np.array_equal(seen(flawed, Box(5, 5, 60, 60)), seen(data, Box(5, 5, 60, 60)))


def png_header(width: int, height: int) -> bytes:
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n\0\0\0\r" + chunk + struct.pack(">I", zlib.crc32(chunk)) + b"\0\0\0\0IDAT"


def jpeg_header(width: int, height: int) -> bytes:
    data = encode(Image.new("L", (width, 8)))
    return decode._with_height(data, decode._header(data).frame, height).tobytes()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"text", "not an image"),
        (bytes(1000), "not an image"),
        (b"\xff\xd8", "not an image"),
        (png_header(30_000, 2_000), "30,000 x 2,000 pixels: a side above 16,384"),
        (png_header(16_000, 12_000), "more than 89,478,485 pixels"),
        (jpeg_header(2_000, 30_000), "2,000 x 30,000 pixels: a side above 16,384"),
        (jpeg_header(9_000, 10_000), "9,000 x 10,000 pixels: more than 89,478,485"),
    ],
    ids=range(8),
)
def test_reasons(data: bytes, reason: str) -> None:
    for read in (measure, decode_image):
        with pytest.raises(UnreadableError) as caught:
            read(data)
        assert str(caught.value) == reason


def test_a_header_is_enough_to_measure() -> None:
    data = encode(scene(), exif=turned(6))
    assert measure(data[: len(data) // 2]) == (70, 90)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["jpeg", "png", "webp", "gif"]),
    st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damage_is_refused_or_seen_through(form: str, damage: list[tuple[float, int]]) -> None:
    data = bytearray(encode(scene(40, 30), form, **({"exif": turned(6)} if form == "jpeg" else {})))
    for place, byte in damage:
        data[int(place * len(data))] = byte
    with suppress(UnreadableError):
        width, height = measure(bytes(data))
        assert decode_image(bytes(data)).shape == (height, width, 3)
        seen(bytes(data), Box(0, 0, width, height), 8)


def test_threads_do_not_share_memory() -> None:
    images = [encode(scene(90 + 8 * k, 70, seed=k)) for k in range(8)] * 5
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda data: seen(data, Box(3, 4, 60, 60)), images))
    assert all(np.array_equal(a, seen(data, Box(3, 4, 60, 60))) for a, data in zip(together, images, strict=True))


def test_memory_of_other_owners_is_read_in_place() -> None:
    data = encode(scene(), exif=turned(8))
    shared = memoryview(b"before" + data + b"after")[6 : 6 + len(data)]
    assert measure(shared) == (70, 90)
    assert np.array_equal(decode_image(shared), decode_image(data))
    assert np.array_equal(seen(shared, Box(1, 2, 30, 30)), seen(data, Box(1, 2, 30, 30)))


def test_photographs() -> None:
    folder = Path(os.environ.get("SSIL_DATA", "")) / "photos"
    if not folder.is_dir():
        pytest.skip("photos is not in $SSIL_DATA")
    for number, path in enumerate(sorted(folder.glob("*/*"))[::8]):
        data = path.read_bytes()
        pixels = decode_image(data)
        assert np.array_equal(pixels, by_pillow(data))
        width, height = measure(data)
        box = Box(number, 2 * number, width // 3, height // 2)
        assert np.array_equal(seen(data, box, 448), resized(pixels, box, 448))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_tiffs_are_turned_once(orientation: int) -> None:
    stored = np.zeros((20, 30, 3), dtype=np.uint8)
    stored[:5, :7], stored[12:, 20:] = (255, 0, 0), (0, 255, 0)
    exif, file = Image.Exif(), BytesIO()
    exif[0x0112] = orientation
    Image.fromarray(stored).save(file, "TIFF", exif=exif)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(file)).convert("RGB"))
    assert np.array_equal(decode_image(file.getvalue()), expected)
    assert measure(file.getvalue()) == expected.shape[1::-1]


def test_programs_are_no_images() -> None:
    file = BytesIO()
    Image.new("RGB", (10, 10)).save(file, "EPS")
    with pytest.raises(UnreadableError, match="not an image"):
        measure(file.getvalue())


def test_a_jpeg_with_a_wrong_code_is_damaged() -> None:
    file = BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8)
    Image.fromarray(noise).save(file, "JPEG", quality=95)
    data = bytearray(file.getvalue())
    data[-42:-2] = b"\xff\x00" * 20  # ones only: no code begins so
    with pytest.raises(UnreadableError, match="damaged"):
        decode_image(bytes(data))


def test_memory_that_runs_out_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    file = BytesIO()
    Image.new("RGB", (10, 10)).save(file, "PNG")
    monkeypatch.setattr(Image, "open", refuse)
    with pytest.raises(MemoryError):
        decode_image(file.getvalue())
