"""scikit-learn's handwritten digits: small, real, and always there."""

import torch
import torch.nn.functional as F

from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.dataset import Dataset, DatasetInfo, select, split
from ssil.data.resident_images import Resident

INFO = DatasetInfo(
    "digits", "real handwritten digits, some 1,440 for training and 360 for testing", "10", "16x16 grey", "scikit-learn"
)


def digits(seed: int = 0) -> Dataset:
    """10 classes; a seeded 20 % of each is for testing.

    The 8x8 originals are enlarged to 16x16: with a total stride of 4, a network would see 8x8 pixels as 2x2 positions.
    """
    from sklearn.datasets import load_digits  # here, for it takes seconds

    loaded = load_digits()
    grey = F.interpolate(torch.from_numpy(loaded.images)[:, None] / 16, scale_factor=2, mode="bilinear")
    pixels = (255 * grey).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()
    every = Samples(Resident(pixels), torch.from_numpy(loaded.target).long())
    train, test = (select(every, part) for part in split(every.labels, 0.2, seed, "test split"))
    return Dataset("digits", train, test, tuple(map(str, range(10))), Transform((0.305,), (0.32,), pad=1))
