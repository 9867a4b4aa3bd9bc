import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ssil.core.errors import UserError
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset
from ssil.data.load import load


def valid() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "x_train": rng.integers(256, size=(6, 5, 4), dtype=np.uint8),
        "y_train": np.array([7, 3, 7, 3, 9, 9]),
        "x_test": rng.integers(256, size=(3, 5, 4), dtype=np.uint8),
        "y_test": np.array([9, 3, 7], dtype=np.int16),
    }


def saved(path: Path, **changes: Any) -> str:
    arrays = {key: value for key, value in (valid() | changes).items() if value is not None}
    np.savez(path / "set.npz", **arrays)
    return str(path / "set.npz")


def first(dataset: Dataset) -> torch.Tensor:
    return dataset.train.images.fetch(torch.arange(len(dataset.train)))


def test_grey_images_with_integer_labels(tmp_path: Path) -> None:
    dataset = load(DataSettings(dataset=saved(tmp_path)))
    assert dataset.name == "set"
    assert dataset.classes == ("3", "7", "9")
    assert dataset.train.labels.tolist() == [1, 0, 1, 0, 2, 2]
    assert dataset.test.labels.tolist() == [2, 0, 1]
    assert dataset.train.labels.dtype == torch.int64
    assert np.array_equal(first(dataset)[..., 0].numpy(), valid()["x_train"])


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_first_and_last_are_the_same(tmp_path: Path, channels: int) -> None:
    x = np.random.default_rng(1).integers(256, size=(6, 5, 4, channels), dtype=np.uint8)
    last = load(DataSettings(dataset=saved(tmp_path, x_train=x, x_test=x[:3])))
    moved = x.transpose(0, 3, 1, 2)
    assert load(DataSettings(dataset=saved(tmp_path, x_train=moved, x_test=moved[:3]))).fingerprint == last.fingerprint
    assert last.train.images.shape == (5, 4, channels)
    assert len(last.transform.mean) == channels


def test_string_labels_and_class_names(tmp_path: Path) -> None:
    words = load(DataSettings(dataset=saved(tmp_path, y_train=np.array(list("bababc")), y_test=np.array(list("cab")))))
    assert words.classes == ("a", "b", "c")
    assert words.test.labels.tolist() == [2, 0, 1]
    named = load(DataSettings(dataset=saved(tmp_path, classes=np.array([f"name{i}" for i in range(10)]))))
    assert named.classes == ("name3", "name7", "name9")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_test": None}, "lacks y_test"),
        (
            {"x_train": np.zeros((6, 5, 4), dtype=np.float32)},
            "images must be uint8, 0 to 255, and features floating-point",
        ),
        ({"x_train": np.zeros((6, 5, 4, 7), dtype=np.uint8)}, r"x_train is \(6, 5, 4, 7\)"),
        ({"x_train": np.zeros((0, 5, 4), dtype=np.uint8)}, r"x_train is \(0, 5, 4, 1\)"),
        ({"x_test": np.zeros((3, 5, 5), dtype=np.uint8)}, "make them the same size"),
        ({"y_train": np.array([1, 2])}, "y_train has 2 labels for 6 images"),
        ({"y_train": np.array([0.0] * 6)}, "y_train is float64"),
        ({"y_train": np.zeros((6, 1), dtype=int)}, "y_train is int64"),
        ({"y_test": np.array([9, 3, 8])}, "y_test has labels that y_train has not: 8"),
        ({"y_test": np.array(["9", "3", "7"])}, "y_test has labels that y_train has not: '3', '7', '9'"),
        ({"classes": np.array(["a", "b"])}, "classes must be a list with a name for each"),
        ({"classes": np.array(["a"] * 10)}, "classes has 'a' twice; give each class a name of its own"),
        ({"y_train": np.array([object()] * 6)}, "save plain numbers or strings"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = saved(tmp_path, **changes)
    with pytest.raises(UserError, match=message) as error:
        load(DataSettings(dataset=path))
    assert path in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_are_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    for content in (b"", b"text", Path(saved(tmp_path)).read_bytes()[:-50]):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"is no \.npz file|has an array that can't be read"):
            load(DataSettings(dataset=str(path)))
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(UserError, match=r"is no \.npz file|has an array that can't be read"):
        load(DataSettings(dataset=str(path)))
    with pytest.raises(UserError, match="is not there"):
        load(DataSettings(dataset=str(tmp_path / "absent.npz")))


def test_omniglot() -> None:
    path = Path(os.environ.get("SSIL_DATA", "")) / "omniglot28.npz"
    if not path.is_file():
        pytest.skip("omniglot28.npz is not in $SSIL_DATA")
    omniglot = load(DataSettings(dataset=str(path), classes=1000, train_per_class=5))
    assert len(omniglot.classes) == 1000
    assert len(omniglot.train) == 5000
    assert omniglot.train.images.shape == (28, 28, 1)


def test_a_file_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000, 1000, 1000000), }\n"
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("x_train.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(UserError, match=r"huge\.npz has an array that can't be read"):
        load(DataSettings(dataset=str(tmp_path / "huge.npz")))
