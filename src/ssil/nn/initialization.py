"""Initial weights, drawn from one generator, submodule by submodule in the order of their definition."""

from math import sqrt

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from ssil.core.errors import UserError


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Set all weights and buffers: convolutions Kaiming-normal (fan out), norms 1 and 0, linear layers as in PyTorch.

    A module with a method `initialise(generator)` sets its own weights and those of its submodules, for example from a
    file. Raise UserError for a module of another kind that has weights.
    """
    if callable(own := getattr(module, "initialise", None)):
        own(generator)
        return
    _initialise_own(module, generator)
    for child in module.children():
        initialise(child, generator)


@torch.no_grad()
def _initialise_own(module: nn.Module, generator: torch.Generator) -> None:
    match module:
        case _ConvNd():
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu", generator=generator)
            if module.bias is not None:
                module.bias.zero_()
        case nn.Linear():
            for tensor in module.parameters():
                uniform_(tensor, module.in_features, generator)
        case _NormBase() | nn.GroupNorm() | nn.LayerNorm():
            module.reset_parameters()
        case _ if [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            name = type(module).__name__
            raise UserError(
                f"backbone: no rule for the initial weights of {name}; give it a method initialise(generator)"
            )


def uniform_(tensor: torch.Tensor, inputs: int, generator: torch.Generator) -> torch.Tensor:
    """Fill a tensor from U(-1/sqrt(inputs), 1/sqrt(inputs)), as PyTorch initialises linear layers; return it."""
    return nn.init.uniform_(tensor, -1 / sqrt(inputs), 1 / sqrt(inputs), generator=generator)
