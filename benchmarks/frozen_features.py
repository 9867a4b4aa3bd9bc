"""How fast a frozen backbone computes features: ONNX Runtime against PyTorch, side by side in one run.

OMP_NUM_THREADS=1 python benchmarks/frozen_features.py [--images 64] [--rounds 5]

Both are given the same batches of random images, as `ExecutionContext.batched_outputs` makes them, and take turns.
Seconds are of the processor, all threads together, so that a machine with other work to do can measure too; the ratio
is PyTorch's by ONNX Runtime's, the median over the rounds. Weights are random: they don't change the time. The export
is what must be done once before the first image.
"""

import argparse
from functools import partial
from statistics import median

import torch

from predict import seconds
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.resident_images import Resident
from ssil.learning.distributed import SingleDevice
from ssil.learning.execution import ExecutionContext
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build

CASES = (("resnet14", 32), ("resnet18_small", 32), ("resnet18", 64), ("resnet18", 224), ("efficientnet_lite0", 224))
"""Backbones, and the size of the images."""


def context_of(size: int, images: int) -> ExecutionContext:
    pixels = torch.randint(256, (images, size, size, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    samples = Samples(Resident(pixels), torch.zeros(images, dtype=torch.long))
    transform = Transform((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
    return ExecutionContext(SingleDevice("cpu"), samples, transform, Randomness(0), "unused")


def compute(context: ExecutionContext, network: Network) -> torch.Tensor:
    parts = context.batched_outputs(network, torch.arange(len(context.samples)))
    return torch.cat([output.features for _, output in parts])


def compare(backbone: str, size: int, images: int, rounds: int) -> str:
    context = context_of(size, images)
    network = build(backbone, LinearHead, 3, "batch", torch.Generator().manual_seed(0)).eval()
    export = seconds(partial(context.feature_network, network, context.samples))
    both = network.headless(), context.feature_network(network, context.samples)
    old, new = (compute(context, one) for one in both)
    gap = float((old - new).abs().max() / old.abs().max())
    turns = [[seconds(partial(compute, context, one)) for one in both] for _ in range(rounds)]
    torchs, onnxs = (1000 * median(column) / images for column in zip(*turns, strict=True))
    ratio = median(one / other for one, other in turns)
    return f"| {backbone}, {size} pixels | {torchs:.2f} | {onnxs:.2f} | {ratio:.2f} | {export:.2f} | {gap:.0e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print("| network | ms an image, PyTorch | ONNX Runtime | ratio | seconds of the export | largest difference |")
    print("|---|---|---|---|---|---|")
    for backbone, size in CASES:
        print(compare(backbone, size, arguments.images, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
