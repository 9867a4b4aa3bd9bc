import torch

from ssil.data.data_settings import DataSettings
from ssil.data.load import load


def test_digits() -> None:
    digits = load(DataSettings(dataset="digits"))
    assert digits.classes == tuple("0123456789")
    assert digits.train.images.shape == (16, 16, 1)
    assert len(digits.train) + len(digits.test) == 1797
    assert all(abs(count - 36) <= 1 for count in digits.test.labels.bincount().tolist())
    assert not digits.synthetic
    pixels = digits.train.images.fetch(torch.arange(len(digits.train)))
    assert (int(pixels.min()), int(pixels.max())) == (0, 255)


def test_digits_are_split_by_seed() -> None:
    assert load(DataSettings(dataset="digits")).fingerprint == load(DataSettings(dataset="digits")).fingerprint
    assert (
        load(DataSettings(dataset="digits")).fingerprint
        != load(DataSettings(dataset="digits", split_seed=1)).fingerprint
    )
