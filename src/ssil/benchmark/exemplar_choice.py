"""Which images of a run become exemplars after a task, and how many fit beside the model."""

from dataclasses import replace
from math import prod

from ssil.benchmark.run_setup import RunSetup
from ssil.core.errors import UserError
from ssil.learning import memory as memories
from ssil.learning.distributed import broadcast
from ssil.learning.evaluation import feature_lookup
from ssil.learning.exemplar_values import with_values
from ssil.learning.memory import MEGABYTE, MegabyteBudget, Memory, MemoryBudget, Select
from ssil.learning.model_state import model_size
from ssil.learning.snapshot import MAIN, Snapshot
from ssil.learning.task import Task
from ssil.nn.network import Network


def choose_exemplars(setup: RunSetup, memory: Memory, task: Task, snapshot: Snapshot) -> Memory:
    """Return the memory after a task, with what the method stores with each exemplar."""
    context, method = setup.context, setup.configured.method
    select: Select = memories.random_selection(context.random)
    if setup.config.selection == "herding":
        select = memories.herding(feature_lookup(snapshot, task.indices, context))
    arrived = memories.by_class(task.indices, context.samples.labels)
    chosen = memories.update(memory, arrived, task.classes, _budget(setup, task, snapshot), select)
    broadcast(context.fabric, chosen.exemplars)
    context.last_features.clear()  # nobody will ask for them again
    complete = with_values(method, snapshot, chosen, context)
    broadcast(context.fabric, complete.stored.values())
    return complete


def _budget(setup: RunSetup, task: Task, snapshot: Snapshot) -> MemoryBudget:
    """Return the run's budget; of one in megabytes, what the model leaves for exemplars."""
    if not isinstance(setup.budget, MegabyteBudget):
        return setup.budget
    one = with_values(setup.configured.method, snapshot, Memory((task.indices[:1],)), setup.context)
    size = _image_bytes(setup) + sum(values.nbytes for values in one.stored.values())
    beside = replace(setup.budget, exemplar_bytes=size, model_bytes=model_size(snapshot, MAIN).size)
    _refuse_few(beside, task.classes.seen)
    return beside


def refuse_no_room(setup: RunSetup, network: Network) -> None:
    """Raise UserError if beside this network there is no room for an exemplar of each class of the stream."""
    if isinstance(setup.budget, MegabyteBudget):
        size = sum(tensor.nbytes for tensor in network.state_dict().values())
        beside = replace(setup.budget, exemplar_bytes=_image_bytes(setup), model_bytes=size)
        _refuse_few(beside, setup.stream.tasks[-1].classes.seen)


def _image_bytes(setup: RunSetup) -> int:
    return prod(setup.context.samples.images.shape)


def _refuse_few(budget: MegabyteBudget, classes: int) -> None:
    if budget.total < classes:
        room = f"beside a model of {budget.model_bytes / MEGABYTE:.2f} MB there is room for {budget.total} exemplars"
        raise UserError(f"memory_mb: {budget.megabytes:g} is too little for {classes} classes: {room}; give more")
