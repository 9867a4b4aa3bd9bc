"""Networks, scorers and snapshots as named tensors, and back."""

from collections.abc import Mapping

from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning.engine import fresh, placed
from ssil.learning.execution import ExecutionContext
from ssil.learning.method import Method
from ssil.learning.snapshot import Scorer, Snapshot
from ssil.nn.network import Network


def snapshot_tensors(snapshot: Snapshot) -> dict[str, Tensor]:
    """All that a snapshot has learnt."""
    return model_tensors(snapshot.network, snapshot.scorers)


def restore_snapshot(
    tensors: Mapping[str, Tensor], method: Method, classes: ClassTable, context: ExecutionContext
) -> Snapshot:
    """The snapshot that these are the tensors of."""
    network, scorers = restore_model(tensors, method, classes, context)
    for scorer in scorers.values():
        scorer.requires_grad_(False)
    return Snapshot(network.requires_grad_(False).eval(), classes, scorers)


def model_tensors(network: Network, scorers: Mapping[str, Scorer]) -> dict[str, Tensor]:
    """Parameters and buffers of a network and its scorers."""
    modules = {"network": network, **{f"scorer.{name}": scorer for name, scorer in scorers.items()}}
    return joined({name: module.state_dict() for name, module in modules.items()})


def restore_model(
    tensors: Mapping[str, Tensor], method: Method, classes: ClassTable, context: ExecutionContext
) -> tuple[Network, dict[str, Scorer]]:
    """The network and the scorers that these are the tensors of."""
    groups = grouped(tensors)
    network = fresh(method, classes, context)
    network.load_state_dict(groups["network"])
    scorers = placed({name: make() for name, make in method.scorers.items()}, context)
    for name, scorer in scorers.items():
        scorer.restore(groups.get(f"scorer.{name}", {}))
    return network, scorers


def joined(groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Groups of tensors as one: `group/name`."""
    return {f"{group}/{name}": tensor for group, tensors in groups.items() for name, tensor in tensors.items()}


def grouped(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The groups that `joined` has joined."""
    groups: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        group, _, name = key.partition("/")
        groups.setdefault(group, {})[name] = tensor
    return groups
