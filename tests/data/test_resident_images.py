import pytest
import torch

from ssil.core.samples import Images
from ssil.data.resident_images import Resident


def test_fetch_gives_the_images_in_the_order_asked() -> None:
    pixels = torch.randint(256, (7, 4, 5, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images: Images = Resident(pixels)
    indices = torch.tensor([6, 0, 6, 3])
    assert len(images) == 7
    assert images.shape == (4, 5, 3)
    assert torch.equal(images.fetch(indices), pixels[indices])


def test_fetch_with_cpu_indices_where_pixels_live_elsewhere() -> None:
    images = Resident(torch.zeros(3, 2, 2, 1, dtype=torch.uint8)).to("meta")
    assert images.fetch(torch.tensor([1])).device.type == "meta"


@pytest.mark.parametrize("pixels", [torch.zeros(2, 3, 3, 1), torch.zeros(2, 3, 3, dtype=torch.uint8)])
def test_other_tensors_are_refused(pixels: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="uint8"):
        Resident(pixels)
