"""The linear head and its growth."""

from math import sqrt
from typing import Literal, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssil.nn import LinearHead

Init = Literal["default", "zero"]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.lists(st.integers(0, 5), max_size=6), st.booleans(), st.sampled_from(get_args(Init)))
@settings(max_examples=30, deadline=None)
def test_growth_keeps_old_rows_bit_for_bit(sizes: list[int], bias: bool, init: Init) -> None:
    head = LinearHead(6, bias, init)
    features = torch.randn(3, 6, generator=seeded(9))
    for seed, new in enumerate(sizes):
        grown = head.grow(new, seeded(seed))
        assert grown.classes == head.classes + new
        assert torch.equal(grown.weight[: head.classes], head.weight)
        assert grown.weight.requires_grad
        assert torch.isfinite(grown.weight).all()
        torch.testing.assert_close(grown(features)[:, : head.classes], head(features))
        head = grown
    assert head(features).shape == (3, sum(sizes))
    assert len(head.state_dict()) == 1 + bias


@pytest.mark.parametrize("bias", [True, False])
def test_logits_are_the_affine_map(bias: bool) -> None:
    head = LinearHead(4, bias).grow(3, seeded(0))
    features = torch.randn(2, 4, generator=seeded(1))
    expected = features @ head.weight.T + (head.bias if head.bias is not None else 0)
    torch.testing.assert_close(head(features), expected)


def test_default_rows_start_as_pytorch_does() -> None:
    head = LinearHead(400).grow(50, seeded(0)).grow(500, seeded(1))
    assert head.bias is not None
    for values in (head.weight[50:], head.bias[50:]):
        assert values.abs().max().item() <= 1 / sqrt(400)
        assert values.std().item() == pytest.approx(1 / sqrt(3 * 400), rel=0.1)
        assert values.mean().item() == pytest.approx(0, abs=4 / sqrt(3 * 400 * 500))


def test_zero_rows_start_at_zero() -> None:
    """But not those of the first classes, whose rows have not had the time to decay."""
    head = LinearHead(8, init="zero").grow(3, seeded(0)).grow(2, seeded(1))
    assert all(parameter[:3].all() and not parameter[3:].any() for parameter in head.parameters())


def test_growth_leaves_the_head_it_started_from() -> None:
    head = LinearHead(4).grow(2, seeded(0))
    before = head.weight.clone()
    head.grow(3, seeded(1)).weight.data.zero_()
    assert head.classes == 2
    assert torch.equal(head.weight, before)


def test_growth_keeps_the_number_format() -> None:
    assert LinearHead(4).double().grow(2, seeded(0)).weight.dtype == torch.float64
