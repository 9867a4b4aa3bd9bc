"""Heads: from features to logits, with one or more rows of weights per class, which are added as classes arrive."""

from copy import deepcopy
from math import sqrt
from typing import Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ssil.nn.initialization import uniform_


class Head(nn.Module):
    """Maps features (B, width) to logits (B, classes); has no class at first.

    Subclasses define `forward` and `new_rows`. Parameters not named by `new_rows` stay unchanged as classes arrive.
    """

    weight: nn.Parameter

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.weight)

    def forward(self, features: Tensor) -> Tensor:
        """Return one logit per class."""
        raise NotImplementedError

    def new_rows(self, new: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Return the initial rows of `new` classes for each parameter that has rows, by its name."""
        raise NotImplementedError

    def grow(self, new: int, generator: torch.Generator) -> Self:
        """Return a copy with `new` more classes. The rows of old classes are the same bit for bit."""
        grown = deepcopy(self)
        for name, rows in self.new_rows(new, generator).items():
            old: Tensor = getattr(self, name).detach()
            setattr(grown, name, nn.Parameter(torch.cat([old, rows.to(old)])))
        return grown

    def widen(self, new: int, generator: torch.Generator) -> Self:
        """Return a copy for `new` more features. The weights of the features before them are the same bit for bit.

        >>> head = LinearHead(width=4).grow(3, torch.Generator()).widen(2, torch.Generator())
        >>> tuple(head.weight.shape), tuple(head(torch.ones(1, 6)).shape)
        ((3, 6), (1, 3))
        """
        wide, old = deepcopy(self), self.weight.detach()
        columns = uniform_(torch.empty(*old.shape[:-1], new), old.shape[-1] + new, generator)
        wide.weight = nn.Parameter(torch.cat([old, columns.to(old)], -1))
        return wide

    def without(self, label: int) -> Self:
        """Return a copy without the rows of a class. Parameters without a dimension have no rows."""
        less = deepcopy(self)
        for name, old in self.named_parameters(recurse=False):
            if old.dim():
                kept = torch.cat([old[:label], old[label + 1 :]]).detach()
                setattr(less, name, nn.Parameter(kept, requires_grad=old.requires_grad))
        return less


class LinearHead(Head):
    """Logits W f + b. New rows are initialised as PyTorch's linear layer; with "zero", at zero after the first task.

    The code of SS-IL's authors allocates the head for all classes at the start. Until a class arrives, weight decay has
    shrunk its rows to almost zero; "zero" has the same effect.

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
        """Return W f + b."""
        return F.linear(features, self.weight, self.bias)

    def new_rows(self, new: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Return rows of the weights and the biases."""
        width = self.weight.shape[1]
        rows = {"weight": torch.zeros(new, width)} | ({} if self.bias is None else {"bias": torch.zeros(new)})
        if self.init == "default" or not self.classes:
            for tensor in rows.values():
                uniform_(tensor, width, generator)
        return rows


class CosineHead(Head):
    """LUCIR's logits (Hou et al., CVPR 2019): a learnt scale times the cosine of the features and a class's row.

    >>> head = CosineHead(width=4).grow(2, torch.Generator())
    >>> bool((head(torch.ones(1, 4)).abs() <= 1.0).all())
    True
    """

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(0, width))
        self.scale = nn.Parameter(torch.ones(()))  # no dimension: every parameter that has one has a row per class

    def cosines(self, features: Tensor) -> Tensor:
        """Return the logits before scaling (B, classes)."""
        return F.linear(F.normalize(features), F.normalize(self.weight))

    def forward(self, features: Tensor) -> Tensor:
        """Return the scaled cosines."""
        return self.scale * self.cosines(features)

    def new_rows(self, new: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Return rows of the weights; the scale stays unchanged."""
        width = self.weight.shape[1]
        return {"weight": uniform_(torch.empty(new, width), width, generator)}


class ProxyHead(Head):
    """PODNet's local similarity classifier (Douillard et al., ECCV 2020): several proxies per class.

    The similarity of features and proxy is minus the squared distance of the unit vectors, 2 cos - 2. The score of a
    class is the mean of its proxies' similarities, weighted by their softmax. The scale is a parameter of the head that
    only the loss uses.

    >>> head = ProxyHead(width=4, proxies=3).grow(2, torch.Generator())
    >>> tuple(head.weight.shape), tuple(head(torch.ones(1, 4)).shape)
    ((2, 3, 4), (1, 2))
    """

    def __init__(self, width: int, proxies: int = 10):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(0, proxies, width))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, features: Tensor) -> Tensor:
        """Return one score per class, in [-4, 0]."""
        cosines = F.linear(F.normalize(features), F.normalize(self.weight.flatten(0, 1)))
        similarities: Tensor = 2 * cosines.unflatten(1, self.weight.shape[:2]) - 2
        return (similarities.softmax(2) * similarities).sum(2)

    def new_rows(self, new: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Return proxies, Kaiming-normal; the scale stays unchanged."""
        _, proxies, width = self.weight.shape
        return {"weight": torch.randn(new, proxies, width, generator=generator) / sqrt(width)}
