"""The class table: the classes seen so far, and the task that brought each of them."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ClassTable:
    """Class names in order of arrival; task t has the classes from bounds[t - 1] to bounds[t] - 1.

    >>> classes = ClassTable().extend(["cat", "dog"]).extend(["eel"])
    >>> classes.bounds, classes.task, classes.old, classes.new, classes.seen
    ((0, 2, 3), 2, 2, 1, 3)
    >>> classes.task_of().tolist()
    [0, 0, 1]
    """

    names: tuple[str, ...] = ()
    bounds: tuple[int, ...] = (0,)

    def extend(self, names: list[str] | tuple[str, ...]) -> "ClassTable":
        """Return the table after one more task, which brings the given classes."""
        return ClassTable(self.names + tuple(names), (*self.bounds, self.seen + len(names)))

    def without(self, label: int) -> "ClassTable":
        """Return the table without a class. Later classes move up by one; the task of the class may become empty.

        >>> ClassTable(("cat", "dog", "eel"), (0, 2, 3)).without(0)
        ClassTable(names=('dog', 'eel'), bounds=(0, 1, 2))
        """
        return ClassTable(self.names[:label] + self.names[label + 1 :], tuple(b - (b > label) for b in self.bounds))

    @property
    def task(self) -> int:
        """The number of the current task, counted from 1; 0 before the first."""
        return len(self.bounds) - 1

    @property
    def seen(self) -> int:
        """The number of classes so far."""
        return self.bounds[-1]

    @property
    def old(self) -> int:
        """The number of classes of all tasks before the current one."""
        return self.bounds[-2] if self.task else 0

    @property
    def new(self) -> int:
        """The number of classes that the current task brought."""
        return self.seen - self.old

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of classes of each task."""
        return tuple(end - start for start, end in pairwise(self.bounds))

    def task_of(self) -> "Tensor":
        """Return the task of each class, counted from 0."""
        import torch  # a prediction needs class tables, but not torch

        return torch.tensor([task for task, size in enumerate(self.sizes) for _ in range(size)], dtype=torch.long)

    def old_blocks(self, min_size: int = 1) -> tuple[int, ...]:
        """Return the bounds of the old tasks' blocks; consecutive tasks of fewer than `min_size` classes share a block.

        A task that brought no class has no block.

        >>> ClassTable(("?",) * 15, (0, 10, 11, 12, 15)).old_blocks(min_size=2)
        (0, 10, 12)
        """
        small = [size < min_size for size in self.sizes[:-1]]
        inner = [bound for bound, pair in zip(self.bounds[1:-2], pairwise(small), strict=True) if not all(pair)]
        return (0, *sorted({bound for bound in inner if bound < self.old}), self.old)
