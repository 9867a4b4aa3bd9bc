"""Near-duplicates: against slow, literal forms."""

import pytest
import torch
from torch import Tensor

from ssil.classifier.near_duplicates import FEW, class_groups, components, draw_groups, threshold, thumbnail_vectors
from tiny_classifiers import labelled_images


def random_vectors(count: int, width: int, seed: int = 0) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(count, width, generator=torch.Generator().manual_seed(seed)))


def literal_components(adjacent: Tensor) -> list[int]:
    """One node after the other, with a list of those still to visit."""
    found = [-1] * len(adjacent)
    for start in range(len(adjacent)):
        left = [start] if found[start] < 0 else []
        while left:
            node = left.pop()
            if found[node] < 0:
                found[node] = start
                left += adjacent[node].nonzero()[:, 0].tolist()
    return found


@pytest.mark.parametrize("seed", range(5))
def test_components_are_those_of_a_search(seed: int) -> None:
    edges = torch.rand(40, 40, generator=torch.Generator().manual_seed(seed)) < 0.02
    adjacent = edges | edges.T
    assert components(adjacent).tolist() == literal_components(adjacent)


def test_a_long_chain_is_one_component() -> None:
    chain = torch.diag(torch.ones(99, dtype=torch.bool), 1)
    assert components(chain | chain.T).tolist() == [0] * 100


def test_the_threshold_is_a_quantile_of_the_nearest_image_of_another_class() -> None:
    vectors, labels = random_vectors(60, 4), torch.arange(60) % 3
    nearest = [max(float(vectors[a] @ vectors[b]) for b in range(60) if labels[a] != labels[b]) for a in range(60)]
    expected = float(torch.tensor(nearest).double().quantile(0.95))
    assert threshold(vectors, labels, 0.95) == pytest.approx(expected, abs=1e-6)
    assert threshold(vectors[:40], labels[:40]) == threshold(vectors, labels * 0) == 0.9


def clustered(labels: Tensor, noise: float = 0.3, seed: int = 0) -> Tensor:
    """Vectors around one random direction for each class."""
    means = random_vectors(int(labels.max()) + 1, 16, seed)
    return torch.nn.functional.normalize(means[labels] + noise * random_vectors(len(labels), 16, seed + 1))


def test_a_class_under_two_names_does_not_raise_the_threshold() -> None:
    labels = torch.arange(120) % 6
    vectors, divided = clustered(labels), labels.clone()
    divided[:60:6] = 6  # half of the first class under another name
    nearest = [max(float(vectors[a] @ vectors[b]) for b in range(120) if labels[a] != labels[b]) for a in range(120)]
    expected = float(torch.tensor(nearest).double().quantile(0.95))
    assert threshold(vectors, divided) == pytest.approx(expected, abs=1e-6)
    raised = [max(float(vectors[a] @ vectors[b]) for b in range(120) if divided[a] != divided[b]) for a in range(120)]
    assert float(torch.tensor(raised).double().quantile(0.95)) > expected + 0.1
    few = labels.clone()
    few[:18:6] = 6  # too few to tell
    assert threshold(vectors, few) > expected


def test_an_earlier_threshold_is_kept_unless_there_were_too_few_images_to_find_it() -> None:
    vectors, labels = random_vectors(600, 4), torch.arange(600) % 3
    assert threshold(vectors, labels, earlier=0.7) == 0.7
    alone = threshold(vectors[: FEW - 1], labels[: FEW - 1])
    assert threshold(vectors, labels, earlier=alone) == threshold(vectors, labels) != alone


@pytest.mark.parametrize("seed", range(4))
def test_drawn_groups_are_whole_and_have_the_wanted_size(seed: int) -> None:
    vectors = random_vectors(30, 3, seed)
    groups = draw_groups(vectors, 0.95, 6)
    drawn = {index for group in groups for index in group}
    assert len(drawn) == sum(map(len, groups)) == 6
    whole = components(vectors @ vectors.T > 0.95)
    if any(int((whole == whole[start]).sum()) == 1 for start in range(30)):  # else the threshold was raised
        assert all(len({int(whole[index]) for index in group}) == 1 for group in groups)


def test_groups_never_have_more_than_half_of_a_class() -> None:
    alike = torch.nn.functional.normalize(torch.ones(10, 8) + 1e-3 * random_vectors(10, 8))
    assert int(torch.bincount(class_groups(alike, 0.5)).max()) <= 5
    pairs = random_vectors(5, 64).repeat_interleave(2, 0)
    assert class_groups(pairs, 0.9).tolist() == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]


def test_thumbnails_tell_patterns_apart() -> None:
    images = [image for image, _ in labelled_images(["ant", "bee"], 3)]
    cosines = thumbnail_vectors(images, channels=1) @ thumbnail_vectors(images, channels=1).T
    assert float(cosines[:3, :3].min()) > 0.9 > 0.7 > float(cosines[:3, 3:].max())
