"""Streams in which classes return: ready-made ones by name, such as `blurry:10`, and functions of the user's."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssil.benchmark.stream_table import is_table
from ssil.core.errors import UserError, did_you_mean, one_line
from ssil.core.plugins import code_file, load_object
from ssil.core.settings import MAX_SHOWN

Integers = NDArray[np.int64]
Spread = Callable[[Integers, int, int, float, np.random.Generator], Integers]
"""(images of a class, its own task, number of tasks, share, random) -> the task of each image, counted from 0."""
CODE: Final = re.compile(r"(.*\.py|[^\W\d][\w.]*):[^\W\d]\w*", re.DOTALL)
"""The form of a function's name: `file.py:function` or `module:function`."""
FUNCTION = "stream"
"""The name of the function in a file for which none is given."""


def blurry(images: Integers, own: int, tasks: int, share: float, random: np.random.Generator) -> Integers:
    """Put a share of a class's images into other tasks, each equally likely (Rainbow Memory, CVPR 2021)."""
    others = np.array([task for task in range(tasks) if task != own], dtype=np.int64)
    return _moved(len(images), own, others, share, random)


def returning(images: Integers, own: int, tasks: int, share: float, random: np.random.Generator) -> Integers:
    """Put a share of a class's images into later tasks, each equally likely; a class of the last task stays there."""
    return _moved(len(images), own, np.arange(own + 1, tasks), share, random)


def _moved(count: int, own: int, others: Integers, share: float, random: np.random.Generator) -> Integers:
    """Return the task of each image: another one for a share of them, its own for the rest."""
    found = np.full(count, own)
    moved = random.permutation(count)[: round(share * count)]
    if len(others):
        found[moved] = random.choice(others, len(moved))
    return found


def repeating(images: Integers, own: int, tasks: int, share: float, random: np.random.Generator) -> Integers:
    """Let a class come again in each later task with this probability; its tasks share its images evenly."""
    later = own + 1 + np.flatnonzero(random.random(tasks - own - 1) < share)
    found = np.full(len(images), own)
    parts = np.array_split(random.permutation(len(images)), 1 + len(later))
    for task, part in zip(later, parts[1:], strict=True):
        found[part] = task
    return found


class NamedStream(NamedTuple):
    """A ready-made stream, the percentage that is used where none is given, and a line of help."""

    spread: Spread
    default: float
    help: str


NAMED: Final[Mapping[str, NamedStream]] = {
    "blurry": NamedStream(blurry, 10, "this percentage of each class's images comes in other tasks, earlier or later"),
    "returning": NamedStream(returning, 30, "this percentage of each class's images comes in later tasks"),
    "repeating": NamedStream(repeating, 20, "a class comes again in each later task with this probability"),
}


def named_pairs(stream: str, labels: Tensor, own_task: Tensor, tasks: int, random: np.random.Generator) -> Tensor:
    """Return the pairs (index of a training image, task from 1 on) of a ready-made stream; each image comes once.

    Args:
        stream: Its name, and after a colon perhaps its percentage.
        labels: The class of each training image, classes being numbered by arrival.
        own_task: The task of each class, counted from 0; images of further classes are left out.
        tasks: The number of tasks.
        random: Draws the images that come in another task.
    """
    name, _, percent = stream.partition(":")
    spread, share = NAMED[name].spread, float(percent or NAMED[name].default) / 100
    pairs = []
    for label, own in enumerate(own_task.tolist()):
        images = np.flatnonzero(labels.numpy() == label)
        pairs.append(np.stack([images, 1 + spread(images, own, tasks, share, random)], 1))
    return torch.from_numpy(np.concatenate(pairs))


def called_pairs(stream: str, labels: Tensor, tasks: int, random: np.random.Generator) -> Tensor:
    """Return the pairs (index of a training image, task from 1 on) that a function of the user's gives.

    Args:
        stream: `file.py:function`, or `file.py` for its function `stream`.
        labels: The class of each training image, as the data set numbers classes.
        tasks: The number of tasks.
        random: NumPy's generator, keyed by the run's seed.

    Raises:
        UserError: There is no such function, it fails, or it gives something else.
    """
    function = _loaded(stream)
    try:
        found = function(labels.numpy().copy(), random, tasks)
        pairs = np.asarray(found if isinstance(found, np.ndarray) else [*found])
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"stream: {stream} raised {reason}; mend the function") from error
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        given = f"{pairs.dtype} of shape {pairs.shape}"
        raise UserError(f"stream: {stream} gave {given}; return pairs of whole numbers: (image index, task)")
    return torch.from_numpy(pairs.astype(np.int64))


def _loaded(stream: str) -> Callable[..., Any]:
    try:
        found: Callable[..., Any] = load_object(_reference(stream))
    except UserError as error:
        raise UserError(f"stream: {error}") from error
    if not callable(found):
        raise UserError(f"stream: {stream} is of type {type(found).__name__}; name a function")
    return found


def _reference(stream: str) -> str:
    return f"{stream}:{FUNCTION}" if stream.endswith(".py") else stream


def source_file(stream: str) -> Path | None:
    """Return the file that a stream is from, a table or code; None for a ready-made stream.

    >>> source_file("blurry:10"), source_file("mine.py:shuffled"), source_file("mine.csv")
    (None, PosixPath('mine.py'), PosixPath('mine.csv'))
    """
    if stream.partition(":")[0] in NAMED:
        return None
    if is_table(stream):
        return Path(stream)
    try:
        return code_file(_reference(stream))
    except UserError as error:
        raise UserError(f"stream: {error}") from None


def check_stream_name(stream: str) -> None:
    """Raise ValueError if a stream is neither a ready-made one, a table nor a function in a file."""
    name, colon, percent = stream.partition(":")
    if name in NAMED:
        if colon and not _is_percentage(percent):
            raise ValueError(f"stream: {percent[:MAX_SHOWN]!r} is no percentage; give 0 to 100, such as {name}:10")
    elif not is_table(stream) and not CODE.fullmatch(_reference(stream)):
        hint = did_you_mean(name, NAMED, f"give {', '.join(NAMED)}, a table FILE.csv, or FILE.py:function")
        raise ValueError(f"stream: {stream[:MAX_SHOWN]!r} is no stream; {hint}")


def _is_percentage(text: str) -> bool:
    try:
        return 0 <= float(text) <= 100
    except ValueError:
        return False


def numpy_generator(generator: torch.Generator) -> np.random.Generator:
    """Return NumPy's generator with the seed of one of torch's."""
    return np.random.default_rng(generator.initial_seed())
