import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssil.data.crop_boxes import CROP_NUMBERS, centre_box, random_box
from ssil.data.decode import Box

SIDES = st.integers(1, 5000)
UNIT = st.lists(st.floats(0, 1, exclude_max=True, width=32), min_size=CROP_NUMBERS, max_size=CROP_NUMBERS)


@settings(deadline=None)
@given(SIDES, SIDES, UNIT)
def test_a_box_lies_inside_its_image(width: int, height: int, numbers: Sequence[float]) -> None:
    for box in (random_box(width, height, numbers), centre_box(width, height), centre_box(width, height, 1.0)):
        assert box.width >= 1
        assert box.height >= 1
        assert 0 <= box.left <= width - box.width
        assert 0 <= box.top <= height - box.height


def test_areas_and_ratios_are_those_of_the_usual_rule() -> None:
    draws = torch.rand(4000, CROP_NUMBERS, generator=torch.Generator().manual_seed(0)).tolist()
    boxes = [random_box(800, 800, numbers) for numbers in draws]
    areas = torch.tensor([box.width * box.height / 800**2 for box in boxes])
    ratios = torch.tensor([math.log(box.width / box.height) for box in boxes])
    assert areas.min() > 0.078
    assert ratios.abs().max() < math.log(4 / 3) + 0.01
    assert ratios.mean().abs() < 0.01
    places = torch.tensor([box.left / (800 - box.width) for box in boxes if box.width < 700])
    assert (places.mean() - 0.5).abs() < 0.02
    # Large areas are refused more often, for an oblong of 95 % of a square does not fit: checked by counting.
    wanted = [_literal(numbers) for numbers in draws]
    assert areas.tolist() == pytest.approx(wanted, abs=0.01)


def _literal(numbers: Sequence[float]) -> float:
    """The area of the first try that fits into a square, as the rule is told."""
    for number in range(10):
        area = 0.08 + 0.92 * numbers[2 * number]
        ratio = math.exp((2 * numbers[2 * number + 1] - 1) * math.log(4 / 3))
        if max(round(800 * math.sqrt(area * ratio)), round(800 * math.sqrt(area / ratio))) <= 800:
            return area
    return 1.0


def test_a_panorama_gives_its_centre() -> None:
    numbers = [0.5] * CROP_NUMBERS
    assert random_box(3000, 30, numbers) == Box(1480, 0, 40, 30)
    assert random_box(30, 3000, numbers) == Box(0, 1480, 30, 40)
