"""What the names that `--init` takes lead to."""

from pathlib import Path

import pytest
import torch

from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.tensor_files import write_tensors
from ssil.nn.first_weights import decided_settings, find_first_weights, read_first_weights
from ssil.nn.weights import named_weights


def test_a_name_of_the_list_decides_backbone_and_input() -> None:
    found = find_first_weights("efficientnet_lite0")
    assert found is named_weights("efficientnet_lite0")
    expected = {"backbone": "efficientnet_lite0", "input": found.input}
    assert decided_settings(found, {}) == decided_settings(found, {"backbone": "efficientnet_lite0"}) == expected


def test_a_file_decides_nothing(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    write_tensors(file, {"conv1.weight": torch.ones(2)})
    found = find_first_weights(str(file))
    assert decided_settings(found, {"backbone": "resnet18"}) == {}
    assert found.sha256 == checksum(file.read_bytes(), 64)
    assert read_first_weights(found).tensors["conv1.weight"].tolist() == [1, 1]


def test_a_misspelt_name() -> None:
    with pytest.raises(UserError, match="init: 'efficientnet_lite9' is no file; did you mean 'efficientnet_lite"):
        find_first_weights("efficientnet_lite9").tensors()
