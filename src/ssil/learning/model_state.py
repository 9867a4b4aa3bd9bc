"""Building a model, placing it on the device, and converting models to and from named tensors.

Restoring a saved model for prediction needs this module, not the engine or the trainer.
"""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning.execution import ExecutionContext
from ssil.learning.method import Method
from ssil.learning.snapshot import Scorer, Snapshot
from ssil.nn.network import Network, build


def initial_network(method: Method, classes: ClassTable, context: ExecutionContext) -> Network:
    """Return a new network with initial weights and a head for the given classes, on the context's device."""
    generator = context.random.at("backbone", classes.task)
    channels = context.samples.images.shape[2]
    shape = channels, context.norm, generator, method.final_relu, context.init, method.branches, context.views
    network = build(context.backbone, method.head, *shape)
    for task, size in enumerate(classes.sizes, 1):
        network.head = network.head.grow(size, context.random.at("head", task))
    return network.to(device=context.device, dtype=context.dtype)


def place_scorers(scorers: Mapping[str, Scorer], context: ExecutionContext) -> dict[str, Scorer]:
    """Move the scorers to the context's device and floating-point type."""
    return {name: scorer.place(context.device, context.dtype) for name, scorer in scorers.items()}


def snapshot_tensors(snapshot: Snapshot) -> dict[str, Tensor]:
    """Return all parameters and buffers of a snapshot by name, for `restore_snapshot`."""
    return model_tensors(snapshot.network, snapshot.scorers)


def restore_snapshot(
    tensors: Mapping[str, Tensor], method: Method, classes: ClassTable, context: ExecutionContext
) -> Snapshot:
    """Return the snapshot from which `snapshot_tensors` took the tensors."""
    network, scorers = restore_model(tensors, method, classes, context)
    for scorer in scorers.values():
        scorer.requires_grad_(False)
    return Snapshot(network.requires_grad_(False).eval(), classes, scorers)


class ModelSize(NamedTuple):
    """How many parameters a model's network has, and how many bytes its saved tensors take."""

    parameters: int
    size: int


def model_size(snapshot: Snapshot, scorer: str) -> ModelSize:
    """Return the size of a snapshot with one of its scorers: weights and buffers of the network and the scorer."""
    tensors = model_tensors(snapshot.network, {scorer: snapshot.scorers[scorer]}).values()
    parameters = sum(parameter.numel() for parameter in snapshot.network.parameters())
    return ModelSize(parameters, sum(tensor.nbytes for tensor in tensors))


def model_tensors(network: Network, scorers: Mapping[str, Scorer]) -> dict[str, Tensor]:
    """Return the parameters and buffers of a network and its scorers by name: `network/...`, `scorer.NAME/...`."""
    modules = {"network": network, **{f"scorer.{name}": scorer for name, scorer in scorers.items()}}
    return join_groups({name: module.state_dict() for name, module in modules.items()})


def restore_model(
    tensors: Mapping[str, Tensor], method: Method, classes: ClassTable, context: ExecutionContext
) -> tuple[Network, dict[str, Scorer]]:
    """Return the network and the scorers from which `model_tensors` took the tensors."""
    groups = split_groups(tensors)
    network = initial_network(method, classes, context)
    network.restore(groups["network"])
    scorers = place_scorers({name: make() for name, make in method.scorers.items()}, context)
    for name, scorer in scorers.items():
        scorer.restore(groups.get(f"scorer.{name}", {}))
    return network, scorers


def join_groups(groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the tensors of all groups in one mapping, each called `group/name`."""
    return {f"{group}/{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()}


def split_groups(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Return the groups that `join_groups` has joined."""
    groups: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        group, _, name = key.partition("/")
        groups.setdefault(group, {})[name] = tensor
    return groups
