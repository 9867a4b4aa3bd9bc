"""Streams of tasks: which classes arrive in which task. Nothing here depends on models."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ssil.benchmark.config import StreamSettings
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError, did_you_mean
from ssil.core.files import checksum
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.core.settings import MAX_SHOWN
from ssil.learning.task import Task

NUMPY = "numpy:"
"""Begins a class order that NumPy's legacy generator draws, as most published tables on CIFAR-100 have it."""
LARGEST_NUMPY_SEED = 2**32 - 1


@dataclass(frozen=True)
class Stream:
    """Training and test samples, labelled by order of arrival, and the tasks in which the classes arrive.

    Labels beyond the last task's classes belong to classes that the stream leaves out.
    """

    train: Samples
    test: Samples
    tasks: tuple[Task, ...]
    class_order: tuple[int, ...]

    def seen(self, task: Task) -> Tensor:
        """Return the indices of the test samples of all classes that have arrived by this task."""
        return torch.nonzero(self.test.labels < task.classes.seen).flatten()

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of a SHA-256 over the training images of each task."""
        return checksum(b"|".join(task.indices.numpy().tobytes() for task in self.tasks), 16)


def class_order(classes: int, random: Randomness) -> list[int]:
    """Return a random permutation of the classes: the first to arrive, the second, and so on."""
    order: list[int] = torch.randperm(classes, generator=random.at("class order")).tolist()
    return order


def numpy_order(classes: int, seed: str) -> list[int]:
    """Return the permutation that numpy.random.seed(seed); numpy.random.permutation(classes) gives.

    >>> numpy_order(100, "1993")[:5]
    [68, 56, 78, 8, 23]
    """
    if not re.fullmatch("[0-9]{1,10}", seed) or int(seed) > LARGEST_NUMPY_SEED:
        raise UserError(
            f"class_order: {seed[:MAX_SHOWN]!r} is no seed of NumPy; give {NUMPY} and a number up to "
            f"{LARGEST_NUMPY_SEED}, such as {NUMPY}1993"
        )
    order: list[int] = np.random.RandomState(int(seed)).permutation(classes).tolist()
    return order


def read_order(path: Path, names: Sequence[str]) -> list[int]:
    """Read a class order from a file: one class per line, by name or, where no class has that name, by index."""
    if not path.is_file():
        raise UserError(f"class_order: no file {path}; give a seed, numpy:SEED, or a file with one class per line")
    lines = [line.strip() for line in _order_text(path).splitlines()]
    index = {str(i): i for i in range(len(names))} | {name: i for i, name in enumerate(names)}
    if unknown := [line for line in lines if line and line not in index]:
        hint = did_you_mean(unknown[0], names, f"classes are, for example: {', '.join(names[:3])}", count=3)
        raise UserError(f"class_order: {path} names {unknown[0]!r}, which is no class; {hint}")
    return [index[line] for line in lines if line]


def _order_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"class_order: {path} is no text; give a file with one class per line") from None


def task_sizes(classes: int, tasks: int, large_base: bool = False) -> tuple[int, ...]:
    """Return the sizes of equal tasks, or of a base of half of the classes and `tasks` equal ones after it.

    Where the classes can't be shared equally, the first tasks have one more.

    >>> task_sizes(10, 3), task_sizes(11, 2, large_base=True)
    ((4, 3, 3), (6, 3, 2))
    """
    base = (-(-classes // 2),) if large_base else ()
    rest = classes - sum(base)
    if not 1 <= tasks <= rest:
        raise UserError(f"tasks: {tasks} tasks can't share {rest} classes; give a number from 1 to {rest}")
    size, larger = divmod(rest, tasks)
    return (*base, *[size + 1] * larger, *[size] * (tasks - larger))


def chosen_order(settings: StreamSettings, names: Sequence[str], seed: int) -> list[int]:
    """Return the class order that the settings ask for: from a file, or by a seed (default: `seed`, the run's)."""
    order = settings.class_order
    if isinstance(order, str) and order.startswith(NUMPY):
        return numpy_order(len(names), order.removeprefix(NUMPY))
    if isinstance(order, str) and not order.isdigit():
        return read_order(Path(order), names)
    return class_order(len(names), Randomness(seed if order is None else int(order)))


def chosen_sizes(settings: StreamSettings, classes: int) -> tuple[int, ...]:
    """Return the number of classes of each task that the settings ask for."""
    return settings.task_sizes or task_sizes(classes, settings.tasks, settings.large_base)


def build_stream(
    train: Samples, test: Samples, names: Sequence[str], order: Sequence[int], sizes: Sequence[int]
) -> Stream:
    """Return the stream of the classes in this `order`, `sizes` of them in each task.

    Raises:
        UserError: The order or the sizes do not fit the classes, or a task lacks images.
    """
    _check_order(order, names)
    _check_sizes(sizes, len(names))
    train, test = (_by_arrival(samples, order) for samples in (train, test))
    tables = _tables([names[c] for c in order], sizes)
    _check_images(train, test, tables)
    tasks = tuple(Task(table, _block(train.labels, table)) for table in tables)
    return Stream(train, test, tasks, tuple(order))


def build_own_stream(
    train: Samples, test: Samples, names: Sequence[str], order: Sequence[int], pairs: Tensor
) -> Stream:
    """Return the stream in which training images arrive in given tasks; a class belongs to the first that has it.

    An image may come in several tasks, a class too, and a task may bring no new class. Images and classes that come in
    none are left out.

    Args:
        train: The training samples, labelled as the data set numbers its classes.
        test: The test samples.
        names: The names of the classes.
        order: All classes, in the order in which the new ones of a task are numbered.
        pairs: Index of a training image and its task, counted from 1: (n, 2).

    Raises:
        UserError: The pairs do not fit the images, a task or the test of its new classes is empty, or a pair comes
            twice.
    """
    _check_order(order, names)
    _check_pairs(pairs, len(train))
    images, tasks = pairs.T
    count = int(tasks.max())
    first = torch.full((len(names),), count + 1).scatter_reduce(0, train.labels[images], tasks, "amin")
    order = sorted(order, key=lambda c: int(first[c]))
    train, test = (_by_arrival(samples, order) for samples in (train, test))
    tables = _tables([names[c] for c in order], [int((first == task).sum()) for task in range(1, count + 1)])
    _check_images(train, test, tables)
    arriving = (images[tasks == table.task].sort().values for table in tables)
    return Stream(train, test, tuple(map(Task, tables, arriving)), tuple(order))


def _by_arrival(samples: Samples, order: Sequence[int]) -> Samples:
    """Return the samples with their classes numbered in this order."""
    arrival = torch.empty(len(order), dtype=torch.long)
    arrival[torch.tensor(order)] = torch.arange(len(order))
    return Samples(samples.images, arrival[samples.labels])


def _tables(arriving: list[str], sizes: Sequence[int]) -> list[ClassTable]:
    """Return the class table after each task."""
    tables = [ClassTable()]
    for start, end in pairwise(accumulate(sizes, initial=0)):
        tables.append(tables[-1].extend(arriving[start:end]))
    return tables[1:]


def _block(labels: Tensor, classes: ClassTable) -> Tensor:
    """Return the indices of the samples of the newest task's classes."""
    return torch.nonzero((labels >= classes.old) & (labels < classes.seen)).flatten()


def _check_order(order: Sequence[int], names: Sequence[str]) -> None:
    if repeated := [c for c, count in Counter(order).items() if count > 1]:
        raise UserError(f"class_order: class {repeated[0]} comes twice; give each class once")
    if strange := set(order) - set(range(len(names))):
        raise UserError(f"class_order: {min(strange)} is no class; give numbers from 0 to {len(names) - 1}")
    if missing := sorted(set(range(len(names))) - set(order)):
        raise UserError(f"class_order: class {missing[0]} ({names[missing[0]]}) is missing; give all {len(names)}")


def _check_sizes(sizes: Sequence[int], classes: int) -> None:
    listed = ",".join(map(str, sizes))
    if not sizes or min(sizes) < 1:
        raise UserError(f"task_sizes: {listed or 'nothing'} leaves a task empty; give each task at least one class")
    if sum(sizes) > classes:
        raise UserError(f"task_sizes: {listed} sum to {sum(sizes)}; there are only {classes} classes")


def _check_pairs(pairs: Tensor, images: int) -> None:
    """Raise UserError unless (image, task) pairs are of these images, each once, with tasks 1, 2, ... without a gap."""
    if not len(pairs):
        raise UserError("stream: it gives no image a task; give pairs of an image and its task, counted from 1")
    strange = pairs[(pairs[:, 0] < 0) | (pairs[:, 0] >= images)]
    if len(strange):
        raise UserError(f"stream: {int(strange[0, 0])} is no training image; give indices from 0 to {images - 1}")
    found, counts = pairs.unique(dim=0, return_counts=True)
    if counts.max() > 1:
        image, task = found[counts.argmax()].tolist()
        raise UserError(f"stream: image {image} comes twice in task {task}; give each pair once")
    tasks = pairs[:, 1].unique().tolist()
    if wrong := [task for task, wanted in zip(tasks, range(1, len(tasks) + 1), strict=True) if task != wanted]:
        raise UserError(f"stream: it has a task {wrong[0]}, but not all before it; count tasks from 1, without a gap")


def _check_images(train: Samples, test: Samples, tables: Sequence[ClassTable]) -> None:
    last = tables[-1]
    images = torch.bincount(train.labels, minlength=last.seen)[: last.seen]
    if not images.all():
        name = last.names[int(images.argmin())]
        raise UserError(f"data: class {name!r} has no training images; add some, or leave the class out")
    for table in tables:
        if table.new and not len(_block(test.labels, table)):
            raise UserError(f"data: no class of task {table.task} has test images; add some, or make its task larger")
