import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from image_trees import encoded, grey, held_out, listed
from ssil.core.errors import UserError
from ssil.data.sources.huggingface import hub


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"hf:mnist needs the library datasets: pip install 'ssil\[hub\]'"):
        hub("hf:mnist")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library with a cache of the test's own and without network."""
    library = pytest.importorskip("datasets", reason="the library datasets is not installed (extra hub)")
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(library.config, "HF_HUB_OFFLINE", True)
    library.disable_progress_bars()
    return library


def write(path: Path, library: Any, kind: Any, **splits: list[Any]) -> str:
    """A folder of Parquet files with images of growing grey, and these labels."""
    path.mkdir(exist_ok=True)
    features = library.Features(image=library.Image(), label=kind)
    for split, labels in splits.items():
        images = [{"bytes": encoded(".png", number), "path": None} for number in range(len(labels))]
        rows = library.Dataset.from_dict({"image": images, "label": labels}, features=features)
        rows.to_parquet(path / f"{split}-00000-of-00001.parquet")
    return f"hf:{path}"


def test_a_local_folder(tmp_path: Path, library: Any) -> None:
    kind = library.ClassLabel(names=["dog", "bird", "cat"])
    image_index = hub(write(tmp_path / "pets", library, kind, train=[0, 2, 0], test=[2, 0]))
    assert image_index.name == "pets"
    assert listed(image_index) == {"dog": ["train[0]", "train[2]", "test[1]"], "cat": ["train[1]", "test[0]"]}
    assert held_out(image_index) == {"test[0]", "test[1]"}
    assert [grey(image_index, index) for index in range(5)] == [0, 1, 2, 0, 1]
    assert image_index.source.read(3) == encoded(".png", 0)
    assert [remark.reason for remark in image_index.remarks] == ["class 'bird' has no files to learn from"]
    assert (image_index.preprocessing.size, image_index.preprocessing.augment) == (64, "auto")


def test_labels_may_be_words_or_numbers(tmp_path: Path, library: Any) -> None:
    words = hub(write(tmp_path / "words", library, library.Value("string"), train=["img10", "img9", "img9"]))
    assert listed(words) == {"img9": ["train[1]", "train[2]"], "img10": ["train[0]"]}
    assert words.is_test is None
    numbers = hub(write(tmp_path / "numbers", library, library.Value("int32"), train=[10, 9], validation=[9, 10]))
    assert listed(numbers) == {"9": ["train[1]", "validation[0]"], "10": ["train[0]", "validation[1]"]}


def test_a_test_part_without_labels_is_passed_over(tmp_path: Path, library: Any) -> None:
    kind = library.ClassLabel(names=["a", "b"])
    image_index = hub(write(tmp_path / "set", library, kind, train=[0, 1], validation=[1, 0], test=[-1, -1]))
    assert held_out(image_index) == {"validation[0]", "validation[1]"}
    assert [(remark.path, remark.left_out) for remark in image_index.remarks] == [("test", False)]


def test_images_may_be_files_and_threads_may_read(tmp_path: Path, library: Any) -> None:
    names = [tmp_path / f"{number}.png" for number in range(50)]
    for number, name in enumerate(names):
        name.write_bytes(encoded(".png", number))
    features = library.Features(picture=library.Image(), kind=library.ClassLabel(names=["a"]))
    rows = library.Dataset.from_dict({"picture": [str(name) for name in names], "kind": [0] * 50}, features=features)
    (tmp_path / "set").mkdir()
    arrow = rows.cast_column("picture", library.Image(decode=False)).data.table
    parquet.write_table(
        arrow.replace_schema_metadata(rows.features.arrow_schema.metadata), tmp_path / "set" / "train.parquet"
    )
    image_index = hub(f"hf:{tmp_path / 'set'}")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(image_index.source.read, range(50))) == [encoded(".png", number) for number in range(50)]


def test_sets_that_are_refused(tmp_path: Path, library: Any) -> None:
    kind = library.ClassLabel(names=["a", "b"])
    with pytest.raises(UserError, match=r"has no split train, but test"):
        hub(write(tmp_path / "one", library, kind, test=[0, 1]))
    with pytest.raises(UserError, match="has rows without a label"):
        hub(write(tmp_path / "two", library, kind, train=[0, -1]))
    with pytest.raises(UserError, match="no column that can be its label; there are image, label"):
        hub(write(tmp_path / "three", library, library.Value("float32"), train=[0.5]))
    with pytest.raises(UserError, match="can't be loaded by datasets") as raised:
        hub("hf:nobody/nothing:config")
    assert "\n" not in str(raised.value)


def test_columns_that_may_both_be_labels_are_named(tmp_path: Path, library: Any) -> None:
    kind = library.ClassLabel(names=["a"])
    features = library.Features(img=library.Image(), fine=kind, coarse=kind)
    image = {"bytes": encoded(".png", 0), "path": None}
    rows = library.Dataset.from_dict({"img": [image], "fine": [0], "coarse": [0]}, features=features)
    (tmp_path / "set").mkdir()
    rows.to_parquet(tmp_path / "set" / "train.parquet")
    with pytest.raises(UserError, match="several columns that can be its label: fine, coarse; save it with one"):
        hub(f"hf:{tmp_path / 'set'}")
