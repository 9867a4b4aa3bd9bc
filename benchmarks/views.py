"""Which views of an image should a frozen backbone see? Judged on training images, by cross-validation.

python benchmarks/views.py FOLDER [--cache VIEWS.npz]

FOLDER has a sub-folder for each class. For each set of views, the features of an image's views are averaged, for the
images that `slda` learns and for those that it predicts. Near-duplicates are left out together, as `ssil learn` does
where it measures itself, in the same ten folds for all sets; `slda` chooses its shrinkage itself. Prints the accuracy
in percent. CACHE keeps the features of all views.
"""

import argparse
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from growing import album
from ssil.classifier.cross_validation import ValidatedImages, assign_folds, near_groups, predicted_by_others
from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.image_file import ImageFile
from ssil.classifier.near_duplicates import SHARE, feature_vectors
from ssil.core.classes import ClassTable
from ssil.methods.slda import LinearDiscriminants
from weeks import start

SIDE = 448
"""Photographs are reduced to this short side first: twice what the backbone sees."""
CENTRES = (0.75, 0.5)
"""The sides of the central views, as fractions of the image's."""
CORNER = 0.67
"""The side of the views at the corners."""
SETS = {
    "the whole image": (0,),
    "and its mirror image": (0, 1),
    "and its centre, 3/4 of the side": (0, 2),
    "and its centre, 1/2 of the side": (0, 3),
    "and both centres": (0, 2, 3),
    "and four corners, 2/3 of the side": (0, 4, 5, 6, 7),
    "and all of these": tuple(range(8)),
}
"""The views of each set, as positions in what `views` returns."""


def views(image: Image.Image) -> list[Image.Image]:
    """Return the whole image, its mirror image, two centres, and four corners, two of them mirrored."""
    mirrored = ImageOps.mirror(image)
    corners = [part(one, CORNER, 0, down) for down in (0, 1) for one in (image, mirrored)]
    return [image, mirrored, *(part(image, side, 0.5, 0.5) for side in CENTRES), *corners]


def part(image: Image.Image, side: float, right: float, down: float) -> Image.Image:
    """Return a part of an image whose sides are a fraction of the image's, at a place between 0 and 1 each way."""
    width, height = round(side * image.width), round(side * image.height)
    left, top = round(right * (image.width - width)), round(down * (image.height - height))
    return image.crop((left, top, left + width, top + height))


def encoded_views(file: ImageFile) -> Iterator[ImageFile]:
    """Yield the views of an encoded image, as encoded images."""
    image = ImageOps.exif_transpose(Image.open(BytesIO(file.read()))).convert("RGB")
    scale = min(1.0, SIDE / min(image.size))
    reduced = image.resize((round(scale * image.width), round(scale * image.height)), Image.Resampling.BICUBIC)
    for view in views(reduced):
        content = BytesIO()
        view.save(content, "PNG", compress_level=0)
        yield ImageFile.from_bytes(file.name, content.getvalue())


def view_features(images: list[ImageFile]) -> Tensor:
    """Return the features (N, views, width) of all views of images."""
    settings, weights = start("default", {"views": 1})
    network, parts = trained_network(settings, None, weights), list[Tensor]()
    for first in range(0, len(images), 50):
        some = [one for image in images[first : first + 50] for one in encoded_views(image)]
        (found,) = network.with_features([some])
        parts += [one.features() for one in found if one.features]
        print(f"features: {first} of {len(images)}", flush=True)
    return torch.stack(parts).view(len(images), -1, len(parts[0]))


def read(folder: str, cache: Path | None) -> tuple[Tensor, Tensor]:
    """Return the features (N, views, width) of a folder's images and their classes, from the cache if it is there."""
    if cache and cache.exists():
        known = np.load(cache)
        return torch.from_numpy(known["features"]), torch.from_numpy(known["labels"])
    groups = album(folder)
    features = view_features([image for group in groups.values() for image in group])
    labels = torch.arange(len(groups)).repeat_interleave(torch.tensor([*map(len, groups.values())]))
    if cache:
        np.savez(cache, features=features.numpy(), labels=labels.numpy())
    return features, labels


def accuracy(features: Tensor, labels: Tensor, folds: Tensor) -> float:
    """Return the percentage of images (N, width) that `slda` recognises after it has learnt those of other folds."""
    names = tuple(map(str, range(int(labels.max()) + 1)))
    scorer, classes = LinearDiscriminants(), ClassTable(names, (0, len(names)))
    scorer.add(scorer.embed(features.double()), labels, len(names))
    scorer.solve()
    found, _ = predicted_by_others(scorer, classes, ValidatedImages.of(features, labels, labels), folds)
    return 100 * float((found.predicted == labels).float().mean())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--cache", type=Path)
    given = parser.parse_args()
    features, labels = read(given.folder, given.cache)
    folds = assign_folds(near_groups(feature_vectors(features[:, 0]), labels, SHARE), labels)
    for name, chosen in SETS.items():
        print(
            f"{accuracy(features[:, list(chosen)].mean(1), labels, folds):.1f}", len(chosen), name, sep="\t", flush=True
        )


if __name__ == "__main__":
    main()
