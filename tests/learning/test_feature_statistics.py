import pytest
import torch

from ssil.learning.feature_statistics import HELD_BACK, is_held_back, packed, tukey, unpacked, without_row


@pytest.mark.parametrize("width", [1, 2, 7])
def test_a_packed_matrix_is_unpacked_as_it_was(width: int) -> None:
    matrix = torch.randn(width, width, generator=torch.Generator().manual_seed(0))
    symmetric = matrix + matrix.T
    assert len(packed(symmetric)) == width * (width + 1) // 2
    assert torch.equal(unpacked(packed(symmetric)), symmetric)


@pytest.mark.parametrize("width", [16, 64, 1280])
def test_about_a_fifth_is_held_back_whatever_the_scale_and_the_other_images(width: int) -> None:
    vectors = torch.randn(2000, width, generator=torch.Generator().manual_seed(1)).relu()
    held = is_held_back(vectors)
    assert float(held.float().mean()) == pytest.approx(1 / HELD_BACK, abs=0.03)
    assert torch.equal(is_held_back(4 * vectors), held)
    assert torch.equal(is_held_back(vectors[7:8]), held[7:8])
    nearby = vectors * (1 + 1e-7 * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(2)))
    assert float((is_held_back(nearby) != held).float().mean()) < 0.01


def test_powers_keep_signs_and_lengths_become_1() -> None:
    features = torch.tensor([[4.0, -9.0, 0.0], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(tukey(features, 0.5)[0], torch.tensor([2.0, -3.0, 0.0]) / 13**0.5)
    torch.testing.assert_close(tukey(features, 1.0)[0], features[0] / 97**0.5)
    assert not tukey(features, 0.5)[1].any()


def test_a_row_is_left_out() -> None:
    assert without_row(torch.arange(6).view(2, 3), 0, dim=1).tolist() == [[1, 2], [4, 5]]
