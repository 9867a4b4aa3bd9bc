"""The features that were computed last, for whoever asks for them again: herding, after a scorer's class means."""

import torch
from torch import Tensor, nn

from ssil.core.files import checksum


class FeatureCache:
    """The features of some training images under one backbone: the last that were computed."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all features."""
        self._key = ""
        self._indices = torch.empty(0, dtype=torch.long)
        self._features = torch.empty(0)

    def has(self, key: str, indices: Tensor) -> bool:
        """Return whether the features of all these images under the backbone with this key are here."""
        return key == self._key and bool(torch.isin(indices, self._indices).all())

    def get(self, indices: Tensor) -> Tensor:
        """Return a copy of the features of images that are here."""
        order = self._indices.argsort()
        rows = order[torch.searchsorted(self._indices[order], indices)]
        return self._features[rows.to(self._features.device)]

    def put(self, key: str, indices: Tensor, features: Tensor) -> None:
        """Keep a copy of these features instead of those that are here."""
        self._key, self._indices, self._features = key, indices, features.clone()


def backbone_key(backbone: nn.Module) -> str:
    """Return a checksum of all weights and buffers: equal for a network and its frozen copy."""
    tensors = backbone.state_dict().values()
    return checksum(b"".join(tensor.detach().cpu().contiguous().numpy().tobytes() for tensor in tensors))
