"""scikit-learn's handwritten digits: a small real data set that needs no download."""

import torch
import torch.nn.functional as F

from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.dataset import Dataset, DatasetInfo, select, split
from ssil.data.resident_images import Resident

INFOS = (
    DatasetInfo(
        "digits",
        "real handwritten digits, some 1,440 for training and 360 for testing",
        "10",
        "16x16 grey",
        "scikit-learn",
    ),
)


def digits(seed: int = 0) -> Dataset:
    """Return the 10 classes of digits; a seeded 20 % of each is for testing.

    The 8x8 originals are enlarged to 16x16: a network with a total stride of 4 would reduce 8x8 pixels to 2x2.
    """
    from sklearn.datasets import load_digits  # here, because it takes seconds

    loaded = load_digits()
    grey = F.interpolate(torch.from_numpy(loaded.images)[:, None] / 16, scale_factor=2, mode="bilinear")
    pixels = (255 * grey).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()
    samples = Samples(Resident(pixels), torch.from_numpy(loaded.target).long())
    train, test = (select(samples, part) for part in split(samples.labels, 0.2, seed, "test split"))
    return Dataset("digits", train, test, tuple(map(str, range(10))), Transform((0.305,), (0.32,), pad=1))
