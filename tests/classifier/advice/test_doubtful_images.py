"""Doubtful images, in sets where it is known which are."""

import math
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter
from torch import Tensor

from ssil.classifier.advice.doubtful_images import (
    Judgement,
    blurred_images,
    dark_images,
    doubtful_labels,
    far_images,
    judge,
    nearly_same,
)
from ssil.classifier.advice.image_measures import COPY_SIDE, ImageMeasures, measure_images, sharpness, small_copy
from ssil.classifier.advice.leave_one_out import LeftOut, likeliest_temperature
from ssil.classifier.image_file import ImageFile


def clusters(images: int = 90, classes: int = 3) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(images) % classes
    return torch.eye(8)[labels] * 3 + torch.rand(images, 8, generator=random), labels


def test_what_is_said_of_each_image() -> None:
    """The same numbers, class by class and image by image."""
    features, labels = clusters()
    labels[5] = 0
    statistics = LeftOut.of(features, labels)
    found, distances = judge(statistics), statistics.distances(torch.arange(90))
    temperature = likeliest_temperature(statistics)
    for row in range(90):
        weights = [math.exp(-float(one) / 2 / temperature) for one in distances[row]]
        own = weights[labels[row]] / sum(weights)
        assert found.odds[row] == pytest.approx((1 - own) / own / 2)
        others = {label: weights[label] for label in range(3) if label != labels[row]}
        assert found.likeliest[row] == max(others, key=lambda label: others[label])
        assert found.distance[row] == pytest.approx(float(distances[row, labels[row]]))
    assert found.accuracy == pytest.approx(float((distances.argmin(1) == labels).double().mean()))
    for label in range(3):
        members = [row for row in range(90) if labels[row] == label]
        nearer = [sum(float(distances[row, other] < distances[row, label]) for row in members) for other in range(3)]
        assert found.nearer[label].tolist() == pytest.approx([one / len(members) for one in nearer])


def test_pairs_of_very_many_classes_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = clusters()
    monkeypatch.setattr("ssil.classifier.advice.doubtful_images.MAX_PAIRED", 2)
    few, all_of = judge(LeftOut.of(features, labels)), LeftOut.of(features, labels)
    assert few.nearer.shape == (0, 0)
    monkeypatch.undo()
    assert judge(all_of).odds.tolist() == few.odds.tolist()


def test_wrong_labels_are_found_and_right_ones_are_not() -> None:
    features, labels = clusters()
    wrong = [4, 30, 77]
    labels[wrong] = (labels[wrong] + 1) % 3
    found = judge(LeftOut.of(features, labels))
    assert doubtful_labels(found, labels).nonzero()[0].tolist() == wrong
    assert found.likeliest[wrong].tolist() == [1, 0, 2]


def test_labels_of_tiny_classes_are_not_judged() -> None:
    features, labels = clusters()
    labels[[4, 30]] = 3
    assert not doubtful_labels(judge(LeftOut.of(features, labels)), labels)[[4, 30]].any()


def test_far_images_are_found() -> None:
    features, labels = clusters()
    assert not far_images(judge(LeftOut.of(features, labels))).any()
    features[11] = torch.tensor([0.0, 0, 0, 0, 9, 0, 0, 9])
    assert far_images(judge(LeftOut.of(features, labels))).nonzero()[0].tolist() == [11]
    alone = Judgement(np.ones(1), np.zeros(1, np.int64), np.array([np.inf]), np.zeros((1, 1)), 1.0)
    assert not far_images(alone).any()


def scene(seed: int) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((200, 200), Image.Resampling.NEAREST)


def encoded(image: Image.Image, quality: int = 92) -> ImageFile:
    file = BytesIO()
    image.save(file, "JPEG", quality=quality)
    return ImageFile.from_bytes("a.jpg", file.getvalue())


def test_blurred_and_dark_images_are_found() -> None:
    images = [scene(seed) for seed in range(12)]
    images[3] = images[3].filter(ImageFilter.GaussianBlur(4))
    images[8] = ImageEnhance.Brightness(images[8]).enhance(0.25)
    measures, labels = measure_images([*map(encoded, images)]), torch.arange(12) % 2
    assert blurred_images(measures, labels).nonzero()[0].tolist() == [3]
    assert dark_images(measures, labels).nonzero()[0].tolist() == [8]


def test_a_dark_class_is_not_a_class_of_dark_images() -> None:
    images = [scene(seed) for seed in range(12)]
    images[:5] = [ImageEnhance.Brightness(image).enhance(0.25) for image in images[:5]]
    measures, labels = measure_images([*map(encoded, images)]), (torch.arange(12) >= 5).long()
    assert not dark_images(measures, labels).any()


def test_what_cant_be_read_any_more_is_not_judged() -> None:
    def gone() -> bytes:
        raise FileNotFoundError

    measures = measure_images([encoded(scene(0)), ImageFile("gone.jpg", "0" * 32, gone)])
    assert np.isnan(measures.sharpness).tolist() == [False, True]
    assert not blurred_images(measures, torch.zeros(2, dtype=torch.long)).any()
    assert not dark_images(measures, torch.zeros(2, dtype=torch.long)).any()
    assert measure_images([]).copies.shape == (0, 3 * COPY_SIDE**2)


def test_sharpness_is_what_its_name_says() -> None:
    """Against loops over all pixels; contrast does not change it."""
    grey = np.random.default_rng(0).normal(100, 30, (9, 9))
    laplacian = [
        grey[y - 1, x] + grey[y + 1, x] + grey[y, x - 1] + grey[y, x + 1] - 4 * grey[y, x]
        for y in range(1, 8)
        for x in range(1, 8)
    ]
    gradient = [
        (grey[y + 1, x] - grey[y, x]) ** 2 + (grey[y, x + 1] - grey[y, x]) ** 2 for y in range(8) for x in range(8)
    ]
    expected = math.log(np.mean(np.square(laplacian)) / np.mean(gradient))
    assert sharpness(grey) == pytest.approx(expected, abs=1e-4)
    assert sharpness(grey / 2) == pytest.approx(expected, abs=1e-4)


def test_a_small_copy_survives_another_encoding() -> None:
    pixels = np.asarray(scene(0).resize((160, 160)))
    brighter = np.asarray(ImageEnhance.Brightness(scene(0)).enhance(0.8).resize((160, 160)))
    assert small_copy(pixels) @ small_copy(brighter) > 0.99
    assert small_copy(pixels) @ small_copy(np.asarray(scene(1).resize((160, 160)))) < 0.5
    assert not small_copy(np.full((160, 160, 3), 7, np.uint8)).any()


def test_nearly_the_same_image_in_two_classes() -> None:
    images = [scene(0), scene(1), scene(0), scene(2), scene(1)]
    measures = measure_images([encoded(image, 60 + 5 * at) for at, image in enumerate(images)])
    alike = torch.eye(8)[[0, 1, 0, 2, 1]]
    labels = torch.tensor([0, 0, 1, 1, 0])  # the second and the last are of one class
    assert [*nearly_same(measures, alike, labels)] == [(0, 2)]
    other = torch.eye(8)[[0, 1, 3, 2, 1]]
    assert [*nearly_same(measures, other, labels)] == []
    third = measure_images([encoded(scene(0), 60 + at) for at in (0, 0, 9)])  # the first two are nearer to each other
    assert [*nearly_same(third, torch.ones(3, 3), torch.tensor([0, 0, 1]))] == []
    blank = ImageMeasures(np.zeros(2), np.zeros(2), np.zeros((2, 768)))
    assert [*nearly_same(blank, torch.ones(2, 3), torch.tensor([0, 1]))] == []
