"""Contact sheets."""

from dataclasses import replace

import numpy as np
import pytest

from ssil.data.contact_sheet import COLUMNS, HEAD, IMAGES, MARGIN, ROW, SIDE, STRIP, contact_sheet, fitting, spread
from ssil.data.image_index import ImageIndex


def test_images_and_names(image_index: ImageIndex) -> None:
    sheet = contact_sheet(image_index)
    assert sheet.size == (MARGIN + 3 * (STRIP + MARGIN), HEAD + ROW)
    drawn = np.asarray(sheet)
    for column in range(3):
        left = MARGIN + column * (STRIP + MARGIN)
        for number in range(IMAGES):
            start = left + number * (SIDE + 4)
            assert drawn[HEAD : HEAD + SIDE, start : start + SIDE].std() > 10
        assert drawn[HEAD + SIDE : HEAD + ROW, left : left + STRIP].min() < 100  # the name


def test_no_more_than_forty_classes(image_index: ImageIndex) -> None:
    many = replace(image_index, classes=tuple(f"class {number}" for number in range(1000)))
    assert contact_sheet(many).size == (MARGIN + COLUMNS * (STRIP + MARGIN), HEAD + 8 * ROW)


@pytest.mark.parametrize("name", ["long " * 100, "x" * 300, "two\nlines", "", "Ζητα ñ 木"])
def test_any_name_will_do(image_index: ImageIndex, name: str) -> None:
    usual, odd = contact_sheet(image_index), contact_sheet(replace(image_index, name=name, classes=(name, "b", "c")))
    assert odd.size == usual.size
    gap = slice(MARGIN + STRIP, MARGIN + STRIP + MARGIN)
    assert (np.asarray(odd)[HEAD:, gap] == 255).all()


def test_what_fits_of_a_name() -> None:
    assert fitting("short", 14, 100) == "short"
    short = fitting("a quite remarkably long name", 14, 100)
    assert short.startswith("a qui")
    assert short.endswith("ame")
    assert "…" in short
    assert fitting("anything", 14, 1) == "…"


def test_spread() -> None:
    assert spread(range(10), 3) == [0, 3, 6]
    assert spread([], 3) == []
