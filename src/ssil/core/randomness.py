"""Randomness as a function of position: every draw comes from a generator keyed by its place in the run."""

import hashlib
from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True)
class Randomness:
    """Generators keyed by (seed, purpose, position). There is no state: the same key always gives the same numbers.

    >>> random = Randomness(seed=0)
    >>> a = torch.rand(2, generator=random.at("crops", 1, 0))
    >>> b = torch.rand(2, generator=random.within(1).at("crops", 0))
    >>> torch.equal(a, b)
    True
    >>> random.at("crops", 1, 0).initial_seed() == random.at("crops", 1, 1).initial_seed()
    False
    """

    seed: int
    prefix: tuple[int | str, ...] = ()

    def within(self, *position: int | str) -> "Randomness":
        """Return the randomness of a task, phase or epoch: its position is put before those given to `at`."""
        return replace(self, prefix=(*self.prefix, *position))

    def at(self, purpose: str, *position: int | str) -> torch.Generator:
        """Return the CPU generator for one purpose at one position: any of task, phase, epoch and step."""
        key = ":".join(map(str, (self.seed, purpose, *self.prefix, *position)))
        digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest) >> 1)
