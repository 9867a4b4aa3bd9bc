from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance
from torch import Tensor

from ssil.data.augmentation import Draws, Transform, generic


def images(batch: int, height: int, width: int, channels: int) -> Tensor:
    generator = torch.Generator().manual_seed(batch + height)
    return torch.randint(256, (batch, height, width, channels), dtype=torch.uint8, generator=generator)


def literal(transform: Transform, pixels: Tensor, draws: Draws) -> Tensor:
    """Image by image, pixel by pixel."""
    batch, height, width, channels = pixels.shape
    result = torch.empty(batch, channels, height, width, dtype=torch.float64)
    for i in range(batch):
        for y in range(height):
            for x in range(width):
                row, column = y + int(draws.dy[i]) - transform.pad, x + int(draws.dx[i]) - transform.pad
                inside = 0 <= row < height and 0 <= column < width
                source = width - 1 - column if draws.flip[i] else column
                for c in range(channels):
                    value = int(pixels[i, row, source, c]) / 255 if inside else 0.0
                    result[i, c, y, x] = (value - transform.mean[c]) / transform.std[c]
    return result


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(1, 4),
    height=st.integers(1, 6),
    width=st.integers(1, 6),
    channels=st.sampled_from([1, 3]),
    pad=st.integers(0, 3),
    flip=st.booleans(),
    seed=st.integers(0, 99),
)
def test_train_equals_a_literal_loop(
    batch: int, height: int, width: int, channels: int, pad: int, flip: bool, seed: int
) -> None:
    transform = Transform((0.5, 0.4, 0.3)[:channels], (0.2, 0.25, 0.3)[:channels], pad, flip)
    pixels = images(batch, height, width, channels)
    draws = transform.draw(batch, torch.Generator().manual_seed(seed))
    expected = literal(transform, pixels, draws)
    torch.testing.assert_close(transform.train(pixels, draws, torch.float64), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(transform.train(pixels, draws), expected.float(), rtol=0, atol=1e-5)


def test_output_is_channels_last_without_a_copy() -> None:
    transform = Transform((0.5,) * 3, (0.25,) * 3, pad=2, flip=True)
    pixels = images(5, 8, 6, 3)
    for output in (transform.test(pixels), transform.train(pixels, transform.draw(5, torch.Generator()))):
        assert output.shape == (5, 3, 8, 6)
        assert output.is_contiguous(memory_format=torch.channels_last)


def test_input_is_left_as_it_was() -> None:
    transform = Transform((0.5,), (0.25,), pad=1, flip=True)
    pixels = images(4, 5, 5, 1)
    before = pixels.clone()
    transform.train(pixels, transform.draw(4, torch.Generator()))
    assert torch.equal(pixels, before)


def test_half_precision_is_the_rounded_float_result() -> None:
    transform = Transform((0.5071,), (0.2673,))
    pixels = torch.arange(256, dtype=torch.uint8).view(1, 16, 16, 1)
    assert torch.equal(transform.test(pixels, torch.bfloat16), transform.test(pixels).bfloat16())


def test_draws_cover_every_offset_and_both_sides() -> None:
    draws = Transform((0.0,), (1.0,), pad=2, flip=True).draw(400, torch.Generator().manual_seed(0))
    assert draws.dy.unique().tolist() == draws.dx.unique().tolist() == [0, 1, 2, 3, 4]
    assert 0.4 < draws.flip.double().mean() < 0.6


@pytest.mark.parametrize("slots", [slice(3, 7), torch.tensor([3, 4, 5, 6])])
def test_slots_of_a_batch_look_as_in_the_whole_batch(slots: Tensor | slice) -> None:
    transform = Transform((0.5,), (0.25,), pad=2, flip=True)
    pixels, draws = images(10, 6, 6, 1), transform.draw(10, torch.Generator().manual_seed(1))
    whole = transform.train(pixels, draws)
    assert torch.equal(transform.train(pixels[slots], draws.take(slots)), whole[3:7])


def test_generic_mirrors_colour_only() -> None:
    assert generic(64, 64, 3).flip
    assert not generic(28, 28, 1).flip
    assert (generic(64, 64, 3).pad, generic(28, 28, 1).pad) == (8, 3)


def test_brightness_is_that_of_pillow() -> None:
    transform = Transform((0.0,) * 3, (1.0,) * 3, brightness=63 / 255)
    pixels = images(40, 5, 4, 3)
    draws = transform.draw(40, torch.Generator().manual_seed(0))
    assert draws.brightness is not None
    found = (255 * transform.train(pixels, draws, torch.float64)).round().permute(0, 2, 3, 1)
    for picture, factor, result in zip(pixels, draws.brightness.tolist(), found, strict=True):
        wanted = ImageEnhance.Brightness(Image.fromarray(picture.numpy())).enhance(factor)
        assert result.tolist() == np.asarray(wanted).tolist()


def test_brightness_varies_by_the_given_part_and_changes_no_other_draw() -> None:
    plain = Transform((0.5,), (0.5,), pad=2, flip=True)
    jittered = replace(plain, brightness=0.25)
    before, after = (one.draw(500, torch.Generator().manual_seed(1)) for one in (plain, jittered))
    assert before.brightness is None
    assert after.brightness is not None
    assert all(torch.equal(one, other) for one, other in zip(before[:3], after[:3], strict=True))
    assert 0.75 <= after.brightness.min() < 0.77
    assert 1.23 < after.brightness.max() <= 1.25
    part = after.take(slice(3, 5))
    assert part.brightness is not None
    assert torch.equal(part.brightness, after.brightness[3:5])


def test_test_images_are_not_brightened() -> None:
    pixels = images(3, 4, 4, 1)
    plain = Transform((0.5,), (0.5,))
    assert torch.equal(plain.test(pixels), replace(plain, brightness=0.5).test(pixels))
    assert repr(plain) == repr(replace(plain, brightness=0.5))
