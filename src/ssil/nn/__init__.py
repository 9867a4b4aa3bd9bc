"""Backbones, heads, and the networks made of them."""

from ssil.nn.backbones import MakeBackbone, backbones, find_backbone
from ssil.nn.blocks import Backbone, ConvNorm, Norm
from ssil.nn.fold import folded
from ssil.nn.heads import CosineHead, Head, LinearHead, ProxyHead
from ssil.nn.initial import initialise
from ssil.nn.network import Network, build
from ssil.nn.pretrained import Pretrained, find_pretrained, load_backbone, read_pretrained

__all__ = [
    "Backbone",
    "ConvNorm",
    "CosineHead",
    "Head",
    "LinearHead",
    "MakeBackbone",
    "Network",
    "Norm",
    "Pretrained",
    "ProxyHead",
    "backbones",
    "build",
    "find_backbone",
    "find_pretrained",
    "folded",
    "initialise",
    "load_backbone",
    "read_pretrained",
]
