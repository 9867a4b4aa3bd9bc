"""The heads and their growth."""

from collections.abc import Callable
from math import exp, sqrt
from typing import Literal, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracles
from ssil.nn.backbones import Identity
from ssil.nn.heads import CosineHead, Head, LinearHead, ProxyHead
from ssil.nn.network import Network

Init = Literal["default", "zero"]
normalised = pytest.mark.parametrize("make", [CosineHead, ProxyHead])


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


# ---- the cosine head (LUCIR) and the proxies (PODNet)


def cosine_head(rows: Tensor, scale: float = 1.0) -> CosineHead:
    head = CosineHead(rows.shape[1])
    head.weight, head.scale = torch.nn.Parameter(rows), torch.nn.Parameter(torch.tensor(scale).to(rows))
    return head


def proxy_head(weight: Tensor) -> ProxyHead:
    head = ProxyHead(weight.shape[2], weight.shape[1]).to(weight.dtype)
    head.weight = torch.nn.Parameter(weight)
    return head


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


Oracle = Callable[[Tensor, Tensor], list[float]]
"""The scores of one feature vector, given the weights."""


def slopes(scores: Callable[[Tensor], list[float]], of: Tensor, at: Tensor) -> Tensor:
    """The gradient of the scores' sum with the weights `of`, by differences."""

    def total(values: list[float]) -> float:
        found = scores(torch.tensor(values, dtype=torch.float64).view_as(at))
        return float(torch.tensor(found, dtype=torch.float64) @ of)

    return torch.tensor(oracles.slopes(total, at.flatten().tolist()), dtype=torch.float64).view_as(at)


def assert_follows(head: Head, oracle: Oracle, feature: Tensor) -> None:
    """The scores, and their gradients to the feature vector and to the weights."""
    weight, of = head.weight.detach(), draw(99, head.classes)
    feature.requires_grad_()
    scores = head(feature.unsqueeze(0)).squeeze(0)
    torch.testing.assert_close(scores, torch.tensor(oracle(feature, weight), dtype=torch.float64))
    by_feature, by_weight = torch.autograd.grad(scores @ of, [feature, head.weight])
    expected = slopes(lambda f: oracle(f, weight), of, feature)
    torch.testing.assert_close(by_feature, expected, atol=1e-8, rtol=1e-6)
    expected = slopes(lambda w: oracle(feature, w), of, weight)
    torch.testing.assert_close(by_weight, expected, atol=1e-8, rtol=1e-6)


@normalised
@given(sizes=st.lists(st.integers(0, 4), max_size=5))
@settings(max_examples=15, deadline=None)
def test_growth_keeps_rows_and_scale(make: Callable[[int], CosineHead | ProxyHead], sizes: list[int]) -> None:
    head, features = make(6), torch.randn(3, 6, generator=seeded(9))
    head.scale.data.fill_(2.5)
    for seed, new in enumerate(sizes):
        grown = head.grow(new, seeded(seed))
        assert torch.equal(grown.weight[: head.classes], head.weight)
        assert torch.isfinite(grown.weight).all()
        torch.testing.assert_close(grown(features)[:, : head.classes], head(features))
        assert grown.scale is not head.scale
        head = grown
    assert head.classes == sum(sizes)
    assert head(features).shape == (3, sum(sizes))
    assert isinstance(head.scale, torch.nn.Parameter)
    assert (head.scale.item(), head.scale.shape, head.scale.requires_grad) == (2.5, (), True)
    assert list(head.state_dict()) == ["weight", "scale"]


@normalised
def test_a_frozen_network_grows_a_head_that_trains(make: Callable[[int], Head]) -> None:
    grown = Network(Identity(6, "batch"), make(6)).clone().grow(2, seeded(0))
    assert all(parameter.requires_grad for parameter in grown.head.parameters())


@normalised
def test_rows_come_from_the_generator_alone(make: Callable[[int], Head]) -> None:
    assert torch.equal(make(6).grow(3, seeded(1)).weight, make(6).grow(3, seeded(1)).weight)
    assert not torch.equal(make(6).grow(3, seeded(1)).weight, make(6).grow(3, seeded(2)).weight)


def test_cosine_rows_start_as_pytorch_does() -> None:
    rows = CosineHead(400).grow(50, seeded(0)).grow(500, seeded(1)).weight[50:]
    assert rows.abs().max().item() <= 1 / sqrt(400)
    assert rows.std().item() == pytest.approx(1 / sqrt(3 * 400), rel=0.01)


def test_proxies_start_kaiming_normal() -> None:
    rows = ProxyHead(400).grow(5, seeded(0)).grow(50, seeded(1)).weight[5:]
    assert rows.shape == (50, 10, 400)
    assert rows.std().item() == pytest.approx(1 / sqrt(400), rel=0.01)
    assert (rows.abs() < 1 / sqrt(400)).double().mean().item() == pytest.approx(0.6827, abs=0.005)


