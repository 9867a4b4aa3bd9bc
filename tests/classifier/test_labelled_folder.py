"""Test folders: which images they have, what is told of others, and their digest."""

from pathlib import Path

import pytest

import tiny_classifiers
from ssil.classifier.labelled_folder import contents_digest, find_test_images
from ssil.core.errors import UserError


def test_each_sub_folder_is_a_class_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    tiny_classifiers.folder(tmp_path, ["ant", "be\u0301e"], 2)
    (tmp_path / "ant/.hidden").write_bytes(b"x")
    (tmp_path / "notes.txt").write_text("no class")
    (tmp_path / "ant/deeper").mkdir()
    found, remarks = find_test_images(tmp_path)
    assert [(image.path.name, image.label) for image in found] == [
        ("0.png", "ant"),
        ("1.png", "ant"),
        ("0.png", "b\u00e9e"),
        ("1.png", "b\u00e9e"),
    ]
    assert remarks == []


def test_of_a_data_set_with_both_parts_the_test_images_are_taken(tmp_path: Path) -> None:
    tiny_classifiers.folder(tmp_path / "train", ["ant"], 2)
    tiny_classifiers.folder(tmp_path / "test", ["bee"], 1)
    assert [image.label for image in find_test_images(tmp_path)[0]] == ["bee"]


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no folder"):
        find_test_images(tmp_path / "none")
    (tmp_path / "ant").mkdir()
    with pytest.raises(UserError, match="has no images"):
        find_test_images(tmp_path)


def test_a_file_that_cant_be_read_is_told(tmp_path: Path) -> None:
    tiny_classifiers.folder(tmp_path, ["ant"], 1)
    (tmp_path / "ant/gone.png").symlink_to("nowhere")
    found, remarks = find_test_images(tmp_path)
    assert len(found) == 1
    assert [(Path(remark.path).name, remark.reason) for remark in remarks] == [
        ("gone.png", "no such file or directory")
    ]


def test_the_digest_is_of_images_and_classes_not_of_file_names(tmp_path: Path) -> None:
    tiny_classifiers.folder(tmp_path, ["ant", "bee"], 2)
    before = contents_digest(find_test_images(tmp_path)[0])
    (tmp_path / "ant/1.png").rename(tmp_path / "ant/9.png")
    assert contents_digest(find_test_images(tmp_path)[0]) == before
    (tmp_path / "ant/9.png").rename(tmp_path / "bee/9.png")
    assert contents_digest(find_test_images(tmp_path)[0]) != before
