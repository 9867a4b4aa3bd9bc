"""Near-duplicates: images of one class that are alike, such as photographs of the same thing from the same minute.

If some of them are trained on and others are held out, the measured accuracy is that of images seen before. Two images
are alike if their vectors (features of a frozen backbone, or thumbnails) have a cosine above a threshold that the
images themselves set: most images have no image of another class that is as near. docs/adr/0013 says why.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.classifier.image_file import ImageFile
from ssil.classifier.images import image_samples
from ssil.data.image_index import Preprocessing
from ssil.learning.feature_statistics import tukey

SHARE = 0.95
"""The share of the images that are less similar to every image of another class than two images that are alike."""
HOLDOUT_SHARE = 0.99
"""The same where a hold-out set is drawn. Groups that are too large for it are never drawn, so that with a lower
threshold unusual images would be held out."""
COMPARED, OTHERS = 2000, 5000
"""How many images at most are compared with how many others to find the threshold."""
UNCOMPARED, FEW = 0.9, 50
"""The threshold where there is no image of another class, or where there are fewer images than this."""
DOUBLED, MIN_DOUBLED = 0.3, 5
"""Two classes are one under two names if the nearest of all images is in the other one for so large a share of both
classes' images (a half by chance; at most 0.21 in clothing and 0.08 in groceries), and each has so many."""
STEPS = 4
"""In so many equal steps the threshold rises to 1 for a class whose images are all alike."""
THUMBNAIL = 16
"""Pixels per side."""
TRIES = 20
"""Images are tried for each one that is to be held out, before the threshold rises."""


def feature_vectors(features: Tensor) -> Tensor:
    """Return vectors (N, width) of length 1 for features of a backbone; their square roots are compared.

    >>> feature_vectors(torch.tensor([[9.0, 16.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return tukey(features, power=0.5)


def thumbnail_vectors(images: Sequence[ImageFile], channels: int) -> Tensor:
    """Return vectors of length 1 for images whose features are not known: the pixels of small copies, less the mean."""
    preprocessing = Preprocessing(THUMBNAIL, channels, "none")
    pixels = image_samples(images, [0] * len(images), preprocessing).images.fetch(torch.arange(len(images)))
    flat = pixels.flatten(1).float()
    return F.normalize(flat - flat.mean(1, keepdim=True))


def threshold(vectors: Tensor, labels: Tensor, share: float = SHARE, earlier: float | None = None) -> float:
    """Return the cosine above which two images of a class are alike, for vectors (N, width) of several classes.

    An earlier threshold that was found so is kept: the accuracy that was told of a version, and of each class, then
    hardly changes when the next one is measured.

    For at most `COMPARED` images, spread over all, the cosine with the nearest image of another class is found among at
    most `OTHERS`; for a `share` of them it is not above the threshold. With a share above 1 no two images are alike.
    Classes that look like one under two names count as one: they would raise the threshold, and with it the accuracy
    that is told, also that of a version which has learnt one of them alone.
    """
    if share > 1:
        return 2.0
    if earlier not in (None, UNCOMPARED):
        return earlier
    if len(labels) < FEW or bool((labels == labels[0]).all()):
        return UNCOMPARED
    some, others = (_spread(len(labels), most) for most in (COMPARED, OTHERS))
    cosines = vectors[some] @ vectors[others].T
    things = _merged(cosines.masked_fill(some[:, None] == others, -1.0).argmax(1), labels[some], labels[others])
    nearest = cosines.masked_fill(things[labels[some], None] == things[labels[others]], -1.0).amax(1)
    return float(torch.quantile(nearest.double(), share))


def _merged(nearest: Tensor, labels: Tensor, others: Tensor) -> Tensor:
    """Return a number for each class, the same for classes that are one under two names, unless all would be one.

    Args:
        nearest: (n,) for each compared image the position of the nearest other image.
        labels: (n,) the classes of the compared images.
        others: (m,) the classes of the images at these positions.
    """
    classes = int(max(labels.max(), others.max())) + 1
    sizes = torch.bincount(labels, minlength=classes)
    taken = torch.bincount(labels * classes + others[nearest], minlength=classes**2).view(classes, classes)
    shares = (taken + taken.T) / (sizes[:, None] + sizes).clamp(min=1)
    large = sizes >= MIN_DOUBLED
    found = components((shares >= DOUBLED) & large[:, None] & large)
    return found if len(found[sizes > 0].unique()) > 1 else torch.arange(classes)


def _spread(count: int, most: int) -> Tensor:
    """Return at most `most` of `count` positions, at equal distances."""
    return torch.linspace(0, count - 1, min(count, most)).round().long()


def class_groups(vectors: Tensor, alike_above: float) -> Tensor:
    """Return for each image of one class the number of its group: images connected by chains of images that are alike.

    The threshold is raised in steps until no group has more than half of the images, so that a model can be fitted
    without any group; in the last step no two images are alike.
    """
    cosines, groups = vectors @ vectors.T, torch.arange(len(vectors))
    for level in _levels(alike_above):
        groups = components(cosines > level)
        if int(torch.bincount(groups).max()) <= len(vectors) / 2:
            break
    return groups


def components(adjacent: Tensor) -> Tensor:
    """Return for each node of a graph (N, N) the smallest number of a node that is connected to it.

    >>> chain = torch.tensor([[0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]], dtype=torch.bool)
    >>> components(chain).tolist()
    [0, 1, 0, 0]
    """
    found, before = torch.arange(len(adjacent)), torch.tensor([])
    while not torch.equal(found, before):
        before = found
        found = torch.minimum(found, torch.where(adjacent, found, len(adjacent)).amin(1))
        found = found[found]
    return found


def draw_groups(vectors: Tensor, alike_above: float, wanted: int) -> list[list[int]]:
    """Return groups of images of one class with `wanted` images in all, which no other image of the class is like.

    Images are tried in their order: with one image come all that are alike to it, those alike to these, and so on; if
    these are more than still wanted, none of them is taken. If too few are found, the threshold is raised in steps; in
    the last one no two images are alike, as for a class whose images all are.

    Args:
        vectors: (N, width) of length 1; the order is that in which they are tried.
        alike_above: The cosine above which two images are alike.
        wanted: The number of images to draw, at most N.
    """
    found: list[list[int]] = []
    for level in _levels(alike_above):
        found = _draw_at(vectors, level, wanted)
        if sum(map(len, found)) >= wanted:
            break
    return found


def _levels(alike_above: float) -> list[float]:
    """Return rising thresholds; the last is above all cosines."""
    return [*(alike_above + (1 - alike_above) * step / STEPS for step in range(STEPS)), 2.0]


def _draw_at(vectors: Tensor, alike_above: float, wanted: int) -> list[list[int]]:
    groups, left, seen = list[list[int]](), wanted, set[int]()
    for start in range(min(len(vectors), TRIES * wanted)):
        if not left:
            break
        if start in seen:
            continue
        group = _component(vectors, start, alike_above, left)
        seen |= {*group}
        if len(group) <= left:
            groups.append(group)
            left -= len(group)
    return groups


def _component(vectors: Tensor, start: int, alike_above: float, most: int) -> list[int]:
    """Return the images that are connected to one by a chain of images that are alike; some of them if above `most`."""
    member = torch.zeros(len(vectors), dtype=torch.bool)
    member[start] = True
    new = torch.tensor([start])
    while len(new) and int(member.sum()) <= most:
        near = (vectors @ vectors[new].T > alike_above).any(1) & ~member
        member |= near
        new = near.nonzero()[:, 0]
    return [int(index) for index in member.nonzero()[:, 0]]
