"""The nouns that every part shares: network outputs, the class table, images with labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor


class Output(NamedTuple):
    """What a network says of a batch: scores, the feature vector below the head, each stage's map (pre-ReLU)."""

    logits: Tensor
    features: Tensor
    stages: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Classes:
    """The class table: names in order of arrival, and the bounds of each task's block.

    >>> classes = Classes().extend(["cat", "dog"]).extend(["eel"])
    >>> classes.bounds, classes.task, classes.old, classes.new, classes.seen
    ((0, 2, 3), 2, 2, 1, 3)
    >>> classes.task_of().tolist()
    [0, 0, 1]
    """

    names: tuple[str, ...] = ()
    bounds: tuple[int, ...] = (0,)

    def extend(self, names: list[str] | tuple[str, ...]) -> "Classes":
        """The table after one more task, which brings these classes."""
        return Classes(self.names + tuple(names), (*self.bounds, self.seen + len(names)))

    def without(self, label: int) -> "Classes":
        """The table without a class; the classes after it move up, its task may be left empty.

        >>> Classes(("cat", "dog", "eel"), (0, 2, 3)).without(0)
        Classes(names=('dog', 'eel'), bounds=(0, 1, 2))
        """
        return Classes(self.names[:label] + self.names[label + 1 :], tuple(b - (b > label) for b in self.bounds))

    @property
    def task(self) -> int:
        """The number of tasks seen; the current task's number, counted from 1."""
        return len(self.bounds) - 1

    @property
    def seen(self) -> int:
        """All classes so far."""
        return self.bounds[-1]

    @property
    def old(self) -> int:
        """The classes of all tasks before the current one."""
        return self.bounds[-2] if self.task else 0

    @property
    def new(self) -> int:
        """The classes that the current task brought."""
        return self.seen - self.old

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of classes of each task."""
        return tuple(end - start for start, end in pairwise(self.bounds))

    def task_of(self) -> Tensor:
        """The task (from 0) of each class."""
        return torch.tensor([task for task, size in enumerate(self.sizes) for _ in range(size)], dtype=torch.long)

    def old_blocks(self, min_size: int = 1) -> tuple[int, ...]:
        """Bounds of the old tasks' blocks, where consecutive tasks below `min_size` classes share one block.

        >>> Classes(("?",) * 15, (0, 10, 11, 12, 15)).old_blocks(min_size=2)
        (0, 10, 12)
        """
        small = [size < min_size for size in self.sizes[:-1]]
        inner = [bound for bound, pair in zip(self.bounds[1:-2], pairwise(small), strict=True) if not all(pair)]
        return (0, *inner, self.old)


class Images(Protocol):
    """Pictures that can be fetched by index: resident in memory, or decoded when asked for."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels of what `fetch` returns."""
        ...

    @property
    def ahead(self) -> int:
        """How many batches to ask for before they are needed, for fetching takes time; 0 if it takes none."""
        ...

    def __len__(self) -> int: ...

    def to(self, device: torch.device) -> "Images":
        """The same pictures, handed out on another device."""
        ...

    def take(self, indices: Tensor) -> "Images":
        """Some of the pictures."""
        ...

    def fetch(self, indices: Tensor, draws: Any = None) -> Tensor:
        """The pictures at these indices: uint8 (B, H, W, C), on the device where training happens.

        `draws` (of `ssil.data.Draws`, one for each index) ask for training views, where fetching makes them.
        """
        ...

    def hold(self, indices: Tensor, form: Literal["bytes", "decoded"]) -> None:
        """Keep these in memory, and no others, if not all are there anyway; fetching them gives the same as before."""
        ...

    def content(self) -> Iterable[bytes]:
        """What tells these pictures from others: pixels, or digests."""
        ...

    def keys(self) -> list[bytes]:
        """A digest of each picture's pixels."""
        ...


@dataclass(frozen=True)
class Samples:
    """Pictures and their labels (int64, on the CPU)."""

    images: Images
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)
