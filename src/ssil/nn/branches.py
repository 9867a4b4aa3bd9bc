"""Backbones that grow: feature extractors side by side, whose features are concatenated (DER, FOSTER, MEMO).

The names of the parts are those that a phase can freeze: `backbone.shared`, `backbone.old`, `backbone.old.0`,
`backbone.new`. From the names of saved tensors `Network.restore` tells how many branches there are.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Literal

import torch
from torch import Tensor, nn

from ssil.core.errors import UserError
from ssil.nn.resnet import Backbone

Branching = Literal["backbone", "last stage"]
"""What a branch is: a whole backbone, or the last stage of one whose earlier stages all branches share."""


class Branches(Backbone):
    """Branches of equal shape on a part that they share: those of earlier tasks, `old`, and the newest, `new`."""

    def __init__(self, backbone: Backbone, branching: Branching):
        super().__init__()
        if not [*backbone.parameters()]:
            cure = "leave --freeze out, or give --tune all or --scratch"
            raise UserError(f"backbone: none of its parts is trained, so that it can't grow; {cure}")
        self.width = backbone.width
        self.shared: nn.Module | None
        self.shared, self.new = (None, backbone) if branching == "backbone" else backbone.split()
        self.old = nn.ModuleList()

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features of all branches, the newest last, and the maps of the shared stages and the newest's."""
        x, stages = self.shared(images) if self.shared else (images, ())
        before = [branch(x)[0] for branch in self.old]
        newest, own = self.new(x)
        return torch.cat([*before, newest], 1), (*stages, *own)

    def add(self) -> None:
        """Add a branch that starts as a copy of the newest one, which becomes an old one."""
        self.old.append(self.new)
        self.new = deepcopy(self.new)
        self.width += self.new.width

    def has_next(self, tensors: Mapping[str, Tensor]) -> bool:
        """Return whether saved tensors have a whole old branch more than this backbone."""
        saved = ((tensors.get(f"old.{len(self.old)}.{name}"), own) for name, own in self.new.state_dict().items())
        return all(tensor is not None and tensor.shape == own.shape for tensor, own in saved)
