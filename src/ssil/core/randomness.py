"""Randomness as a function of position: every draw comes from a generator keyed by where in the run it happens."""

import hashlib
from dataclasses import dataclass, replace

import torch


@dataclass(frozen=True)
class Randomness:
    """Generators keyed by (seed, purpose, position). No state: the same key gives the same numbers at any time.

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
        """The same source, seen from inside a task, a phase, an epoch."""
        return replace(self, prefix=(*self.prefix, *position))

    def at(self, purpose: str, *position: int | str) -> torch.Generator:
        """The CPU generator for one purpose at one position: task, phase, epoch, step, as many of them as matter."""
        key = ":".join(map(str, (self.seed, purpose, *self.prefix, *position)))
        digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest) >> 1)
