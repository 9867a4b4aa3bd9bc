"""A process's share of a batch."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from ssil.batches import Batch
from ssil.bench import Bench
from ssil.data import Draws
from ssil.errors import UserError


class Share(NamedTuple):
    """A process's share of a batch: pictures as they were fetched, what is drawn for them, their labels."""

    pixels: Tensor
    draws: Draws
    labels: Tensor

    def parts(self, count: int) -> list[Self]:
        """So many parts of nearly equal size, new and replayed images in each; fewer if there are fewer images."""
        if count == 1:
            return [self]
        rows = [torch.arange(len(self.labels))[first::count] for first in range(min(count, len(self.labels)))]
        return [type(self)(self.pixels[row], self.draws.take(row), self.labels[row]) for row in rows]


def load(batch: Batch, generator: torch.Generator, bench: Bench, least: int) -> Share:
    """The slots of this process in each part of a global batch, with the draws that belong to them."""
    rank, world = bench.fabric.global_rank, bench.fabric.world_size
    indices = torch.cat(batch)
    if len(indices) < least or max(map(len, batch)) < world:
        few = f"{len(indices)} training image(s) for {world} process(es)"
        cure = "fewer --devices" if world > 1 else "fewer --tasks"
        raise UserError(f"batch: {few}, of which batch norm needs two each; give the task more images, or {cure}")
    main, replayed = (torch.arange(len(part))[rank::world] for part in batch)
    slots = torch.cat([main, len(batch.main) + replayed])
    draws = bench.transform.draw(len(indices), generator).take(slots)
    mine = indices[slots]
    return Share(bench.samples.images.fetch(mine, draws), draws, bench.samples.labels[mine])
