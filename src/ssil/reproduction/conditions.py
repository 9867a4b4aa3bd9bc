"""What the paper varies: how classes arrive, how the memory is shared out, how large it is."""

from itertools import product
from typing import NamedTuple

LOW, MIDDLE, HIGH = range(3)
"""The three sizes of memory (on ImageNet 5, 10 and 20 exemplars a class)."""


class Condition(NamedTuple):
    """A stream with its memory, on any data; `tasks` is the paper's T, the tasks after a large base."""

    tasks: int = 10
    level: int = MIDDLE
    growing: bool = False
    large_base: bool = False

    def name(self, memory: int | str) -> str:
        """As a folder's name.

        >>> Condition(5, growing=True).name(10)
        'base-growing-t5-10'
        """
        base, kind = "largebase" if self.large_base else "base", "growing" if self.growing else "fixed"
        return f"{base}-{kind}-t{self.tasks}-{memory}"


MAIN = Condition()
"""Where the paper looks most: T = 10 and the middle memory."""


def setting(growing: bool = False, large_base: bool = False) -> tuple[Condition, ...]:
    """The five columns of a table: T = 10 with each memory, T = 20 and T = 5 with the middle one."""
    columns = ((10, LOW), (10, MIDDLE), (10, HIGH), (20, MIDDLE), (5, MIDDLE))
    return tuple(Condition(tasks, level, growing, large_base) for tasks, level in columns)


ALL = tuple(condition for large, growing in product((False, True), repeat=2) for condition in setting(growing, large))
"""All twenty."""
