"""The optimiser of a phase: SGD or AdamW, in groups with rates of their own, and its state by parameter name."""

from collections.abc import Iterable, Mapping, Sequence
from inspect import unwrap

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from ssil.learning.schedule import Schedule

MOMENTUM = "momentum_buffer"
"""The key of SGD's state. It is kept under the parameter's name alone, that of other keys as `key:parameter`."""


class Sgd(SGD):
    """torch's SGD, equal to it bit for bit.

    The methods of a torch optimiser are wrapped in functions that import torch's compiler when they are first called,
    even where nothing is compiled, which takes most of a second. Here they are called without these wrappers.
    """

    add_param_group = unwrap(SGD.add_param_group)
    zero_grad = unwrap(SGD.zero_grad)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Change each parameter by its gradient."""
        unwrap(SGD.step)(self, closure)


def make_optimizer(
    parameters: Iterable[nn.Parameter], schedule: Schedule, factors: Mapping[nn.Parameter, float]
) -> Optimizer:
    """Return the optimiser of a schedule. AdamW's first beta is the schedule's momentum, its second is 0.999.

    Args:
        parameters: The parameters to train.
        schedule: Which optimiser, its momentum and weight decay.
        factors: What the learning rate of some parameters is multiplied by.
    """
    groups: dict[float, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(factors.get(parameter, 1.0), []).append(parameter)
    by_rate = [{"params": members, "factor": factor} for factor, members in groups.items()]
    lr, momentum, decay = schedule.lr[0], schedule.momentum, schedule.weight_decay
    if schedule.optimizer == "adamw":
        return AdamW(by_rate, lr=lr, betas=(momentum, 0.999), weight_decay=decay)
    return Sgd(by_rate, lr=lr, momentum=momentum, weight_decay=decay)


def set_rate(optimizer: Optimizer, lr: float) -> None:
    """Set the learning rate of each group: `lr` times the group's factor."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["factor"]


def optimizer_state(optimizer: Optimizer, module: nn.Module) -> dict[str, Tensor]:
    """Return what the optimiser keeps for each parameter of a module, such as momentum, by the parameter's name."""
    return {
        name if key == MOMENTUM else f"{key}:{name}": value
        for name, parameter in module.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
        if value is not None
    }


def restore_optimizer_state(optimizer: Optimizer, module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Give the optimiser the state that `optimizer_state` returned."""
    parameters = dict(module.named_parameters())
    for label, value in state.items():
        key, name = _parsed(label)
        parameter = parameters[name].detach()
        # In the parameter's own memory layout: a bit-equal step depends on it.
        kept = torch.empty_like(value) if _is_count(key) else torch.empty_like(parameter)
        optimizer.state[parameters[name]][key] = kept.copy_(value)


def misplaced(state: Mapping[str, Tensor], module: nn.Module | None, schedule: Schedule | None) -> Sequence[str]:
    """Return the entries of a state that no parameter of the module can have under the schedule's optimiser."""
    shapes = {name: parameter.shape for name, parameter in module.named_parameters()} if module else {}
    keys = {"exp_avg", "exp_avg_sq", "step"} if schedule and schedule.optimizer == "adamw" else {MOMENTUM}

    def fits(label: str, value: Tensor) -> bool:
        key, name = _parsed(label)
        return key in keys and name in shapes and value.shape == (() if _is_count(key) else shapes[name])

    return [label for label, value in state.items() if not fits(label, value)]


def _parsed(label: str) -> tuple[str, str]:
    key, separator, name = label.partition(":")
    return (key, name) if separator else (MOMENTUM, label)


def _is_count(key: str) -> bool:
    """Whether the entry is the number of steps, which has no parameter's shape."""
    return key == "step"
