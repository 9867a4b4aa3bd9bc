"""Several views of one image: a backbone that sees the whole image and its centre, and averages their features."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.core.network_input import VIEW_SCALE
from ssil.nn.resnet import Backbone


class WholeAndCentre(Backbone):
    """The mean of a backbone's features of two views: the whole image at half its size, and the middle of it as it is.

    A thing in the middle of a photograph is then seen in its surroundings, and at twice the size without most of them.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone
        self.width = backbone.width

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the mean features (B, width), and no stage maps."""
        both = torch.cat([F.avg_pool2d(images, VIEW_SCALE), middle(images)])
        whole, centre = self.backbone(both)[0].chunk(2)
        return (whole + centre) / 2, ()


def middle(images: Tensor) -> Tensor:
    """Return the middle of images (B, C, H, W), half as high and wide.

    >>> middle(torch.arange(16).view(1, 1, 4, 4))[0, 0]
    tensor([[ 5,  6],
            [ 9, 10]])
    """
    height, width = (side // VIEW_SCALE for side in images.shape[2:])
    top, left = height // 2, width // 2
    return images[:, :, top : top + height, left : left + width]
