from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracles
from ssil.learning.losses import cross_entropy, gkd, separated_cross_entropy, tkd

some = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)
task_sizes = st.lists(st.integers(1, 6), min_size=2, max_size=6)
temperatures = st.sampled_from([1.0, 2.0, 5.0])


def draw(seed: int, *shape: int) -> Tensor:
    return 4 * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def draw_labels(seed: int, batch: int, classes: int) -> Tensor:
    return torch.randint(classes, (batch,), generator=torch.Generator().manual_seed(seed))


def bounds_of(sizes: list[int]) -> tuple[int, ...]:
    return tuple(sum(sizes[:s]) for s in range(len(sizes) + 1))


def gradient(loss: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    at = at.clone().requires_grad_()
    (found,) = torch.autograd.grad(loss(at).sum(), at)
    return found


def block_constants(seed: int, bounds: tuple[int, ...]) -> Tensor:
    sizes = torch.tensor([end - start for start, end in pairwise(bounds)])
    return torch.repeat_interleave(10 * draw(seed, len(sizes)), sizes)


def ssil_loss(logits: Tensor, labels: Tensor, teacher: Tensor, bounds: tuple[int, ...]) -> Tensor:
    return (separated_cross_entropy(logits, labels, bounds[-1]) + 4 * tkd(logits, teacher, bounds, 2.0)).mean()


# ---- against the oracles


@some
@given(seeds, task_sizes)
def test_cross_entropies_are_their_equations(seed: int, sizes: list[int]) -> None:
    bounds = bounds_of(sizes)
    old, seen = bounds[-2], bounds[-1]
    logits, labels = draw(seed, 7, seen), draw_labels(seed, 7, seen)
    pairs = list(zip(oracles.rows(logits), labels.tolist(), strict=True))
    plain = torch.tensor([oracles.cross_entropy(z, y) for z, y in pairs], dtype=torch.float64)
    separated = torch.tensor([oracles.separated_cross_entropy(z, y, old) for z, y in pairs], dtype=torch.float64)
    torch.testing.assert_close(cross_entropy(logits, labels), plain)
    torch.testing.assert_close(separated_cross_entropy(logits, labels, old), separated)


@some
@given(seeds, task_sizes, temperatures)
def test_distillations_are_their_equations(seed: int, sizes: list[int], tau: float) -> None:
    bounds = bounds_of(sizes)
    student, teacher = draw(seed, 4, bounds[-1] + 3), draw(seed + 1, 4, bounds[-1])
    pairs = list(zip(oracles.rows(student), oracles.rows(teacher), strict=True))
    task_wise = torch.tensor([oracles.tkd(z, target, bounds, tau) for z, target in pairs], dtype=torch.float64)
    all_old = torch.tensor([oracles.gkd(z[: bounds[-1]], target, tau) for z, target in pairs], dtype=torch.float64)
    torch.testing.assert_close(tkd(student, teacher, bounds, tau), task_wise)
    torch.testing.assert_close(gkd(student, teacher, tau), all_old)


@pytest.mark.parametrize("bounds", [(0, 5), (0, 1, 5), (0, 3, 4, 9), (0, 2, 4, 6)])
def test_distillation_gradient_is_the_oracles(bounds: tuple[int, ...]) -> None:
    student, teacher = draw(1, 3, bounds[-1] + 2), draw(2, 3, bounds[-1])
    found = gradient(lambda z: tkd(z, teacher, bounds, 2.0), student)
    for row, z, target in zip(found, oracles.rows(student), oracles.rows(teacher), strict=True):
        expected = oracles.slopes(lambda z, target=target: oracles.tkd(z, target, bounds, 2.0), z)  # type: ignore[misc]
        torch.testing.assert_close(row, torch.tensor(expected, dtype=torch.float64), atol=1e-8, rtol=1e-6)


def test_distillation_gradient_weighs_each_sample_by_what_comes_back() -> None:
    student, teacher = draw(1, 3, 5), draw(2, 3, 5)
    weights = torch.tensor([1.0, 0.0, -2.0], dtype=torch.float64)
    plain = gradient(lambda z: tkd(z, teacher, (0, 2, 5), 2.0), student)
    weighted = gradient(lambda z: weights * tkd(z, teacher, (0, 2, 5), 2.0), student)
    torch.testing.assert_close(weighted, weights.unsqueeze(1) * plain)


def test_no_gradient_reaches_the_teacher() -> None:
    student, teacher = draw(1, 3, 5).requires_grad_(), draw(2, 3, 5).requires_grad_()
    of_student, of_teacher = torch.autograd.grad(
        tkd(student, teacher, (0, 2, 5), 2.0).sum(), [student, teacher], allow_unused=True
    )
    assert of_student is not None
    assert of_teacher is None


# ---- the specification's property checks, by number


def test_first_task_is_plain_cross_entropy() -> None:
    logits, labels = draw(0, 8, 5).float(), draw_labels(0, 8, 5)
    assert torch.equal(separated_cross_entropy(logits, labels, old=0), cross_entropy(logits, labels))
    assert torch.equal(tkd(logits, logits[:, :0], (0, 0), 2.0), torch.zeros(8))


def test_no_gradient_crosses_the_groups() -> None:
    labels = torch.tensor([0, 1, 2, 3, 4, 5])
    found = gradient(lambda z: separated_cross_entropy(z, labels, 3), draw(0, 6, 6).float())
    assert torch.equal(found[:3, 3:], torch.zeros(3, 3))
    assert torch.equal(found[3:, :3], torch.zeros(3, 3))


def test_gradient_inside_the_group_is_softmax_minus_target() -> None:
    logits, labels = draw(0, 2, 6), torch.tensor([1, 5])
    found = gradient(lambda z: separated_cross_entropy(z, labels, 4), logits)
    old = logits[0, :4].softmax(0) - torch.eye(4)[1]
    new = logits[1, 4:].softmax(0) - torch.eye(2)[1]
    torch.testing.assert_close(found[0, :4], old)
    torch.testing.assert_close(found[1, 4:], new)
    torch.testing.assert_close(found.sum(1), torch.zeros(2, dtype=torch.float64))


@some
@given(seeds, st.integers(1, 6))
def test_cross_entropy_is_the_separated_one_and_the_mass_of_the_group(seed: int, old: int) -> None:
    logits, labels = draw(seed, 9, 7), draw_labels(seed, 9, 7)
    old_mass = logits.softmax(1)[:, :old].sum(1)
    mass = torch.where(labels < old, old_mass, 1 - old_mass)
    plain, separated = cross_entropy(logits, labels), separated_cross_entropy(logits, labels, old)
    torch.testing.assert_close(plain, separated - mass.log(), rtol=1e-6, atol=1e-8)
    assert (plain >= separated - 1e-12).all()


def test_cross_entropy_pushes_every_wrong_class_down() -> None:
    logits, labels = draw(0, 5, 6), draw_labels(0, 5, 6)
    target = torch.nn.functional.one_hot(labels, 6).double()
    found = gradient(lambda z: cross_entropy(z, labels), logits)
    torch.testing.assert_close(found, logits.softmax(1) - target)
    assert (found[target == 0] > 0).all()


def test_both_distillations_agree_for_one_old_task() -> None:
    student, teacher = draw(0, 5, 9), draw(1, 5, 6)
    assert torch.equal(gkd(student, teacher, 2.0), tkd(student, teacher, (0, 6), 2.0))
    found = gradient(lambda z: gkd(z, teacher, 2.0), student)
    assert torch.equal(found, gradient(lambda z: tkd(z, teacher, (0, 6), 2.0), student))


@some
@given(seeds, task_sizes, temperatures)
def test_chain_rule_of_the_two_distillations(seed: int, sizes: list[int], tau: float) -> None:
    bounds = bounds_of(sizes)
    student, teacher = draw(seed, 4, bounds[-1]), draw(seed + 1, 4, bounds[-1])
    p, target = (student / tau).softmax(1), (teacher / tau).softmax(1)
    expected = torch.zeros(4, dtype=torch.float64)
    for start, end in pairwise(bounds):
        mass, target_mass = p[:, start:end].sum(1), target[:, start:end].sum(1)
        within = gkd(student[:, start:end], teacher[:, start:end], tau)
        expected += target_mass * (target_mass / mass).log() + target_mass * within
    torch.testing.assert_close(gkd(student, teacher, tau), expected, rtol=1e-6, atol=1e-10)


@some
@given(seeds, task_sizes)
def test_task_wise_distillation_sums_parts_that_are_never_negative(seed: int, sizes: list[int]) -> None:
    bounds = bounds_of(sizes)
    student, teacher = draw(seed, 4, bounds[-1]), draw(seed + 1, 4, bounds[-1])
    parts = torch.stack([gkd(student[:, s:e], teacher[:, s:e], 2.0) for s, e in pairwise(bounds)])
    torch.testing.assert_close(tkd(student, teacher, bounds, 2.0), parts.sum(0))
    assert (parts >= -1e-12).all()
    assert (parts[torch.tensor(sizes) > 1] > 0).all()
    moved = teacher + block_constants(seed, bounds)
    torch.testing.assert_close(tkd(moved, teacher, bounds, 2.0), torch.zeros(4, dtype=torch.float64))


@pytest.mark.parametrize("bounds", [(0, 7), (0, 1, 7), (0, 3, 5, 7)])
def test_equal_models_have_nothing_to_distil(bounds: tuple[int, ...]) -> None:
    teacher = 50 * draw(0, 6, 7).float()
    student = torch.cat([teacher, draw(1, 6, 2).float()], 1)
    assert torch.equal(tkd(student, teacher, bounds, 2.0), torch.zeros(6))
    assert torch.equal(gradient(lambda z: tkd(z, teacher, bounds, 2.0), student), torch.zeros(6, 9))


@some
@given(seeds, task_sizes)
def test_task_wise_distillation_ignores_a_constant_per_block(seed: int, sizes: list[int]) -> None:
    bounds = bounds_of(sizes)
    student, teacher = draw(seed, 4, bounds[-1]), draw(seed + 1, 4, bounds[-1])
    shift = block_constants(seed + 2, bounds)
    value = tkd(student, teacher, bounds, 2.0)
    torch.testing.assert_close(tkd(student + shift, teacher, bounds, 2.0), value)
    torch.testing.assert_close(tkd(student, teacher + shift, bounds, 2.0), value)
    torch.testing.assert_close(gkd(student + 3, teacher - 5, 2.0), gkd(student, teacher, 2.0))


def test_global_distillation_changes_with_a_constant_per_block() -> None:
    student, teacher = draw(0, 4, 5), draw(1, 4, 5)
    shift = torch.tensor([3.0, 3.0, 0.0, 0.0, 0.0])
    assert ((gkd(student + shift, teacher, 2.0) - gkd(student, teacher, 2.0)).abs() > 1e-3).all()


def test_ssil_ignores_the_offset_between_old_and_new() -> None:
    logits, labels, teacher = draw(0, 8, 9), draw_labels(0, 8, 9), draw(1, 8, 6)
    shift = torch.tensor([5.0] * 6 + [-7.0] * 3)
    before = ssil_loss(logits, labels, teacher, (0, 2, 6))
    torch.testing.assert_close(ssil_loss(logits + shift, labels, teacher, (0, 2, 6)), before)
    plain = cross_entropy(logits, labels)
    assert ((cross_entropy(logits + shift, labels) - plain).abs() > 1e-3).any()
    torch.testing.assert_close(cross_entropy(logits + 5, labels), plain)


def test_distillation_gives_new_classes_no_gradient() -> None:
    student, teacher = draw(0, 4, 9).float(), draw(1, 4, 6).float()
    for bounds in [(0, 6), (0, 2, 6)]:
        found = gradient(lambda z, bounds=bounds: tkd(z, teacher, bounds, 2.0), student)  # type: ignore[misc]
        assert torch.equal(found[:, 6:], torch.zeros(4, 3))
        assert found[:, :6].abs().min() > 0


def test_gradient_of_hot_distillation_is_the_centred_difference() -> None:
    student, teacher, bounds = draw(0, 4, 7), draw(1, 4, 7), (0, 3, 7)
    gap = student - teacher
    parts = [gap[:, start:end] for start, end in pairwise(bounds)]
    limit = torch.cat([(part - part.mean(1, keepdim=True)) / part.shape[1] for part in parts], 1)
    for tau in [1e3, 1e4]:
        found = gradient(lambda z, tau=tau: tau**2 * tkd(z, teacher, bounds, tau), student)  # type: ignore[misc]
        torch.testing.assert_close(found, limit, rtol=0, atol=20 / tau)


def test_every_sample_of_an_ssil_batch_weighs_the_same() -> None:
    logits, teacher = draw(0, 160, 9), draw(1, 160, 6)
    labels = torch.cat([6 + draw_labels(0, 128, 3), draw_labels(1, 32, 6)])
    once = ssil_loss(logits, labels, teacher, (0, 2, 6))
    twice = ssil_loss(logits.repeat(2, 1), labels.repeat(2), teacher.repeat(2, 1), (0, 2, 6))
    torch.testing.assert_close(twice, once)
    new = torch.nn.functional.cross_entropy(logits[:128, 6:], labels[:128] - 6, reduction="sum")
    old = torch.nn.functional.cross_entropy(logits[128:, :6], labels[128:], reduction="sum")
    torch.testing.assert_close(separated_cross_entropy(logits, labels, 6).sum() / 160, (new + old) / 160)


def test_a_batch_without_exemplars_is_the_new_only_loss() -> None:
    logits, labels = draw(0, 8, 9).float(), 6 + draw_labels(0, 8, 3)
    expected = torch.nn.functional.cross_entropy(logits[:, 6:], labels - 6)
    torch.testing.assert_close(separated_cross_entropy(logits, labels, 6).mean(), expected)


# ---- what the equations don't say


def test_old_classes_only_are_one_group() -> None:
    logits, labels = draw(0, 8, 5), draw_labels(0, 8, 5)
    assert torch.equal(separated_cross_entropy(logits, labels, old=5), cross_entropy(logits, labels))


@some
@given(seeds, task_sizes)
def test_blocks_may_lie_hundreds_apart_in_float32(seed: int, sizes: list[int]) -> None:
    bounds = bounds_of(sizes)
    exact = draw(seed, 4, bounds[-1]), draw(seed + 1, 4, bounds[-1])
    shift = 20 * block_constants(seed, bounds)
    student, teacher = (exact[0] + shift).float(), (exact[1] - shift).float()
    value = tkd(student, teacher, bounds, 2.0)
    torch.testing.assert_close(value, tkd(*exact, bounds, 2.0).float(), rtol=1e-3, atol=1e-3)
    slope = gradient(lambda z: tkd(z, teacher, bounds, 2.0), student)
    expected = gradient(lambda z: tkd(z, exact[1], bounds, 2.0), exact[0])
    torch.testing.assert_close(slope, expected.float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_extreme_logits_stay_finite(scale: float) -> None:
    logits, teacher, labels = scale * draw(0, 6, 9).float(), scale * draw(1, 6, 6).float(), draw_labels(0, 6, 9)
    losses: list[Callable[[Tensor], Tensor]] = [
        lambda z: separated_cross_entropy(z, labels, 6),
        lambda z: tkd(z, teacher, (0, 2, 6), 2.0),
        lambda z: gkd(z, teacher, 2.0),
    ]
    for loss in losses:
        assert loss(logits).isfinite().all()
        assert gradient(loss, logits).isfinite().all()


def test_many_uneven_blocks() -> None:
    sizes = [1 + s % 7 for s in range(60)]
    bounds = bounds_of(sizes)
    student, teacher = draw(0, 3, bounds[-1]), draw(1, 3, bounds[-1])
    pairs = zip(oracles.rows(student), oracles.rows(teacher), strict=True)
    expected = torch.tensor([oracles.tkd(z, target, bounds, 2.0) for z, target in pairs], dtype=torch.float64)
    torch.testing.assert_close(tkd(student, teacher, bounds, 2.0), expected)
