"""A cache of the tests' own, and a folder of small images, some of them bad."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ssil.data.image_index import ImageIndex
from ssil.data.sources.folder import folder

SIZES = {"ant": (24, 32), "bee": (40, 20), "cat": (12, 12)}
BAD = {"ant/5.png": b"", "cat/half.jpg": b"\xff\xd8\xff\xe0 and no more", "cat/notes.txt": b"not an image"}


@pytest.fixture(scope="session")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of five images, and three files that are none."""
    path, noise = tmp_path_factory.mktemp("painted"), np.random.default_rng(0)
    for name, (width, height) in SIZES.items():
        (path / name).mkdir(parents=True)
        for number in range(5):
            image = Image.fromarray(noise.integers(0, 256, (height // 4, width // 4, 3), dtype=np.uint8))
            kind = "png" if number == 0 else "jpg"
            image.resize((width, height)).save(path / name / f"{number}.{kind}", quality=95)
    for name, content in BAD.items():
        (path / name).write_bytes(content)
    return path


@pytest.fixture
def photos(painted: Path, tmp_path: Path) -> Path:
    """A copy of them, to change."""
    return Path(shutil.copytree(painted, tmp_path / "photos"))


@pytest.fixture
def image_index(photos: Path) -> ImageIndex:
    return folder(photos)


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
