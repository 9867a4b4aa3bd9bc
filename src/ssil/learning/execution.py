"""Where a method works: the devices, the pictures, the randomness, and the kind of network."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import torch
from torch import Tensor

from ssil.core.randomness import Randomness
from ssil.core.samples import Images, Samples
from ssil.data.augmentation import Transform
from ssil.data.cache import Arrays, cache_dir, cached
from ssil.data.prefetch import ahead
from ssil.data.resident_images import Unchanged, vectors
from ssil.learning import processes
from ssil.nn.network import Network, Output
from ssil.nn.pretrained import Pretrained
from ssil.nn.resnet import Norm

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def alone() -> "Fabric":
    """The GPU if there is one, else the processor, in full precision."""
    return cast("Fabric", _Alone())


class _Alone:
    """What looking at pictures needs of a Fabric; all else is asked of a real one, made when that happens."""

    world_size, global_rank = 1, 0

    def __init__(self) -> None:
        self.device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")

    def autocast(self) -> AbstractContextManager[None]:
        """Precision stays what it is."""
        return nullcontext()

    @cached_property
    def _fabric(self) -> "Fabric":
        from lightning_fabric import Fabric

        return Fabric(accelerator=self.device.type, devices=1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a copy is asked for its own before it is made
            raise AttributeError(name)
        return getattr(self._fabric, name)


if TYPE_CHECKING:
    from lightning_fabric import Fabric  # takes seconds to import

BATCH = 512
PIXELS = BATCH * 64 * 64
"""Of a batch that is only looked at: so many pictures of 64 pixels or less a side, fewer of larger ones."""
SCORES = 2**24
"""At most so many scores of such a batch."""


@dataclass(frozen=True)
class ExecutionContext:
    """Where a method works: devices, training pictures (labels by order of arrival), randomness, the network's kind."""

    fabric: "Fabric"
    samples: Samples
    transform: Transform
    random: Randomness
    backbone: str
    norm: Norm = "batch"
    dtype: torch.dtype = torch.float32
    init: Pretrained | None = None
    """The backbone's first weights, if they are not to be random."""
    accumulate: int = 1
    """How many parts a process's share of a batch is trained on in, one after the other."""
    compiler: str | Callable[..., Any] | None = None
    """What backbones are compiled by in training, if they are to be."""

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
        most = min(BATCH, PIXELS // (height * width), SCORES // max(1, network.head.classes))
        parts = indices.split(max(1, most))
        for part, pixels in zip(parts, ahead(images.fetch, parts, images.ahead, workers=2), strict=True):
            with torch.inference_mode(), self.fabric.autocast():
                output = network(self.transform.test(pixels, self.dtype))
            yield part, output

    def outputs(self, network: Network, indices: Tensor) -> Output:
        """All logits and features of training pictures, as ordinary tensors that a loss may use; no stage maps."""
        looks = self.looks(network, self.share(indices))
        parts = [(output.logits, output.features) for _, output in looks]
        logits, features = (self.gathered(torch.cat(column), len(indices)) for column in zip(*parts, strict=True))
        return Output(logits, features)

    @property
    def synchronised(self) -> bool:
        """Whether batch norms see the whole batch of all processes; on a CPU they can't."""
        return self.fabric.world_size > 1 and self.fabric.device.type == "cuda"

    def share(self, indices: Tensor) -> Tensor:
        """What this process looks at of them; `gathered` puts together what all have found."""
        return processes.share(self.fabric, indices)

    def gathered(self, rows: Tensor, count: int) -> Tensor:
        """A row for each of so many indices, of which this process has made those of its share."""
        return processes.gathered(self.fabric, rows, count)

    def frozen(self, network: Network, test: Samples, name: str) -> tuple[Self, Samples]:
        """The bench and test samples with features in place of pictures, for heads to learn from; cached by name."""
        train, test = (
            Samples(vectors(self._features(network, samples, f"{name}-{part}")), samples.labels)
            for part, samples in (("train", self.samples), ("test", test))
        )
        return replace(self, samples=train, transform=Unchanged(), backbone="identity", init=None), test

    def _features(self, network: Network, samples: Samples, name: str) -> Tensor:
        """The features of all samples, kept by this name; if any process lacks them, all look, each at its share."""
        everyone = torch.arange(len(samples))

        def look(indices: Tensor) -> Tensor:
            return torch.cat([output.features.cpu() for _, output in self.looks(network, indices, samples)])

        (kept,) = processes.total(self.fabric, [(cache_dir() / f"{name}.npz").exists()])
        shared = None if kept == self.fabric.world_size else self.gathered(look(self.share(everyone)), len(samples))

        def found() -> Arrays:
            return {"features": (look(everyone) if shared is None else shared).cpu().numpy()}

        return torch.from_numpy(cached(name, found)["features"]).to(self.fabric.device)


M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Parameters of the GNU C library's `mallopt`."""


def keep_freed_memory(limit: int = 2**30) -> None:
    """Let the C library keep up to `limit` bytes of freed memory for the next batch.

    By default it returns large blocks to the system, and zeroing and mapping each fresh page again takes longer than
    filling it. The setting holds for the whole process; without the GNU C library it does nothing.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, limit)
