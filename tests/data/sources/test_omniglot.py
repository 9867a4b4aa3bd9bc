import os
from pathlib import Path

import numpy as np
import pytest

from image_trees import grey, listed, write_images
from ssil.core.errors import UserError
from ssil.data.image_index import Remark
from ssil.data.sources.omniglot import PLACES, PREPROCESSING, omniglot


@pytest.mark.parametrize("place", PLACES)
def test_official_layout(tmp_path: Path, place: str) -> None:
    write_images(tmp_path / place / "images_background" / "Greek", "character02/0395_01.png", "character01/0394_02.png")
    write_images(tmp_path / place / "images_background" / "Greek" / "character01", "0394_01.png")
    write_images(tmp_path / place / "images_evaluation", "Angelic/character01/0965_01.png")
    image_index = omniglot(tmp_path)
    greek = "images_background/Greek"
    assert listed(image_index) == {
        "Greek/character01": [f"{greek}/character01/0394_01.png", f"{greek}/character01/0394_02.png"],
        "Greek/character02": [f"{greek}/character02/0395_01.png"],
        "Angelic/character01": ["images_evaluation/Angelic/character01/0965_01.png"],
    }
    assert grey(image_index, 1) == 1
    assert image_index.is_test is None
    assert image_index.remarks == ()
    assert (
        image_index.preprocessing.size,
        image_index.preprocessing.channels,
        image_index.preprocessing.augment,
        image_index.preprocessing.flip,
    ) == (
        28,
        1,
        "shift",
        False,
    )


def test_one_part_will_do(tmp_path: Path) -> None:
    write_images(tmp_path, "omniglot/images_evaluation/Angelic/character01/0965_01.png")
    image_index = omniglot(tmp_path)
    assert image_index.classes == ("Angelic/character01",)
    assert image_index.remarks == (Remark("images_background", "no such file or directory"),)


def test_nothing_is_dropped_without_a_remark(tmp_path: Path) -> None:
    write_images(tmp_path / "images_background", "Greek/character01/1.png", "1.png", "Greek/2.png")
    write_images(tmp_path / "images_evaluation", "Greek/character01/3.png", "Greek/character01/more/4.png")
    image_index = omniglot(tmp_path)
    assert listed(image_index) == {
        "Greek/character01": ["images_background/Greek/character01/1.png", "images_evaluation/Greek/character01/3.png"]
    }
    assert [(remark.path, remark.left_out) for remark in image_index.remarks] == [
        ("images_background/1.png", False),
        ("images_background/Greek/2.png", False),
        ("images_evaluation/Greek/character01/more", True),
    ]


def test_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unpack images_background.zip and .* in .*--data-root or \$SSIL_DATA"):
        omniglot(tmp_path)


def test_mean_and_deviation_are_those_of_the_drawings() -> None:
    path = Path(os.environ.get("SSIL_DATA", "")) / "omniglot28.npz"
    if not path.is_file():
        pytest.skip("omniglot28.npz is not in $SSIL_DATA")
    with np.load(path) as arrays:
        dark_on_white = 1 - arrays["x_train"] / 255
    assert dark_on_white.mean() == pytest.approx(PREPROCESSING.mean[0], abs=0.005)
    assert dark_on_white.std() == pytest.approx(PREPROCESSING.std[0], abs=0.005)
