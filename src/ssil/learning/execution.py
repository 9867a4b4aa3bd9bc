"""The execution context: the devices, training images, randomness and kind of network with which tasks are learnt."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor

from ssil.core.cache_folder import cache_dir
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.cache import Arrays, cached
from ssil.data.prefetch import prefetch
from ssil.data.resident_images import Unchanged, vectors
from ssil.learning.distributed import AnyFabric, gather, local_share, total
from ssil.learning.feature_cache import FeatureCache, backbone_key
from ssil.nn.network import Network, Output
from ssil.nn.pretrained import Pretrained
from ssil.nn.resnet import Norm

BATCH = 512
"""Images of an evaluation batch at most."""
CPU_BATCH = 64
"""The same on a CPU: faster than 512, and it bounds the memory; see docs/results/speed.md."""
LEAST = 16
"""Fewer images at the end join the batch before them: on a CPU other functions compute so few, with other rounding."""
PIXELS = BATCH * 64 * 64
"""Pixels of an evaluation batch at most: images of more than 64 x 64 pixels make smaller batches."""
SCORES = 2**24
"""Logits of an evaluation batch at most."""


@dataclass(frozen=True)
class ExecutionContext:
    """Devices, training images (labels by order of arrival), randomness, and the kind of network."""

    fabric: AnyFabric
    samples: Samples
    transform: Transform
    random: Randomness
    backbone: str
    norm: Norm = "batch"
    dtype: torch.dtype = torch.float32
    init: Pretrained | None = None
    """The backbone's initial weights; None for random ones."""
    views: int = 1
    """With 2, the backbone sees the whole image and its centre, see `WholeAndCentre`."""
    accumulate: int = 1
    """The number of parts in which a process trains on its share of a batch before it updates the weights."""
    compiler: str | Callable[..., Any] | None = None
    """The `torch.compile` backend for the backbones in training; None to leave them uncompiled."""
    last_features: FeatureCache = field(default_factory=FeatureCache, init=False, repr=False, compare=False)
    """What `features` has computed last."""

    @property
    def device(self) -> torch.device:
        """The device of this process."""
        return self.fabric.device

    def batched_outputs(
        self, network: Network, indices: Tensor, samples: Samples | None = None
    ) -> Iterator[tuple[Tensor, Output]]:
        """Put the network in eval mode, and yield its output for images under the test transform, batch by batch.

        Args:
            network: The network, on the context's device.
            indices: The images to evaluate.
            samples: What the indices refer to: the context's training samples by default.

        Yields:
            The indices of a batch, and the network's output for them.
        """
        network.eval()
        images = (self.samples if samples is None else samples).images
        shape = self.transform.input_shape(*images.shape[:2])
        batches = evaluation_batches(indices, self._largest_batch(*shape, network.head.classes))
        for batch, pixels in zip(
            batches, prefetch(images.fetch, batches, images.prefetch_depth, threads=2), strict=True
        ):
            with torch.inference_mode(), self.fabric.autocast():
                output = network(self.transform.test(pixels, self.dtype))
            yield batch, output

    def _largest_batch(self, height: int, width: int, classes: int) -> int:
        """Return how many images are evaluated at a time, given the size in which the network sees them."""
        most = CPU_BATCH if self.device.type == "cpu" else BATCH
        return max(1, min(most, PIXELS // (height * width), SCORES // max(1, classes)))

    def outputs(self, network: Network, indices: Tensor) -> Output:
        """Return the logits and features of training images, evaluated by all processes together.

        The tensors may be used in a loss. Stage maps are left out.
        """
        batches = self.batched_outputs(network, local_share(self.fabric, indices))
        parts = [(output.logits, output.features) for _, output in batches]
        logits, features = (gather(self.fabric, torch.cat(column), len(indices)) for column in zip(*parts, strict=True))
        return Output(logits, features)

    def features(self, network: Network, indices: Tensor) -> Tensor:
        """Return the features of training images; they are not computed again if the last call had them too."""
        key = backbone_key(network.backbone)
        (found,) = total(self.fabric, [self.last_features.has(key, indices)])
        if found < self.fabric.world_size:  # not in every process
            features = self.outputs(network.headless(), indices).features
            self.last_features.put(key, indices, features)
            return features
        return self.last_features.get(indices)

    @property
    def prefers_onnx(self) -> bool:
        """Whether ONNX Runtime computes features of frozen backbones that can be exported: on CPUs, in float32."""
        if self.device.type != "cpu" or self.dtype != torch.float32:
            return False
        with self.fabric.autocast():
            return not torch.is_autocast_enabled("cpu")

    def feature_network(self, network: Network, samples: Samples) -> Network:
        """Return what computes a frozen network's features of these samples, without logits.

        That is ONNX Runtime if `prefers_onnx` and the backbone can be exported, else PyTorch: never what happens to be
        faster now, as their features differ by rounding.
        """
        if not self.prefers_onnx:
            return network.headless()
        from ssil.nn.onnx_backbone import in_onnx_runtime  # which most commands need not import

        shape = self.transform.input_shape(*samples.images.shape[:2])
        return in_onnx_runtime(network, (samples.images.shape[2], *shape)) or network.headless()

    def frozen(
        self, network: Network, test: Samples, name: str, on_progress: Callable[[int, int], None] | None = None
    ) -> tuple[Self, Samples]:
        """Return this context and the test samples with a frozen network's features in place of the images.

        Heads can then be trained on an identity backbone.

        Args:
            network: The frozen network.
            test: The test samples.
            name: The name under which the features are cached.
            on_progress: Called with the numbers of images whose features are computed, and of all images.
        """
        ends = len(self.samples), len(self.samples) + len(test)

        def report(samples: Samples, done: int) -> None:
            if on_progress:
                on_progress(done if samples is self.samples else ends[0] + done, ends[1])

        train, test = (
            Samples(vectors(self._cached_features(network, samples, f"{name}-{part}", report)), samples.labels)
            for part, samples in (("train", self.samples), ("test", test))
        )
        return replace(self, samples=train, transform=Unchanged(), backbone="identity", init=None), test

    def _cached_features(
        self, network: Network, samples: Samples, name: str, report: Callable[[Samples, int], None]
    ) -> Tensor:
        """Return all samples' features; unless every process finds them in its cache, all compute them together."""
        everything = torch.arange(len(samples))

        def features(indices: Tensor) -> Tensor:
            parts, computing = list[Tensor](), self.feature_network(network, samples)
            for batch, output in self.batched_outputs(computing, indices, samples):
                parts.append(output.features.cpu())
                report(samples, int(batch[-1]) + 1)
            return torch.cat(parts)

        (cached_by,) = total(self.fabric, [(cache_dir() / f"{name}.npz").exists()])
        computed = None
        if cached_by < self.fabric.world_size:
            computed = gather(self.fabric, features(local_share(self.fabric, everything)), len(samples))

        def build() -> Arrays:  # called too if the cached file turns out to be damaged
            return {"features": (features(everything) if computed is None else computed).cpu().numpy()}

        return torch.from_numpy(cached(name, build)["features"]).to(self.device)


def evaluation_batches(indices: Tensor, most: int) -> list[Tensor]:
    """Return the indices in batches of `most`; fewer than `LEAST` that are left over join the last batch.

    >>> [len(batch) for batch in evaluation_batches(torch.arange(150), most=64)]
    [64, 64, 22]
    >>> [len(batch) for batch in evaluation_batches(torch.arange(130), most=64)]
    [64, 66]
    """
    *full, rest = indices.split(most)
    if full and len(rest) < min(LEAST, most):
        full, rest = full[:-1], torch.cat([full[-1], rest])
    return [*full, rest]


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
