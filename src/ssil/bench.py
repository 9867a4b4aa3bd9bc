"""Where a method works: the devices, the pictures, the randomness, and the kind of network."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ssil.data import Transform, ahead
from ssil.data.cache import Arrays, cached
from ssil.data.vectors import Unchanged, vectors
from ssil.nn import Network, Norm, Pretrained
from ssil.randomness import Randomness
from ssil.types import Images, Output, Samples

BATCH = 512
PIXELS = BATCH * 64 * 64
"""Of a batch that is only looked at: so many pictures of 64 pixels or less a side, fewer of larger ones."""


@dataclass(frozen=True)
class Bench:
    """Where a method works: devices, training pictures (labels by order of arrival), randomness, the network's kind."""

    fabric: Fabric
    samples: Samples
    transform: Transform
    random: Randomness
    backbone: str
    norm: Norm = "batch"
    dtype: torch.dtype = torch.float32
    init: Pretrained | None = None
    """The backbone's first weights, if they are not to be random."""

    def pictures(self, indices: Tensor, samples: Samples | None = None) -> Tensor:
        """Pictures (the training ones, if not said otherwise) under the test transform, ready for a network."""
        return self.transform.test(self._images(samples).fetch(indices), self.dtype)

    def _images(self, samples: Samples | None) -> Images:
        return (self.samples if samples is None else samples).images

    def looks(
        self, network: Network, indices: Tensor, samples: Samples | None = None
    ) -> Iterator[tuple[Tensor, Output]]:
        """The network's outputs batch by batch, with the indices they belong to; it is put in eval mode."""
        network.eval()
        images = self._images(samples)
        height, width, _ = images.shape
        parts = indices.split(max(1, min(BATCH, PIXELS // (height * width))))
        for part, pixels in zip(parts, ahead(images.fetch, parts, images.ahead, workers=2), strict=True):
            with torch.inference_mode(), self.fabric.autocast():
                output = network(self.transform.test(pixels, self.dtype))
            yield part, output

    def outputs(self, network: Network, indices: Tensor) -> Output:
        """All logits and features of training pictures, as ordinary tensors that a loss may use; no stage maps."""
        parts = [(output.logits, output.features) for _, output in self.looks(network, indices)]
        logits, features = (torch.cat(column) for column in zip(*parts, strict=True))
        return Output(logits, features)

    def frozen(self, network: Network, test: Samples, name: str) -> tuple[Self, Samples]:
        """The bench and test samples with features in place of pictures, for heads to learn from; cached by name."""
        train, test = (
            Samples(vectors(self._features(network, samples, f"{name}-{part}")), samples.labels)
            for part, samples in (("train", self.samples), ("test", test))
        )
        return replace(self, samples=train, transform=Unchanged(), backbone="identity", init=None), test

    def _features(self, network: Network, samples: Samples, name: str) -> Tensor:
        def look() -> Arrays:
            looks = self.looks(network, torch.arange(len(samples)), samples)
            return {"features": torch.cat([output.features.cpu() for _, output in looks]).numpy()}

        return torch.from_numpy(cached(name, look)["features"]).to(self.fabric.device)
