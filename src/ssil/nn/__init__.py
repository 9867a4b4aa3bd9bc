"""Backbones, heads, and the networks made of them."""