@pytest.mark.parametrize("seed", range(4))
def test_cosine_logits_are_their_equation(seed: int) -> None:
    head = cosine_head(draw(seed, 5, 4), scale=1.7)
    assert_follows(head, lambda f, w: oracles.cosine_logits(f.tolist(), w.tolist(), 1.7), draw(seed + 50, 4))
    features = draw(seed, 3, 4)
    torch.testing.assert_close(1.7 * head.cosines(features), head(features))


@pytest.mark.parametrize("seed", range(4))
def test_proxy_scores_are_their_equation(seed: int) -> None:
    head = proxy_head(draw(seed, 5, 3, 4))
    assert_follows(head, lambda f, w: oracles.proxy_scores(f.tolist(), w.tolist()), draw(seed + 50, 4))


def test_cosine_logits_worked_out_by_hand() -> None:
    # f = (3, 4) has norm 5, so its unit vector is (0.6, 0.8). With the unit vectors of the rows:
    #   (1, 0)                          cos = 0.6
    #   (0, 2)   -> (0, 1)              cos = 0.8
    #   (-6, -8) -> (-0.6, -0.8)        cos = -0.36 - 0.64 = -1
    #   (4, 3)   -> (0.8, 0.6)          cos = 0.48 + 0.48 = 0.96
    # The logits are 2.5 times that. The scale's slope is the cosine itself.
    head = cosine_head(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-6.0, -8.0], [4.0, 3.0]]), scale=2.5)
    logits = head(torch.tensor([[3.0, 4.0]]))
    torch.testing.assert_close(logits, torch.tensor([[1.5, 2.0, -2.5, 2.4]]))
    (slope,) = torch.autograd.grad(logits[0, 3], head.scale)
    assert slope.item() == pytest.approx(0.96)


def test_proxy_scores_worked_out_by_hand() -> None:
    # f = (3, 4) has the unit vector (0.6, 0.8); a similarity is s = 2 cos - 2, its weight e^s over the class's sum.
    #   class 0, (1, 0) and (0, 7): cos 0.6 and 0.8, s = -0.8 and -0.4. Times e^0.8, the weights are as 1 to e^0.4:
    #            (-0.8 - 0.4 e^0.4) / (1 + e^0.4) = -(0.8 + 0.596730) / 2.491825 = -0.560525
    #   class 1, (3, 4) and (6, 8): cos 1 and 1, s = 0 and 0: score 0
    #   class 2, (-3, -4) and (4, -3): cos -1 and 0, s = -4 and -2. Times e^4, the weights are as 1 to e^2:
    #            (-4 - 2 e^2) / (1 + e^2) = -(4 + 14.778112) / 8.389056 = -2.238406
    proxies = [[[1.0, 0.0], [0.0, 7.0]], [[3.0, 4.0], [6.0, 8.0]], [[-3.0, -4.0], [4.0, -3.0]]]
    scores = proxy_head(torch.tensor(proxies, dtype=torch.float64))(torch.tensor([[3.0, 4.0]], dtype=torch.float64))
    exact = [-(0.8 + 0.4 * exp(0.4)) / (1 + exp(0.4)), 0.0, -(4 + 2 * exp(2)) / (1 + exp(2))]
    torch.testing.assert_close(scores, torch.tensor([exact], dtype=torch.float64))
    assert scores.squeeze(0).tolist() == pytest.approx([-0.560525, 0, -2.238406], abs=1e-6)


def test_28_cosine_logits_are_bounded_and_know_no_lengths() -> None:
    rows, features = draw(0, 7, 5).float(), draw(1, 9, 5).float()
    head = cosine_head(rows, scale=3.0)
    longer = cosine_head(rows * torch.tensor([1, 2, 1e-3, 50, 1, 1, 1e4]).unsqueeze(1), scale=3.0)
    assert head(torch.cat([features, rows])).abs().max() <= 3 + 1e-5
    torch.testing.assert_close(head(1e3 * features), head(features))
    torch.testing.assert_close(longer(features), head(features))


def test_29_proxy_scores_lie_between_minus_four_and_zero() -> None:
    weight = draw(0, 7, 3, 5).float()
    found = proxy_head(weight)(torch.cat([draw(1, 50, 5).float(), weight[:, 0], -weight[:, 0]]))
    assert found.max() <= 1e-5
    assert found.min() >= -4 - 1e-5


def test_29_one_proxy_is_the_plain_similarity() -> None:
    rows, features = draw(0, 7, 5), draw(1, 9, 5)
    expected = 2 * cosine_head(rows).cosines(features) - 2
    torch.testing.assert_close(proxy_head(rows.unsqueeze(1))(features), expected)
    torch.testing.assert_close(proxy_head(rows.unsqueeze(1).expand(-1, 4, -1))(features), expected)


def test_the_proxy_scale_is_the_losss_alone() -> None:
    head, features = proxy_head(draw(0, 7, 3, 5)), draw(1, 9, 5)
    before = head(features)
    head.scale.data.fill_(10)
    assert torch.equal(head(features), before)
