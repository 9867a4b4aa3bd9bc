"""Heads: features to logits, with one row (or more) of weights for each class, appended as classes arrive."""

from copy import deepcopy
from typing import Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ssil.nn.initial import uniform_


class Head(nn.Module):
    """Features (B, width) to logits (B, classes). Starts without classes.

    A kind of head gives `forward` and `new_rows`. All that is not named by `new_rows` is carried over as it is.
    """

    weight: nn.Parameter

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.weight)

    def forward(self, features: Tensor) -> Tensor:
        """One logit per class."""
        raise NotImplementedError

    def new_rows(self, new: int, generator: torch.Generator) -> dict[str, Tensor]:
        """For each parameter that has a row per class, by name: the rows with which `new` classes start."""
        raise NotImplementedError

    def grow(self, new: int, generator: torch.Generator) -> Self:
        """A head with `new` more classes, whose old rows are the same bit for bit; this one stays as it is."""
        grown = deepcopy(self)
        for name, rows in self.new_rows(new, generator).items():
            old: Tensor = getattr(self, name).detach()
            setattr(grown, name, nn.Parameter(torch.cat([old, rows.to(old)])))
        return grown


class LinearHead(Head):
    """Logits W f + b. New rows start as PyTorch's linear layer does; with "zero", those after the first task at zero.

    Zero is what a head allocated for all classes at the start amounts to, as in the code of SS-IL's authors: weight
    decay has shrunk the rows of classes not yet seen to next to nothing by the time that they arrive.

    >>> head = LinearHead(width=4).grow(2, torch.Generator()).grow(3, torch.Generator())
    >>> head.classes, tuple(head(torch.ones(1, 4)).shape)
    (5, (1, 5))
    """

    def __init__(self, width: int, bias: bool = True, init: Literal["default", "zero"] = "default"):
        super().__init__()
        self.init = init
        self.weight = nn.Parameter(torch.empty(0, width))
        self.bias = nn.Parameter(torch.empty(0)) if bias else None

    def forward(self, features: Tensor) -> Tensor:
        """W f + b."""
        return F.linear(features, self.weight, self.bias)

    def new_rows(self, new: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Rows of the weights and the biases."""
        width = self.weight.shape[1]
        rows = {"weight": torch.zeros(new, width)} | ({} if self.bias is None else {"bias": torch.zeros(new)})
        if self.init == "default" or not self.classes:
            for tensor in rows.values():
                uniform_(tensor, width, generator)
        return rows
