"""Any `nn.Module` as a backbone: its constructor's weights are kept, and its output is made features and stage maps."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ssil.core.errors import UserError, one_line
from ssil.nn.resnet import Backbone

TRIAL_SIZES = (32, 64, 128, 224)
"""Sides of the images with which the width of a module's features is found out, until it takes one."""


class AnyModule(Backbone):
    """A module of the user's as a backbone. Its weights are those that its constructor sets.

    What the constructor draws from torch's global generator depends on the run's seed alone: the constructor is called
    for each new network, with the generator set for that time.

    Args:
        make: Creates the module.
        name: Its name, for messages.
        in_channels: The channels of the images, or the length of the vectors, that the module gets.

    Raises:
        UserError: The module takes no images, or returns something else than features.
    """

    def __init__(self, make: Callable[[], nn.Module], name: str, in_channels: int) -> None:
        super().__init__()
        self.make, self.name = make, name
        self.module = _made(make, 0, name)
        given = getattr(self.module, "width", None)
        self.width = given if isinstance(given, int) else self._found_width(in_channels)

    def initialise(self, generator: torch.Generator) -> None:
        """Set all weights and buffers to those that the constructor sets with this generator's seed."""
        fresh = _made(self.make, generator.initial_seed(), self.name)
        theirs = dict([*fresh.named_parameters(), *fresh.named_buffers()])
        with torch.no_grad():
            for key, tensor in [*self.module.named_parameters(), *self.module.named_buffers()]:
                tensor.copy_(theirs[key])

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features, averaged over the image where they are maps, and the stage maps if there are any."""
        try:
            output = self.module(images)
        except Exception as error:  # of any type: the module is the user's
            shape = f"an input of shape {tuple(images.shape)}"
            raise UserError(f"backbone: {self.name} can't compute {shape} ({one_line(error)}); mend it") from error
        features, stages = self._parts(output)
        return (features.mean((2, 3)) if features.ndim == 4 else features), stages

    def _parts(self, output: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        pair = isinstance(output, tuple | list) and len(output) == 2
        features, stages = output if pair else (output, ())
        maps: list[Any] = [*stages] if isinstance(stages, tuple | list) else [None]
        if not isinstance(features, Tensor) or features.ndim not in (2, 4) or not all(map(torch.is_tensor, maps)):
            shape = f" of shape {tuple(output.shape)}" if isinstance(output, Tensor) else ""
            wanted = "return features (B, width), maps (B, C, H, W), or a pair of features and a tuple of stage maps"
            raise UserError(f"backbone: {self.name} returned a {type(output).__name__}{shape}; {wanted}")
        return features, tuple(maps)

    def _found_width(self, in_channels: int) -> int:
        """Return the number of features, by a trial."""
        shapes = [(2, in_channels, size, size) for size in TRIAL_SIZES]
        reasons = []
        self.module.eval()
        for shape in [*shapes, (2, in_channels)]:
            try:
                with torch.no_grad():
                    output = self.module(torch.zeros(shape))
            except Exception as error:  # of any type: the module is the user's
                reasons.append(one_line(error))
                continue
            self.module.train()
            return int(self._parts(output)[0].shape[1])
        reason = f"takes no images of {in_channels} channels ({reasons[0]})"
        raise UserError(f"backbone: {self.name} {reason}; mend it, or give it an attribute width")


def _made(make: Callable[[], nn.Module], seed: int, name: str) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return make()
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"backbone: {name} can't be made ({one_line(error)}); mend it") from error


def called_as_declared(
    function: Callable[..., nn.Module], in_channels: int, norm: str, final_relu: bool = True
) -> nn.Module:
    """Call a function that makes a backbone with those of (in_channels, norm, final_relu) that it takes.

    They are given by name. A function with other names gets all three by position if it takes three or more arguments,
    or any number (`*args`), and none otherwise. A module without a constructor of its own gets none.

    >>> called_as_declared(lambda in_channels: nn.Conv2d(in_channels, 8, 3), 3, "batch", True).in_channels
    3
    """
    parameters = inspect.signature(function).parameters
    inherited = inspect.isclass(function) and parameters == inspect.signature(nn.Module).parameters
    if inherited:
        return function()
    named = {"in_channels": in_channels, "norm": norm, "final_relu": final_relu}
    taken = {name: value for name, value in named.items() if name in parameters}
    kinds = [one.kind for one in parameters.values()]
    positional = kinds.count(inspect.Parameter.POSITIONAL_ONLY) + kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes_all = inspect.Parameter.VAR_POSITIONAL in kinds or positional >= len(named)
    if takes_all and len(taken) < len(named):
        return function(*named.values())
    return function(**taken)
