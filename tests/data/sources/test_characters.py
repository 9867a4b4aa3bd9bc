"""Characters in the typefaces of the system; most of it is tried on typefaces that come with matplotlib."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from PIL import ImageFont

from ssil.core.errors import UserError
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset
from ssil.data.load import load
from ssil.data.sources import characters as module
from ssil.data.sources.characters import (
    DESIGNS,
    DRAWS,
    LEAST,
    SIDE,
    Design,
    Face,
    affine_maps,
    bitmap,
    common_characters,
    find_faces,
)

LATIN = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
STAND_INS = (
    Design(("DejaVu Sans Mono",), "fonts-dejavu-mono"),
    Design(("DejaVu Serif",), "fonts-dejavu-core"),
    Design(("STIXGeneral",), "fonts-stix"),
    Design(("DejaVu Sans",), "fonts-dejavu-core", test=True),
)


def system_with(monkeypatch: pytest.MonkeyPatch, *patterns: str) -> None:
    """Let the system have some of matplotlib's typefaces, and let these be the known designs, with Latin letters."""
    files = [str(file) for pattern in patterns for file in LATIN.glob(pattern)]
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: files)
    monkeypatch.setattr(module, "DESIGNS", STAND_INS)
    monkeypatch.setattr(module, "COPIES", ("Display",))
    monkeypatch.setattr(module, "common_characters", lambda: list("ABCDEFGHIJ"))


def drawn(**options: int) -> Dataset:
    return load(
        DataSettings(dataset="characters", **{"classes": 3, "train_per_class": 8, "test_per_class": 4} | options)
    )


@pytest.fixture
def latin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    system_with(monkeypatch, "DejaVu*.ttf", "STIXGeneral*.ttf")


def pixels(dataset: Dataset) -> torch.Tensor:
    return dataset.train.images.fetch(torch.arange(len(dataset.train)))


@pytest.mark.usefixtures("latin")
def test_designs_are_on_one_side_only_and_are_named() -> None:
    dataset = drawn()
    assert (len(dataset.train), len(dataset.test), dataset.classes[0], dataset.synthetic) == (24, 12, "A 41", True)
    sides = {name.rpartition(" (")[2] for name in dataset.sources if name.startswith("DejaVu Serif")}
    assert sides == {"training)"}
    tested = [name for name in dataset.sources if name.endswith("(test)")]
    assert tested
    assert all(name.startswith("DejaVu Sans") and "Mono" not in name and "Display" not in name for name in tested)


@pytest.mark.usefixtures("latin")
def test_the_same_images_again_and_more_of_them() -> None:
    first, again, more, other = drawn(), drawn(), drawn(classes=4, train_per_class=10), drawn(split_seed=1)
    assert first.fingerprint == again.fingerprint != other.fingerprint
    torch.testing.assert_close(pixels(more).view(4, 10, -1)[:3, :8], pixels(first).view(3, 8, -1))
    assert len({image.numpy().tobytes() for image in pixels(first)}) == 24  # no image comes twice
    assert drawn(image_size=16).train.images.shape == (16, 16, 1)


@pytest.mark.parametrize(
    ("patterns", "reason"),
    [
        (
            ("DejaVuSans.ttf",),
            "needs 3 designs of typefaces to train on, this system has 0; .*: fonts-dejavu-mono fonts",
        ),
        (("DejaVuSans.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf"), "to train on, this system has 2; .*fonts-stix$"),
        (
            ("DejaVuSerif.ttf", "DejaVuSansMono.ttf", "STIXGeneral.ttf"),
            "1 designs .* to test on, this system has 0; .*",
        ),
    ],
)
def test_a_system_with_few_typefaces(patterns: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system_with(monkeypatch, *patterns)
    with pytest.raises(UserError, match=f"^dataset: characters .*{reason}"):
        drawn()


@pytest.mark.usefixtures("latin")
@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"classes": 11}, "classes=11 must be between 1 and 10 for characters"),
        ({"image_size": 7}, "image_size=7 must be between 8 and 64 for characters"),
        ({"train_per_class": 10_001}, "train_per_class=10001 must be between 1 and 10,000 for characters"),
    ],
)
def test_options_out_of_range(option: dict[str, int], reason: str) -> None:
    with pytest.raises(UserError, match=f"^{reason}$"):
        drawn(**option)


def test_a_typeface_that_lacks_a_character_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    system_with(monkeypatch, "DejaVu*.ttf", "STIXGeneral*.ttf")
    with pytest.raises(UserError, match="this system has 0"):
        find_faces(["A", "座"])


def test_the_known_designs() -> None:
    assert len(set(common_characters())) == 1711
    prefixes = [family for design in DESIGNS for family in design.families]
    assert not [(a, b) for a in prefixes for b in prefixes if a != b and a.startswith(b)]  # a face has one design
    assert sum(not design.test for design in DESIGNS) >= LEAST[0]
    assert sum(design.test for design in DESIGNS) >= LEAST[1]


def test_a_bitmap_is_centred_and_filled() -> None:
    found = bitmap("I", ImageFont.truetype(str(LATIN / "DejaVuSans.ttf"), SIDE))
    assert found.shape == (SIDE, SIDE)
    rows, columns = (np.flatnonzero(found.any(axis)) for axis in (1, 0))
    assert (rows[0], rows[-1]) == (0, SIDE - 1)
    assert abs(columns[0] + columns[-1] - SIDE + 1) <= 1


def test_affine_maps_in_the_middle_of_their_ranges_only_scale() -> None:
    (found,) = affine_maps(torch.full((1, DRAWS), 0.5))
    torch.testing.assert_close(found, torch.tensor([[1 / 0.875, 0, 0], [0, 1 / 0.875, 0]]))


def test_characters_of_this_system() -> None:
    """With real typefaces, if there are any."""
    try:
        faces: list[Face] = find_faces(common_characters()[:20])
    except UserError as error:
        pytest.skip(str(error))
    dataset = drawn(classes=20, train_per_class=10, test_per_class=3)
    assert len(dataset.sources) == len(faces)
    assert dataset.classes[0] == "座 5ea7"
    assert (pixels(dataset).flatten(1).max(1).values > 200).all()
