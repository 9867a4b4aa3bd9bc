"""HEIC, as phones make it: read with pillow-heif; without it, one line says what to install."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ssil.data import decode, heic
from ssil.data.crop_boxes import centre_box
from ssil.data.decode import ORIENTATION, MissingDecoderError, UnreadableError, decode_image, measure, view
from ssil.data.file_validation import validate_files
from ssil.data.image_index import Files

HEADER = b"\0\0\0\x18ftypheic" + b"\0" * 99


@pytest.fixture
def without_heif(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "reads_heic", lambda: False)


def photograph(turned: int = 1) -> bytes:
    pillow_heif = pytest.importorskip("pillow_heif", reason="pillow-heif is not installed (extra heic)")
    pillow_heif.register_heif_opener()
    exif = Image.Exif()
    exif[ORIENTATION] = turned
    corner = np.zeros((48, 64, 3), np.uint8)
    corner[:24, :32] = 200, 40, 40
    file, image = BytesIO(), Image.fromarray(corner)

    image.save(file, "HEIF", quality=90, exif=exif.tobytes())  # turned in the container too, as by a phone
    return file.getvalue()


@pytest.mark.parametrize("turned", [1, 3, 6, 8])
def test_a_photograph_is_read_upright(turned: int) -> None:
    data = photograph(turned)
    assert heic.is_heic(data)
    assert measure(data) == ((64, 48) if turned in (1, 3) else (48, 64))
    assert decode_image(data).shape[1::-1] == measure(data)
    view(data, centre_box(*measure(data), fraction=1.0), out := np.zeros((16, 16, 3), np.uint8))
    corner = {1: out[3, 3], 3: out[-4, -4], 6: out[3, -4], 8: out[-4, 3]}[turned]
    assert corner[0] > 150
    assert (out.reshape(-1, 3)[:, 0] > 100).mean() < 0.5


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_half_a_photograph_is_refused(kept: float) -> None:
    data = photograph()
    with pytest.raises(UnreadableError):
        decode_image(data[: int(kept * len(data))])


def test_the_missing_package_is_named(without_heif: None) -> None:
    for read in (decode_image, measure):
        with pytest.raises(MissingDecoderError, match=r"^HEIC, .* pip install 'ssil\[heic\]', or convert it to JPEG$"):
            read(HEADER)


def test_what_is_installed_later_is_tried_again(
    without_heif: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict on a file is cached, but not that a package is missing."""
    data = photograph()
    (tmp_path / "a.heic").write_bytes(data)
    source = Files(tmp_path, ("a.heic",))
    assert "pip install" in validate_files(source).reasons[0]
    monkeypatch.undo()
    decode._formats.cache_clear()
    assert validate_files(source).good.all()


def test_an_avif_is_no_heic() -> None:
    assert not heic.is_heic(b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif" + b"\0" * 50)
    assert not heic.is_heic(b"\x89PNG")
