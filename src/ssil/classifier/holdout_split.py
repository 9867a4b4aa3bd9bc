"""The hold-out set: which of the images that arrive are never trained on. Near-duplicates stay together."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.near_duplicates import HOLDOUT_SHARE, draw_groups, threshold
from ssil.core.randomness import Randomness
from ssil.learning.memory import FixedBudget

MAX_PER_CLASS, ONE_IN, MIN_CLASS_SIZE = 10, 5, 5
"""Of a class one image in five is held out, at most ten, and none of a class with fewer than five."""
BUDGET_SHARE = 0.2
"""The hold-out set's largest share of all kept images."""

Vectors = Callable[[Sequence[ImageFile]], Tensor]
"""Return vectors (N, width) of length 1 by which images are compared."""


def hold_out(
    images: LabelledImages,
    held: Sequence[Sequence[ImageFile]],
    names: Sequence[str],
    budget: int,
    random: Randomness,
    vectors: Vectors | None = None,
    learnt: Sequence[int] = (),
) -> tuple[LabelledImages, list[tuple[ImageFile, ...]]]:
    """Split newly arrived images into a training set and the hold-out set.

    Of a class with five or more images, one in five is held out, at most ten; with more images of a known class its
    hold-out set grows, by half of those that arrive at most. Images that are alike are on the same side of the split
    as far as the class allows it. Of images that were learnt by earlier updates the features are gone: those that
    arrive now may be like them.

    Args:
        images: The newly arrived images.
        held: The hold-out images of each class that was known before.
        names: All classes, the known ones first.
        budget: The largest size of the whole hold-out set. If the images above are more, the classes share the
            budget equally.
        random: Draws the hold-out images.
        vectors: By which images are compared; None if no two are alike.
        learnt: How many images of each known class were learnt before.

    Returns:
        The images to train on, and the hold-out set of each class.
    """
    known = {image.original_digest for group in held for image in group}
    groups: dict[str, list[ImageFile]] = {name: [] for name in names}
    for image, name in images:
        if image.original_digest not in known:
            groups[name].append(image)
    alike = _Likeness.of(groups.values(), held, vectors)
    own = [*held, *[()] * (len(names) - len(held))]
    before = [*learnt, *[0] * (len(names) - len(learnt))]
    drawn = [
        [*kept, *_draw(groups[name], kept, count, alike, random.at("quiz", name))]
        for name, kept, count in zip(names, own, before, strict=True)
    ]
    sizes = FixedBudget(budget).quotas([*map(len, drawn)])
    holdout = [tuple(group[:size]) for group, size in zip(drawn, sizes, strict=True)]
    taken = known | {image.original_digest for group in holdout for image in group}
    return [(image, name) for image, name in images if image.original_digest not in taken], holdout


@dataclass(frozen=True)
class _Likeness:
    """Vectors of images by their checksums, and the cosine above which two images are alike."""

    vectors: dict[str, Tensor]
    alike_above: float

    @classmethod
    def of(
        cls, arrived: Iterable[Sequence[ImageFile]], held: Sequence[Sequence[ImageFile]], vectors: Vectors | None
    ) -> "_Likeness":
        """Compare the arrived images and those held out, each given by class: the known classes come first."""
        pairs = [(image, label) for groups in (arrived, held) for label, group in enumerate(groups) for image in group]
        if vectors is None or not pairs:
            return cls({}, 1.0)
        found = vectors([image for image, _ in pairs])
        level = threshold(found, torch.tensor([label for _, label in pairs]), HOLDOUT_SHARE)
        return cls({image.original_digest: row for (image, _), row in zip(pairs, found, strict=True)}, level)

    def groups(self, images: Sequence[ImageFile], wanted: int) -> list[ImageFile]:
        """Return `wanted` images in groups that no other one of the images is like, as far as there are such."""
        if not self.vectors or not images or not wanted:
            return [*images[:wanted]]
        drawn = draw_groups(self._stacked(images), self.alike_above, wanted)
        return [images[index] for group in drawn for index in group]

    def like(self, images: Sequence[ImageFile], others: Sequence[ImageFile]) -> list[ImageFile]:
        """Return the images that are like one of the others."""
        if not self.vectors or not images or not others:
            return []
        near = self._stacked(images) @ self._stacked(others).T > self.alike_above
        return [image for image, found in zip(images, near.any(1).tolist(), strict=True) if found]

    def _stacked(self, images: Sequence[ImageFile]) -> Tensor:
        return torch.stack([self.vectors[image.original_digest] for image in images])


def _draw(
    arrived: Sequence[ImageFile],
    held: Sequence[ImageFile],
    learnt: int,
    alike: _Likeness,
    generator: torch.Generator,
) -> list[ImageFile]:
    """Draw the images by which a class's hold-out set grows, whatever the order in which its images arrived.

    Images that are like one of the hold-out set are the first to join it.
    """
    total = len(arrived) + len(held) + learnt
    quota = min(MAX_PER_CLASS, total // ONE_IN) if total >= MIN_CLASS_SIZE else 0
    most = min(len(arrived) // 2 if held or learnt else len(arrived), max(0, quota - len(held)))
    ordered = sorted(arrived, key=lambda image: image.digest)
    shuffled = [ordered[index] for index in torch.randperm(len(ordered), generator=generator).tolist()]
    joining = alike.like(shuffled, held)[:most]
    rest = [image for image in shuffled if image not in joining]
    return [*joining, *alike.groups(rest, most - len(joining))]
