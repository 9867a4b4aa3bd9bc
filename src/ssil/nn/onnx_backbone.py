"""Frozen backbones in ONNX Runtime, which computes features on a CPU faster than PyTorch.

docs/results/predict.md has the measurements.
"""

from collections.abc import Sequence

import torch
from onnxruntime import InferenceSession
from torch import Tensor, nn

from ssil.core.onnx_session import cpu_session, run_in_batches
from ssil.core.randomness import Randomness
from ssil.nn.network import Network, folded
from ssil.nn.onnx_tracing import TOLERANCE, difference, traced
from ssil.nn.resnet import Backbone

TRACED = 3
"""Random images on which a backbone is followed and compared."""


class OnnxBackbone(Backbone):
    """A session that maps float32 images (B, C, H, W) to features, as a backbone without stage maps."""

    def __init__(self, session: InferenceSession, width: int):
        super().__init__()
        self.session = session
        self.width = width

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features, and no stage maps."""
        pixels = images.shape[2] * images.shape[3]
        (features,) = run_in_batches(self.session, ["features"], images.contiguous().numpy(), pixels)
        return torch.from_numpy(features), ()


class _Features(nn.Module):
    """A backbone's features alone."""

    def __init__(self, backbone: Backbone):
        super().__init__()
        self.backbone = backbone

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.backbone(images)[0]
        return features


def in_onnx_runtime(network: Network, shape: Sequence[int]) -> Network | None:
    """Return what computes a network's features in ONNX Runtime, without logits; None if that can't be done.

    Whether it can depends on the network and the installed versions alone: PyTorch exports the backbone, and the
    features of random images differ by at most `TOLERANCE`.

    Args:
        network: A network on the CPU, in single precision.
        shape: Channels, height and width of the images.
    """
    images = torch.randn(TRACED, *shape, generator=Randomness(0).at("export", "backbone"))
    features = _Features(folded(network).backbone)
    try:
        content = traced(features, images, "images", ["features"]).SerializeToString()
        backbone = OnnxBackbone(cpu_session(content, torch.get_num_threads()), network.backbone.width)
        same = _agrees(backbone, features, images)
    except Exception:  # PyTorch and ONNX Runtime raise many types
        return None
    return Network(backbone, network.headless().head) if same else None


@torch.inference_mode()
def _agrees(backbone: Backbone, features: nn.Module, images: Tensor) -> bool:
    """Return whether features are PyTorch's, for all images at once and for the first alone."""
    wanted = features(images)
    return all(difference(backbone(images[:batch])[0], wanted[:batch]) <= TOLERANCE for batch in (1, TRACED))
