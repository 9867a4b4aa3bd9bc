"""Values that a memory keeps with each exemplar beside its image, such as logits at the time of storing (DER++)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ssil.core.errors import UserError
from ssil.learning.batches import Pool
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import Memory, with_empty_row
from ssil.learning.method import Method
from ssil.learning.snapshot import Snapshot, TaskState


def with_values(method: Method, snapshot: Snapshot | None, memory: Memory, context: ExecutionContext) -> Memory:
    """Return the memory with what the method stores with each exemplar; a model computes what is not stored yet.

    Of exemplars that were stored before, the values stay. A memory of a method that stores nothing, from which another
    method goes on, has no values; they are then computed by the model that the other method starts with.

    Args:
        method: The method, which need not store anything.
        snapshot: The model that computes: after a task that of the task, before a task that of the one before.
        memory: The memory.
        context: The devices and the training images.
    """
    if not method.stored or not snapshot:
        return memory
    missing = _rows_without_values(memory)
    if not len(missing):
        return memory
    indices = memory.indices[missing]
    pool, random = Pool(indices[:0], memory.indices, context.samples.labels), context.random
    position = random.within(snapshot.classes.task, "stored")
    state = TaskState(
        snapshot.network, snapshot.scorers, snapshot.classes, pool, None, position, context.outputs, memory
    )
    with torch.no_grad():
        values = method.stored.compute(state, indices)
    return replace(memory, stored={name: _filled(memory, name, missing, one) for name, one in values.items()})


def _rows_without_values(memory: Memory) -> Tensor:
    """Return the rows of the exemplars with which nothing is stored."""
    empty = torch.ones(len(memory), dtype=torch.bool)
    for values in memory.stored.values():
        empty &= values.flatten(1).isnan().all(1)
    return empty.nonzero().flatten()


def _filled(memory: Memory, name: str, rows: Tensor, values: Tensor) -> Tensor:
    """Return a stored tensor with values in some rows; where these have grown, older rows end with NaN.

    Raises:
        UserError: The values are not numbers with a fraction, not one row per exemplar, or of another dimension.
    """
    before = memory.stored.get(name, values.new_empty(len(memory), *(0 for _ in values.shape[1:])).cpu())
    if not values.is_floating_point() or len(values) != len(rows) or values.ndim != before.ndim:
        wanted = f"a floating-point tensor with {len(rows)} rows and {before.ndim} dimensions"
        raise UserError(f"method: what it stores as {name!r} has the shape {tuple(values.shape)}; return {wanted}")
    sizes = [max(pair) for pair in zip(before.shape[1:], values.shape[1:], strict=True)]
    whole = _widened(before, sizes)
    whole[rows] = _widened(values, sizes).to(whole)
    return whole


def _widened(values: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return values whose dimensions after the first have these sizes; what is added is NaN."""
    whole = values.new_full((len(values), *sizes), torch.nan)
    whole[tuple(map(slice, values.shape))] = values.detach()
    return whole


def stacked(rows: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return what is stored with each of several exemplars as one tensor per name; what is not there is NaN.

    >>> stacked([{"logits": torch.tensor([1.0])}, {}, {"logits": torch.tensor([2.0, 3.0])}])["logits"].tolist()
    [[1.0, nan], [nan, nan], [2.0, 3.0]]
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _stacked([row.get(name) for row in rows]) for name in names}


def _stacked(rows: Sequence[Tensor | None]) -> Tensor:
    known = [row for row in rows if row is not None]
    if len({row.ndim for row in known}) > 1:
        raise UserError("model: what is stored with its exemplars differs in dimensions; delete those files")
    sizes = [max(lengths) for lengths in zip(*(row.shape for row in known), strict=True)]
    nothing = known[0].new_empty([0] * known[0].ndim)
    return torch.cat([_widened((nothing if row is None else row).unsqueeze(0), sizes) for row in rows])


def check_stored(method: Method, memory: Memory, classes: int) -> None:
    """Raise ValueError unless stored values have a row per exemplar, and where columns are classes, no more of them."""
    for name, values in memory.stored.items():
        per_class = method.stored is not None and name in method.stored.per_class
        if not values.is_floating_point() or len(values) != len(memory):
            raise ValueError(f"{name} is not stored with {len(memory)} exemplars")
        if per_class and (values.ndim != 2 or values.shape[1] > classes):
            raise ValueError(f"{name} of shape {tuple(values.shape)} is not stored for {classes} classes")


def without_class(stored: Mapping[str, Tensor], per_class: tuple[str, ...], label: int) -> dict[str, Tensor]:
    """Return one exemplar's values without a class: without its entry in the tensors that have one per class.

    >>> without_class({"logits": torch.tensor([1.0, 2.0, 3.0])}, ("logits",), 1)["logits"].tolist()
    [1.0, 3.0]
    """

    def kept(values: Tensor) -> Tensor:
        return torch.cat([values[:label], values[label + 1 :]])

    return {name: kept(values) if name in per_class else values for name, values in stored.items()}


class KeptValues:
    """Which training samples are exemplars, and what the memory keeps with them, for losses to look up."""

    def __init__(self, memory: Memory, samples: int, device: torch.device) -> None:
        self.count, self.device = len(memory), device
        self.row = torch.full((samples,), self.count)
        self.row[memory.indices] = torch.arange(self.count)
        self.stored = {name: with_empty_row(values).to(device) for name, values in memory.stored.items()}

    def of(self, indices: Tensor, replayed: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Return the indices, which are exemplars', which are replayed, and what is kept with each."""
        rows = self.row[indices].to(self.device)
        stored = {name: values[rows] for name, values in self.stored.items()}
        return indices, rows < self.count, replayed.to(self.device), stored
