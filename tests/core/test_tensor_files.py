from pathlib import Path

import safetensors.torch
import torch

from ssil.core.tensor_files import pack, write_tensors


def test_tensors_of_any_kind_come_back(tmp_path: Path) -> None:
    tensors = {
        "layout": torch.arange(96.0).view(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "view": torch.arange(10)[::2],
        "shared": torch.ones(5)[1:3],
        "double": torch.tensor([1e-300, torch.nan], dtype=torch.float64),
        "half": torch.tensor([1.5], dtype=torch.bfloat16),
        "scalar": torch.tensor(3),
        "empty": torch.empty(0, 7),
        "weight": torch.nn.Parameter(torch.ones(2)),
    }
    write_tensors(tmp_path / "file", tensors)
    back = safetensors.torch.load((tmp_path / "file").read_bytes())
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        torch.testing.assert_close(back[name], tensor.detach(), rtol=0, atol=0, equal_nan=True)


def test_equal_tensors_have_equal_bytes() -> None:
    image = torch.arange(12.0).view(1, 3, 2, 2)
    assert pack({"x": image}) == pack({"x": image.to(memory_format=torch.channels_last)})
