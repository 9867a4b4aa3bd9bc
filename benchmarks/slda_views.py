"""Does `slda` gain by features of random views of each training image? Judged on training images, by cross-validation.

python benchmarks/slda_views.py FOLDER [--views 5] [--cache VIEWS.npz]

FOLDER has a sub-folder for each class. Near-duplicates are left out together, as `ssil learn` does where it measures
itself: images of one series would otherwise judge what was learnt from their like, and hide what a view is good for.
A row has the images' test views alone, or some random training views (crops and flips, as `--tune` draws them) beside;
a column is a shrinkage of the covariance. Accuracy on the left-out images' test views, and on one random view of each.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from growing import album
from ssil.classifier.cross_validation import assign_folds, near_groups
from ssil.classifier.image_file import ImageFile
from ssil.classifier.images import image_samples
from ssil.classifier.near_duplicates import SHARE, feature_vectors
from ssil.classifier.prediction import execution_context
from ssil.core.randomness import Randomness
from ssil.learning.shrinkage import shrunk
from ssil.nn.efficientnet import efficientnet_lite0
from ssil.nn.pretrained import load_backbone
from weeks import start

SHRINKAGES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


@torch.inference_mode()
def view_features(images: list[ImageFile], views: int) -> Iterator[Tensor]:
    """Yield the features (B, 1 + views, width) of images: of the test view, then of random training views."""
    settings, weights = start("eeil-tuned", {})
    network = efficientnet_lite0(3, "batch").eval()
    assert weights is not None
    load_backbone(network, weights)
    stored, transform = (
        image_samples(images, [0] * len(images), settings.preprocessing()).images,
        execution_context(settings).transform,
    )
    for rows in torch.arange(len(images)).split(32):
        inputs = [transform.test(stored.fetch(rows))]
        for view in range(views):
            draws = transform.draw(len(rows), Randomness(0).at("view", view, int(rows[0])))
            inputs.append(transform.train(stored.fetch(rows, draws), draws))
        print(f"features: {int(rows[-1]) + 1} of {len(images)}", flush=True)
        yield torch.stack([network(one)[0] for one in inputs], 1)


def read(folder: str, views: int, cache: Path | None) -> tuple[Tensor, Tensor]:
    """Return vectors (N, 1 + views, width) of a folder's images and their classes, from the cache if it is there."""
    if cache and cache.exists():
        known = np.load(cache)
        return torch.from_numpy(known["features"]), torch.from_numpy(known["labels"])
    groups = album(folder)
    features = torch.cat([*view_features([image for group in groups.values() for image in group], views)])
    labels = torch.arange(len(groups)).repeat_interleave(torch.tensor([*map(len, groups.values())]))
    if cache:
        np.savez(cache, features=features.numpy(), labels=labels.numpy())
    return features, labels


def fold_numbers(vectors: Tensor, labels: Tensor) -> Tensor:
    """Return one of ten folds for each image; near-duplicates are in one."""
    return assign_folds(near_groups(vectors, labels, SHARE), labels)


def predictions(vectors: Tensor, labels: Tensor, tested: Tensor, shrinkage: float) -> Tensor:
    """Return the classes of vectors (M, width) by a linear discriminant analysis of others (N, width)."""
    counts = torch.bincount(labels)
    means = (
        torch.zeros(len(counts), vectors.shape[1], dtype=vectors.dtype).index_add_(0, labels, vectors) / counts[:, None]
    )
    rest = vectors - means[labels]
    weight = torch.linalg.solve(shrunk(rest.T @ rest / len(rest), shrinkage), means.T)
    scores: Tensor = tested @ weight - (means.T * weight).sum(0) / 2
    return scores.argmax(1)


def accuracy(vectors: Tensor, labels: Tensor, folds: Tensor, views: int, shrinkage: float) -> tuple[float, float]:
    """Return the percentage of images that others recognise with so many views: by the test view, by a random one."""
    right = torch.zeros(2)
    for fold in folds.unique():
        kept, left = folds != fold, folds == fold
        learnt, tested = vectors[kept, :views].flatten(0, 1), vectors[left, :2].flatten(0, 1)
        found = predictions(learnt, labels[kept].repeat_interleave(views), tested, shrinkage).view(-1, 2)
        right += (found == labels[left, None]).sum(0)
    test, random = (100 * right / len(labels)).tolist()
    return test, random


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--views", type=int, default=5)
    parser.add_argument("--cache", type=Path)
    given = parser.parse_args()
    features, labels = read(given.folder, given.views, given.cache)
    vectors = feature_vectors(features.flatten(0, 1)).view(features.shape).double()
    folds = fold_numbers(vectors[:, 0].float(), labels)
    print("views", *SHRINKAGES, sep="\t")
    for views in (1, *range(3, 2 + given.views, 3)):
        found = [accuracy(vectors, labels, folds, views, shrinkage) for shrinkage in SHRINKAGES]
        print(views - 1, *(f"{test:.1f} ({random:.1f})" for test, random in found), sep="\t", flush=True)


if __name__ == "__main__":
    main()
