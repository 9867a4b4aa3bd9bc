"""The optimiser of all training: torch's SGD, without the start-up time that it would cost."""

from inspect import unwrap

import torch
from torch.optim import SGD


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
