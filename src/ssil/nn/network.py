"""Networks of a backbone and a head: outputs, growth, copies, and construction."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ssil.core.errors import UserError
from ssil.nn.backbones import find_backbone
from ssil.nn.branches import Branches, Branching
from ssil.nn.construction import constructed, refuse_unset
from ssil.nn.heads import Head, LinearHead
from ssil.nn.initialization import initialise
from ssil.nn.pretrained import Pretrained, load_backbone
from ssil.nn.resnet import Backbone, ConvNorm, Norm
from ssil.nn.strided_convolutions import replace_unsafe_convolutions
from ssil.nn.views import WholeAndCentre


class Output(NamedTuple):
    """A network's output for a batch: logits, features (the input of the head), and stage maps before their ReLU.

    Of a network that has an auxiliary head, also that head's logits.
    """

    logits: Tensor
    """(B, classes)"""
    features: Tensor
    """(B, width)"""
    stages: tuple[Tensor, ...] = ()
    """One map (B, channels, height, width) per stage; none if the backbone gives none."""
    auxiliary: Tensor | None = None
    """(B, outputs of the auxiliary head)"""


class Network(nn.Module):
    """A backbone and a head; parameters named in `fixed` are never trained.

    A method may give it an auxiliary head for a while, on the features of the newest branch alone; a backbone without
    branches is one branch.
    """

    def __init__(self, backbone: Backbone, head: Head, fixed: tuple[str, ...] = ()):
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.fixed = fixed
        self.auxiliary: Head | None = None

    def forward(self, images: Tensor) -> Output:
        """Return logits, features and stage maps of images (B, C, H, W)."""
        features, stages = self.backbone(images)
        with torch.autocast(images.device.type, enabled=False):  # in bf16, the scores of many classes would be equal
            features = features.to(self.head.weight.dtype)
            auxiliary = self.auxiliary(features[:, -self._branch_width :]) if self.auxiliary else None
            return Output(self.head(features), features, stages, auxiliary)

    def grow(self, new: int, generator: torch.Generator) -> Self:
        """Return a trainable copy whose head has `new` more classes."""
        grown = deepcopy(self)
        grown.head = self.head.grow(new, generator)
        return grown.trainable(grown).train()

    @property
    def _branch_width(self) -> int:
        return self.backbone.new.width if isinstance(self.backbone, Branches) else self.backbone.width

    def add_branch(self, generator: torch.Generator) -> None:
        """Add a branch that starts as a copy of the newest one, and columns of the head for its features.

        Raises:
            UserError: The network was not built with branches.
        """
        if not isinstance(self.backbone, Branches):
            raise UserError("method: its network has no branches; give Method(branches=...)")
        old, new = f"backbone.old.{len(self.backbone.old)}.", "backbone.new."
        self.fixed += tuple(name.replace(new, old, 1) for name in self.fixed if name.startswith(new))
        self.head = self.head.widen(self._branch_width, generator)
        self.backbone.add()

    def add_auxiliary_head(self, outputs: int, generator: torch.Generator) -> None:
        """Put a linear head on the features of the newest branch."""
        self.auxiliary = LinearHead(self._branch_width).grow(outputs, generator).to(self.head.weight)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Set the weights and buffers to a saved state, with the branches and the auxiliary head that it has.

        Raises:
            RuntimeError: The state is not that of such a network.
        """
        of_backbone = {name.removeprefix("backbone."): saved for name, saved in tensors.items()}
        while isinstance(self.backbone, Branches) and self.backbone.has_next(of_backbone):
            self.add_branch(torch.Generator())
        weight = tensors.get("auxiliary.weight")
        if weight is not None and weight.shape[1:] == (self._branch_width,):
            self.add_auxiliary_head(len(weight), torch.Generator())
        self.load_state_dict(tensors)

    def trainable(self, part: nn.Module) -> Self:
        """Let gradients flow to the whole network, its head or its backbone, except for `fixed` parameters."""
        part.requires_grad_(True)
        for name in self.fixed:
            self.get_parameter(name).requires_grad_(False)
        return self

    def headless(self) -> "Network":
        """Return the same backbone with a head without classes, to compute features only.

        >>> from ssil.nn.heads import LinearHead
        >>> network = build("resnet14", LinearHead, 3, "batch", torch.Generator()).grow(10, torch.Generator()).eval()
        >>> images = torch.ones(2, 3, 8, 8)
        >>> output = network.headless()(images)
        >>> output.logits.shape, bool((output.features == network(images).features).all())
        (torch.Size([2, 0]), True)
        """
        return Network(self.backbone, LinearHead(self.head.weight.shape[-1]).to(self.head.weight))

    def clone(self) -> Self:
        """Return a copy in eval mode and without gradients."""
        return deepcopy(self).requires_grad_(False).eval()


def build(
    backbone: str,
    head: Callable[[int], Head],
    in_channels: int,
    norm: Norm,
    generator: torch.Generator,
    final_relu: bool = True,
    init: Pretrained | None = None,
    branching: Branching | None = None,
    views: int = 1,
) -> Network:
    """Return a new network without classes, in channels-last memory format.

    Parameters whose `requires_grad` the constructor of the backbone or the head sets to False are never trained.

    Args:
        backbone: The backbone's name, see `find_backbone`.
        head: Creates the head for features of the given width.
        in_channels: Channels of the images.
        norm: The kind of normalisation layers.
        generator: Draws the initial weights.
        final_relu: Whether features end with a ReLU.
        init: The backbone's weights, instead of random ones.
        branching: What later tasks may add to the backbone; None for nothing.
        views: With 2, the features of the whole image and of its centre are averaged, see `WholeAndCentre`.

    >>> from ssil.nn.heads import LinearHead
    >>> network = build("resnet14", LinearHead, 3, "batch", torch.Generator()).grow(10, torch.Generator())
    >>> network(torch.zeros(2, 3, 32, 32)).logits.shape
    torch.Size([2, 10])
    """
    make = find_backbone(backbone)
    body = constructed(lambda: make(in_channels, norm, final_relu), backbone, in_channels)
    replace_unsafe_convolutions(body)
    initialise(body, generator)
    refuse_unset(body)
    if init:
        load_backbone(body, init)
    body = WholeAndCentre(body) if views > 1 else body
    network = Network(Branches(body, branching) if branching else body, head(body.width))
    network.fixed = tuple(name for name, own in network.named_parameters() if not own.requires_grad)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # the stubs lack this argument
    return network


def folded(network: Network) -> Network:
    """Return a frozen copy whose batch norms are folded into the convolutions of their `ConvNorm`.

    The copy computes the same faster. It must not be saved: its parameters have other names and shapes.
    """
    copy = network.clone()
    for parent in list(copy.modules()):
        for name, child in parent.named_children():
            if isinstance(child, ConvNorm) and isinstance(child.norm, nn.BatchNorm2d | nn.SyncBatchNorm):
                setattr(parent, name, fuse_conv_bn_eval(child.conv, child.norm))
    return copy
