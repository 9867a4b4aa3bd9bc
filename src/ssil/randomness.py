"""Randomness as a function of position: every draw comes from a generator keyed by where in the run it happens."""

import hashlib
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Randomness:
    """Generators keyed by (seed, purpose, position). No state: the same key gives the same numbers at any time.

    >>> random = Randomness(seed=0)
    >>> a = torch.rand(2, generator=random.at("crops", 1, 0))
    >>> b = torch.rand(2, generator=random.at("crops", 1, 0))
    >>> torch.equal(a, b)
    True
    >>> random.at("crops", 1, 0).initial_seed() == random.at("crops", 1, 1).initial_seed()
    False
    """

    seed: int

    def at(self, purpose: str, *position: int) -> torch.Generator:
        """The CPU generator for one purpose at one position: task, phase, epoch, step, or as many of them as matter."""
        key = ":".join([str(self.seed), purpose, *map(str, position)])
        digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest) >> 1)
