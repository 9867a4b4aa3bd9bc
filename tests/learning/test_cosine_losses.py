"""The terms of LUCIR and PODNet."""

from collections.abc import Callable
from functools import partial
from math import log, sqrt

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

import oracles
from ssil.learning.losses import cosine_distance, margin_ranking, nca, nca_hinged, pod_spatial

some = settings(max_examples=25, deadline=None, derandomize=True)  # differences fail beside a kink, however rarely
seeds = st.integers(0, 10**6)
both_ways = pytest.mark.parametrize("separate", [False, True])
both_ncas = pytest.mark.parametrize("loss", [nca, lambda s, y: nca_hinged(s, y, 2.0, 0.6)])


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def draw_labels(seed: int, batch: int, classes: int) -> Tensor:
    return torch.randint(classes, (batch,), generator=torch.Generator().manual_seed(seed))


def draw_stages(seed: int) -> list[Tensor]:
    return [draw(seed, 2, 2, 3, 4), draw(seed + 1, 2, 3, 2, 2), draw(seed + 2, 2, 4, 1, 1)]


def double(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gradient(loss: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    at = at.clone().requires_grad_()
    return torch.autograd.grad(loss(at).sum(), at)[0]


def assert_follows(loss: Callable[[Tensor], Tensor], oracle: Callable[[Tensor], list[float]], at: Tensor) -> None:
    """The values, and the gradient of their sum."""
    torch.testing.assert_close(loss(at), double(oracle(at)))
    slopes = oracles.slopes(lambda values: sum(oracle(double(values).view_as(at))), at.flatten().tolist())
    torch.testing.assert_close(gradient(loss, at), double(slopes).view_as(at), atol=1e-7, rtol=1e-6)


# ---- against the oracles


@some
@given(seeds)
def test_cosine_distance_is_its_equation(seed: int) -> None:
    student, teacher = draw(seed, 3, 5), draw(seed + 1, 3, 5)

    def oracle(student: Tensor) -> list[float]:
        return [1 - oracles.cosine(a, b) for a, b in zip(student.tolist(), teacher.tolist(), strict=True)]

    assert_follows(lambda f: cosine_distance(f, teacher), oracle, student)


@some
@given(seeds, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_margin_ranking_is_its_equation(seed: int, old: int, new: int, top: int) -> None:
    cosines, labels = draw(seed, 8, old + new).tanh(), draw_labels(seed, 8, old + new)

    def oracle(cosines: Tensor) -> list[float]:
        pairs = zip(cosines.tolist(), labels.tolist(), strict=True)
        return [oracles.margin_ranking(row, y, old, 0.5, top) for row, y in pairs if y < old]

    assert_follows(lambda c: margin_ranking(c, labels, old, 0.5, top), oracle, cosines)


@both_ways
@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize("seed", [0, 3, 6])
def test_pod_spatial_is_its_equation(seed: int, stage: int, separate: bool) -> None:
    student, teacher = draw_stages(seed), draw_stages(seed + 100)

    def with_stage(maps: Tensor) -> list[Tensor]:
        return [*student[:stage], maps, *student[stage + 1 :]]

    def oracle(maps: Tensor) -> list[float]:
        pairs = [([a[i].tolist() for a in with_stage(maps)], [b[i].tolist() for b in teacher]) for i in range(2)]
        return [oracles.pod_spatial(mine, theirs, separate) for mine, theirs in pairs]

    assert_follows(lambda maps: pod_spatial(with_stage(maps), teacher, separate), oracle, student[stage])


@some
@given(seeds, st.integers(1, 5))
def test_nca_is_its_equation(seed: int, classes: int) -> None:
    similarities, labels = 4 * draw(seed, 4, classes), draw_labels(seed, 4, classes)

    def oracle(similarities: Tensor) -> list[float]:
        return [oracles.nca(s, y) for s, y in zip(similarities.tolist(), labels.tolist(), strict=True)]

    assert_follows(lambda s: nca(s, labels), oracle, similarities)


@some
@given(seeds, st.integers(1, 5), st.sampled_from([0.0, 0.6]), st.sampled_from([1.0, 3.0]))
def test_hinged_nca_is_its_equation(seed: int, classes: int, margin: float, scale: float) -> None:
    similarities, labels = draw(seed, 4, classes), draw_labels(seed, 4, classes)

    def oracle(similarities: Tensor, scale: float) -> list[float]:
        pairs = zip(similarities.tolist(), labels.tolist(), strict=True)
        return [oracles.nca_hinged(s, y, scale, margin) for s, y in pairs]

    assert_follows(lambda s: nca_hinged(s, labels, scale, margin), lambda s: oracle(s, scale), similarities)
    of_scale = partial(nca_hinged, similarities, labels, margin=margin)
    assert_follows(of_scale, lambda z: oracle(similarities, z.item()), double(scale))


# ---- worked out by hand


def test_cosine_distance_worked_out_by_hand() -> None:
    # f = (3, 4) has norm 5 and the unit vector u = (0.6, 0.8).
    #   to (1, 0):   cos = 0.6, distance 0.4
    #   to (-4, 3):  cos = (-12 + 12) / 25 = 0, distance 1
    #   to (6, 8):   cos = 1, distance 0
    #   to (-6, -8): cos = -1, distance 2
    # The slope of cos(f, w) to f is (w - cos u) / |f| for a unit vector w. To (1, 0):
    #   ((1, 0) - 0.6 (0.6, 0.8)) / 5 = (0.64, -0.48) / 5 = (0.128, -0.096), and that of the distance is minus this.
    student, teacher = double([[3, 4]]).expand(4, 2), double([[1, 0], [-4, 3], [6, 8], [-6, -8]])
    torch.testing.assert_close(cosine_distance(student, teacher), double([0.4, 1.0, 0.0, 2.0]))
    found = gradient(lambda f: cosine_distance(f, teacher[:1]), student[:1])
    torch.testing.assert_close(found, double([[-0.128, 0.096]]))


def test_margin_ranking_worked_out_by_hand() -> None:
    # Two old classes, three new; margin 0.5, the two best new classes.
    #   sample 0, class 0, cosine 0.6; best new 0.3 and 0.2:
    #     0.5 - 0.6 + 0.3 = 0.2 and 0.5 - 0.6 + 0.2 = 0.1, mean 0.15. Both count: slope -1 for its own class, 1/2 each.
    #   sample 1 is of class 3, a new one: no value.
    #   sample 2, class 1, cosine 0.9; best new 0.5 and 0.3:
    #     0.5 - 0.9 + 0.5 = 0.1 and 0.5 - 0.9 + 0.3 = -0.1 -> 0, mean 0.05. One counts: slope -1/2 and 1/2.
    cosines = double([[0.6, 0.9, 0.3, -0.2, 0.2], [0.1, 0.2, 0.3, 0.4, 0.5], [0.0, 0.9, 0.5, 0.3, 0.1]])
    labels = torch.tensor([0, 3, 1])
    torch.testing.assert_close(margin_ranking(cosines, labels, 2, 0.5, 2), double([0.15, 0.05]))
    expected = double([[-1, 0, 0.5, 0, 0.5], [0, 0, 0, 0, 0], [0, -0.5, 0.5, 0, 0]])
    torch.testing.assert_close(gradient(lambda c: margin_ranking(c, labels, 2, 0.5, 2), cosines), expected)


def test_pod_spatial_worked_out_by_hand() -> None:
    # Two stages, one channel each. h sums the squares over the width (one value a row), w over the height.
    #   stage 1, student [1 1 1; 2 0 0]: squares [1 1 1; 4 0 0], h = (3, 4), w = (5, 1, 1)
    #            teacher [2 0 0; 1 1 1]: squares [4 0 0; 1 1 1], h = (4, 3), w = (5, 1, 1)
    #     together: both (h, w) have the squared norm 25 + 27 = 52, and differ by (-1, 1, 0, 0, 0):
    #       distance sqrt(2 / 52) = 1 / sqrt(26)
    #     separate: h is (0.6, 0.8) against (0.8, 0.6), distance sqrt(0.04 + 0.04) = sqrt(2) / 5; w is equal, distance 0
    #   stage 2, student [2 0; 0 0]: squares [4 0; 0 0], h = (4, 0), w = (4, 0)
    #            teacher [0 0; 0 -1]: squares [0 0; 0 1], h = (0, 1), w = (0, 1)
    #     together: (1, 0, 1, 0) / sqrt(2) against (0, 1, 0, 1) / sqrt(2), distance sqrt(4 / 2) = sqrt(2)
    #     separate: (1, 0) against (0, 1), distance sqrt(2), twice: 2 sqrt(2)
    # A second sample has the teacher's maps with another sign, which squares away: 0.
    first, second = double([[[1, 1, 1], [2, 0, 0]]]), double([[[2, 0], [0, 0]]])
    first_teacher, second_teacher = double([[[2, 0, 0], [1, 1, 1]]]), double([[[0, 0], [0, -1]]])
    student = [torch.stack([first, -first_teacher]), torch.stack([second, -second_teacher])]
    teacher = [torch.stack([first_teacher] * 2), torch.stack([second_teacher] * 2)]
    torch.testing.assert_close(pod_spatial(student, teacher), double([(1 / sqrt(26) + sqrt(2)) / 2, 0.0]))
    separate = double([(sqrt(2) / 5 + 2 * sqrt(2)) / 2, 0.0])
    torch.testing.assert_close(pod_spatial(student, teacher, separate=True), separate)


def test_pod_spatial_keeps_channels_apart() -> None:
    # Worked out by hand. One stage, two channels of one row of two.
    #   student [1 1], [1 -1]: squares all 1, h = (2, 2), w = (1, 1, 1, 1), squared norms 8 and 4
    #   teacher [2 0], [0 0]:  h = (4, 0), w = (4, 0, 0, 0), squared norms 16 and 16
    # Unit vectors with the cosine c are sqrt(2 - 2c) apart.
    #   together: c = (8 + 4) / sqrt(12 * 32) = 12 / (8 sqrt(6)) = sqrt(6) / 4, distance sqrt(2 - sqrt(6) / 2)
    #   separate: h has c = 8 / sqrt(8 * 16) = 1 / sqrt(2), distance sqrt(2 - sqrt(2)); w c = 4 / 8, distance 1
    student, teacher = [double([[[[1, 1]], [[1, -1]]]])], [double([[[[2, 0]], [[0, 0]]]])]
    torch.testing.assert_close(pod_spatial(student, teacher), double([sqrt(2 - sqrt(6) / 2)]))
    torch.testing.assert_close(pod_spatial(student, teacher, separate=True), double([sqrt(2 - sqrt(2)) + 1]))


def test_nca_worked_out_by_hand() -> None:
    # Similarities ln 4, ln 2, ln 1, so that exp(s) is 4, 2, 1; the maximum is that of class 0.
    #   class 0: -(0) + log(1 + 2/4 + 1/4) = ln 1.75 (the softmax's: 7/4)
    #   class 1: -(ln 2 - ln 4) + log(1 + 4/4 + 1/4) = ln 2 + ln 2.25 = ln 4.5 (the softmax's: 7/2)
    #   class 2: -(ln 1 - ln 4) + log(1 + 4/4 + 2/4) = ln 4 + ln 2.5 = ln 10 (the softmax's: 7)
    # With max = s_0, class 1's is -s_1 + s_0 + log(2 + e^(s_2 - s_0)) = -s_1 + log(2 e^(s_0) + e^(s_2)): its slopes
    # are 8/9, -1, 1/9 (were the maximum a constant: 4/9, -1, 1/9).
    similarities, labels = double([[log(4), log(2), log(1)]]).expand(3, 3), torch.arange(3)
    torch.testing.assert_close(nca(similarities, labels), double([log(1.75), log(4.5), log(10)]))
    found = gradient(lambda s: nca(s, labels[1:2]), similarities[:1])
    torch.testing.assert_close(found, double([[8 / 9, -1, 1 / 9]]))


def test_hinged_nca_worked_out_by_hand() -> None:
    # Similarities ln 4, ln 2, ln 1, scale 2: exp(2 s) is 16, 4, 1. A margin of ln 2 divides the target's by 2^2 = 4.
    #   class 0: 4 / (4 + 1): ln(5/4)
    #   class 1: 1 / (16 + 1): ln 17
    #   class 2: (1/4) / (16 + 4): ln 80
    # Without margin: class 0: 16/5, minus its log is negative, so 0; class 1: 4/17, ln(17/4); class 2: 1/20, ln 20.
    # Slope of class 0's to the scale, -(s_0 - margin) + (4 s_1 + 1 s_2) / 5 = -ln 2 + 0.8 ln 2 = -0.2 ln 2.
    similarities, labels = double([[log(4), log(2), log(1)]]).expand(3, 3), torch.arange(3)
    with_margin, without = (nca_hinged(similarities, labels, 2.0, margin) for margin in (log(2), 0.0))
    torch.testing.assert_close(with_margin, double([log(5 / 4), log(17), log(80)]))
    torch.testing.assert_close(without, double([0, log(17 / 4), log(20)]))
    found = gradient(lambda scale: nca_hinged(similarities[:1], labels[:1], scale, log(2)), double(2.0))
    torch.testing.assert_close(found, double(-0.2 * log(2)))


# ---- the specification's property checks, by number


def test_less_forget_is_nothing_for_equal_features_and_at_most_two() -> None:
    features = draw(0, 9, 16).float()
    assert torch.equal(cosine_distance(features, features), torch.zeros(9))
    assert torch.equal(gradient(lambda f: cosine_distance(f, features), features), torch.zeros(9, 16))
    for other in (draw(1, 9, 16).float(), -features, 7 * features):
        found = cosine_distance(features, other)
        assert ((found >= 0) & (found <= 2 + 1e-6)).all()


def test_margin_ranking_is_nothing_once_the_margin_is_kept() -> None:
    cosines, labels = torch.tensor([[0.9, 0.0, 0.4, 0.1], [0.0, 0.3, -0.3, -0.2]]), torch.tensor([0, 1])
    torch.testing.assert_close(margin_ranking(cosines, labels, 2, 0.5, 2), torch.zeros(2), atol=1e-7, rtol=0)
    assert (margin_ranking(cosines, labels, 2, 0.51, 2) > 0).all()


@both_ways
@pytest.mark.parametrize("maps", [draw(0, 5, 3, 4, 4).float(), torch.zeros(5, 3, 4, 4)])
def test_pod_is_nothing_for_equal_maps(maps: Tensor, separate: bool) -> None:
    assert torch.equal(pod_spatial([maps], [maps], separate), torch.zeros(5))
    assert torch.equal(gradient(lambda a: pod_spatial([a], [maps], separate), maps), torch.zeros_like(maps))


@both_ways
def test_pod_spatial_is_positive_and_knows_no_scale_of_a_stage(separate: bool) -> None:
    student, teacher = draw_stages(0), draw_stages(9)
    scaled = [factor * a for factor, a in zip([3, -0.1, 100], student, strict=True)]
    found = pod_spatial(student, teacher, separate)
    torch.testing.assert_close(pod_spatial(scaled, teacher, separate), found)
    assert (found > 0).all()


def test_the_margin_cancels_in_the_codes_nca_and_the_papers_is_never_negative() -> None:
    similarities, labels = draw(0, 50, 5), draw_labels(0, 50, 5)
    torch.testing.assert_close(nca(3 * (similarities - 0.6), labels), nca(3 * similarities, labels))
    with_margin, without = (nca_hinged(similarities, labels, 3.0, margin) for margin in (0.6, 0.0))
    assert (with_margin >= without).all()
    assert (without >= 0).all()
    assert 0 < (with_margin == 0).sum() < (without == 0).sum()


def test_official_pod_flat_is_twice_the_original() -> None:
    student, teacher = draw(0, 9, 6), draw(1, 9, 6)
    original = 1 - F.cosine_similarity(student, teacher)
    official = F.pairwise_distance(F.normalize(student), F.normalize(teacher), eps=0) ** 2
    torch.testing.assert_close(official, 2 * original)
    torch.testing.assert_close(cosine_distance(student, teacher), original)


# ---- what the equations don't say


@pytest.mark.parametrize("old", [0, 2])
def test_a_batch_without_old_samples_ranks_nothing(old: int) -> None:
    cosines, labels = draw(0, 4, 5), old + draw_labels(0, 4, 5 - old)
    assert margin_ranking(cosines, labels, old, 0.5, 2).shape == (0,)
    assert torch.equal(gradient(lambda c: margin_ranking(c, labels, old, 0.5, 2), cosines), torch.zeros_like(cosines))


@both_ncas
def test_a_single_class_has_nothing_to_tell_apart(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
    similarities, labels = draw(0, 4, 1).float(), torch.zeros(4, dtype=torch.long)
    assert torch.equal(loss(similarities, labels), torch.zeros(4))
    assert torch.equal(gradient(lambda s: loss(s, labels), similarities), torch.zeros(4, 1))


@both_ncas
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_extreme_similarities_stay_finite(size: float, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
    similarities, labels = size * draw(0, 6, 5).float(), draw_labels(0, 6, 5)
    assert loss(similarities, labels).isfinite().all()
    assert gradient(lambda s: loss(s, labels), similarities).isfinite().all()


@both_ways
def test_a_dead_map_gets_no_gradient(separate: bool) -> None:
    dead, teacher = torch.zeros(2, 3, 4, 4), [draw(0, 2, 3, 4, 4).float()]
    assert pod_spatial([dead], teacher, separate).isfinite().all()
    assert torch.equal(gradient(lambda a: pod_spatial([a], teacher, separate), dead), dead)


def test_a_teacher_in_half_precision_is_compared_in_the_students() -> None:
    student, teacher = [a.float() for a in draw_stages(0)], [a.bfloat16() for a in draw_stages(9)]
    assert torch.equal(pod_spatial(student, teacher), pod_spatial(student, [a.float() for a in teacher]))


def test_a_backbone_without_stages_has_nothing_to_compare() -> None:
    assert torch.equal(pod_spatial((), ()), torch.zeros(1))
