"""Encoded images: reduced copies, class names, and loading from folders."""

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from ssil.classifier.image_file import ImageFile
from ssil.classifier.images import check_classes, load_images
from ssil.core.errors import UserError
from tiny_classifiers import folder, png


def test_a_reduced_copy_is_recognised_as_its_original() -> None:
    file = BytesIO()
    Image.open(BytesIO(png("ant", 0))).resize((64, 64)).save(file, "PNG")
    large = ImageFile.from_bytes("large.png", file.getvalue())
    small = large.shrunk(16, 1)
    assert Image.open(BytesIO(small.read())).size == (16, 16)
    assert small.original_digest == large.digest
    assert small.shrunk(16, 1) == small or small.shrunk(16, 1).original_digest == large.digest


def test_two_spellings_of_a_letter_are_one_class(tmp_path: Path) -> None:
    folder(tmp_path, ["Mu\u0308ller", "ant"], 2)
    assert {name for _, name in load_images(str(tmp_path))[0]} == {"M\u00fcller", "ant"}


def test_unreadable_images_are_left_out_with_a_remark(tmp_path: Path) -> None:
    (folder(tmp_path, ["ant", "bee"], 2) / "ant/broken.png").write_bytes(b"no image")
    images, remarks = load_images(str(tmp_path))
    assert len(images) == 4
    assert [Path(remark.path).name for remark in remarks if remark.left_out] == ["broken.png"]


def test_files_are_named_with_the_folder_that_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder(tmp_path / "week-2", ["ant", "bee", "ant/old"], 2)
    (tmp_path / "week-2/bee/broken.png").write_bytes(b"no image")
    images, remarks = load_images("week-2")
    assert all(Path(image.name).is_file() and image.name.startswith("week-2/") for image, _ in images)
    assert {remark.path for remark in remarks} == {"week-2/ant/old", "week-2/bee/broken.png"}
    rows = "".join(f"{Path(image.name).relative_to('week-2')},{name}\n" for image, name in images)
    (tmp_path / "week-2/list.csv").write_text(f"path,label\n{rows}gone.png,ant\n")
    listed, missing = load_images("week-2/list.csv")
    assert {image.name for image, _ in listed} == {image.name for image, _ in images}
    assert [remark.path for remark in missing] == ["gone.png"]


def test_other_sources_are_refused(tmp_path: Path) -> None:
    folder(tmp_path / "week-1", ["ant"], 1)
    (tmp_path / "notes.txt").write_text("no images")
    with pytest.raises(UserError, match=r"images: .*notes\.txt is no folder with one sub-folder per class"):
        load_images(str(tmp_path / "notes.txt"))
    with pytest.raises(UserError, match=r"images: .*week1 does not exist; did you mean 'week-1'\?"):
        load_images(str(tmp_path / "week1"))


def test_what_is_too_little_to_learn_from_is_told_with_what_was_left_out(tmp_path: Path) -> None:
    folder(tmp_path, ["leek", "fruit/apple", "fruit/pear"], 2)
    images, remarks = load_images(str(tmp_path))
    with pytest.raises(
        UserError, match=r"only one class, 'leek'.*left out: .*/fruit/apple \(a folder inside.* and 1 more"
    ):
        check_classes(images, remarks, [])
    with pytest.raises(UserError, match=r"no image to learn from; left out: .*/fruit/apple"):
        check_classes([], remarks, [])
    assert not check_classes(images, remarks, ["kiwi"])
    assert [remark.path for remark in check_classes(images, remarks, ["Leek"])] == ["leek"]
    assert not check_classes(images, remarks, ["Leek", "leek"])  # both are known: it was told before
