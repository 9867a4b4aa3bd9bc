"""Tuning of a network's last stage on stored maps, for machines on which training on images takes too long.

`ssil learn --tune last` trains the last stage of efficientnet_lite0 and the head; the stages before it stay as they
are. What these give for an image's test view, and for some random training views (crops and flips, as `ssil learn`
draws them), is computed once here, in half precision. Training then draws among these views instead of a fresh one
each time: the one departure from `ssil learn`. A step takes a tenth of the time.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.classifier.feature_extraction import WholeNetwork
from ssil.classifier.image_file import ImageFile
from ssil.classifier.images import image_samples
from ssil.classifier.prediction import execution_context
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Draws, Transform
from ssil.learning.execution import ExecutionContext
from ssil.learning.snapshot import Snapshot
from ssil.nn.backbones import BACKBONES
from ssil.nn.efficientnet import efficientnet_lite0
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network
from ssil.nn.pretrained import Pretrained, load_backbone
from ssil.nn.resnet import Backbone, Norm

NAME, SHAPE = "efficientnet_lite0_last_stage", (192, 7, 7)
"""The name of the backbone that is trained, and the shape of the maps that it is given."""
BATCH = 32


class LastStageAlone(Backbone):
    """The last stage of efficientnet_lite0, its last convolution and the pooling, for maps of the stage before."""

    def __init__(self, in_channels: int, norm: Norm, final_relu: bool = True):
        super().__init__()
        _, last = efficientnet_lite0(3, norm, final_relu).split()
        self.width, self.stem, self.stages = last.width, nn.Identity(), nn.ModuleList([nn.Identity(), last])

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features, and the maps of the stage and the last convolution."""
        found: tuple[Tensor, tuple[Tensor, ...]] = self.stages[1](images)
        return found


class EarlyMaps(Backbone):
    """All stages but the last, whose map is returned as one vector of features."""

    def __init__(self, early: nn.Module):
        super().__init__()
        self.early, self.width = early, int(np.prod(SHAPE))

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the vectors, and no stage maps."""
        return self.early(images)[0].flatten(1), ()


BACKBONES[NAME] = LastStageAlone


class Views:
    """The maps of images by checksum, kept in a file: of the test view, and of some training views."""

    def __init__(self, path: Path, settings: ClassifierSettings, weights: Pretrained) -> None:
        whole = efficientnet_lite0(3, "batch")
        load_backbone(whole, weights)
        early, last = whole.eval().split()
        self.path, self.settings, self.early = path, settings, EarlyMaps(early)
        self.last = Pretrained(weights.source, {f"stages.1.{key}": value for key, value in last.state_dict().items()})
        self.known = dict[str, Tensor]()
        if path.exists():
            data = np.load(path)
            maps = torch.from_numpy(data["maps"]).split(data["views"].tolist())
            self.known = dict(zip(data["digests"].tolist(), maps, strict=True))

    def add(self, images: Sequence[ImageFile], training: int) -> None:
        """Compute the maps of images that are missing, each with `training` random training views, and save them."""
        missing = [image for image in images if image.original_digest not in self.known]
        if missing:
            print(f"views: {len(missing)} images", flush=True)
            for image, found in zip(missing, self._computed(missing, training), strict=True):
                self.known[image.original_digest] = found
            maps = [*self.known.values()]
            np.savez(self.path, digests=[*self.known], views=[*map(len, maps)], maps=torch.cat(maps).numpy())

    @torch.inference_mode()
    def _computed(self, images: Sequence[ImageFile], training: int) -> Iterator[Tensor]:
        samples = image_samples(images, [0] * len(images), self.settings.preprocessing())
        context = execution_context(self.settings)
        network = context.feature_network(Network(self.early, LinearHead(self.early.width)).eval(), samples)
        for indices in torch.arange(len(images)).split(BATCH):
            inputs = [context.transform.test(samples.images.fetch(indices))]
            for view in range(training):
                draws = context.transform.draw(len(indices), Randomness(0).at("view", view, int(indices[0])))
                inputs.append(context.transform.train(samples.images.fetch(indices, draws), draws))
            maps = torch.stack([network(one).features.half() for one in inputs], 1)
            yield from maps.view(len(indices), len(inputs), *SHAPE).clone()


@dataclass(frozen=True)
class StoredMaps:
    """The maps of some images, as a collection of images of 7 x 7 pixels and 192 channels."""

    maps: Sequence[Tensor]
    shape = (*SHAPE[1:], SHAPE[0])
    prefetch_depth = 0

    def __len__(self) -> int:
        return len(self.maps)

    def fetch(self, indices: Tensor, draws: Draws | None = None) -> Tensor:
        """Return the maps (B, C, H, W) of the test views, or those of the training views whose numbers were drawn."""
        views = [0] * len(indices) if draws is None else draws.dy.tolist()
        return torch.stack([self.maps[index][view] for index, view in zip(indices.tolist(), views, strict=True)])


@dataclass(frozen=True)
class DrawnViews(Transform):
    """Maps as they are; each time another of the training views, of which there are `views`."""

    views: int = 1

    def draw(self, count: int, generator: torch.Generator) -> Draws:
        """Draw the number of a training view for each image."""
        nothing = torch.zeros(count, dtype=torch.long)
        return Draws(torch.randint(1, 1 + self.views, (count,), generator=generator), nothing, nothing.bool())

    def train(self, pixels: Tensor, draws: Draws, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the maps."""
        return self.test(pixels, dtype)

    def test(self, pixels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the maps."""
        return pixels.to(dtype, memory_format=torch.channels_last)


@dataclass(frozen=True)
class TunedOnMaps(WholeNetwork):
    """The last stage and the head are trained, on stored maps; a snapshot has no other part of the network."""

    stored: Views

    def samples(self, images: Sequence[ImageFile], labels: Sequence[int]) -> Samples:
        """Return the images' maps as samples."""
        maps = StoredMaps([self.stored.known[image.original_digest] for image in images])
        return Samples(maps, torch.tensor(labels))  # type: ignore[arg-type]  # what only files and devices need is left out

    def context(self, samples: Samples) -> ExecutionContext:
        """Return the context in which the last stage is trained or evaluated."""
        views = max(len(maps) for maps in samples.images.maps) - 1  # type: ignore[attr-defined]
        transform = DrawnViews((), (), views=max(1, views))
        return replace(execution_context(self.settings, samples, self.init), transform=transform, backbone=NAME)


@contextmanager
def tuned_on_maps(stored: Views) -> Iterator[None]:
    """Let updates and evaluations within the context train and evaluate the last stage on stored maps."""

    def trained(settings: ClassifierSettings, snapshot: Snapshot | None, *_: object) -> WholeNetwork:
        if settings.tune != "last":
            raise ValueError("stored maps are for --tune last")
        return TunedOnMaps(settings, None if snapshot else stored.last, stored)

    with ExitStack() as stack:
        for module in ("update", "holdout"):
            stack.enter_context(patch(f"ssil.classifier.{module}.trained_network", trained))
        yield
