"""Teachers with their batch norms folded away."""

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ssil.nn.blocks import ConvNorm
from ssil.nn.network import Network


def folded(network: Network) -> Network:
    """A frozen copy that computes the same with every batch norm of a `ConvNorm` folded into its convolution.

    For computing with, never for saving: its parameters have other names and shapes.
    """
    copy = network.clone()
    for parent in list(copy.modules()):
        for name, child in parent.named_children():
            if isinstance(child, ConvNorm) and isinstance(child.norm, nn.BatchNorm2d | nn.SyncBatchNorm):
                setattr(parent, name, fuse_conv_bn_eval(child.conv, child.norm))
    return copy
