import os
from errno import EACCES
from pathlib import Path

import pytest

from image_trees import grey, held_out, listed, write_image, write_images
from ssil.core.errors import UserError
from ssil.data.image_index import Preprocessing, Remark
from ssil.data.sources.folder import folder


def test_one_tree(tmp_path: Path) -> None:
    write_images(tmp_path, "c10/1.png", "c2/10.png", "c2/9.png", "c1/a.jpg")
    (tmp_path / "c1" / "notes.txt").write_text("no image, which is found later")
    (tmp_path / "c1" / ".hidden.png").touch()
    (tmp_path / ".git").mkdir()
    image_index = folder(tmp_path)
    assert image_index.name == tmp_path.name
    assert listed(image_index) == {
        "c1": ["c1/a.jpg", "c1/notes.txt"],
        "c2": ["c2/9.png", "c2/10.png"],
        "c10": ["c10/1.png"],
    }
    assert image_index.labels.tolist() == [0, 0, 1, 1, 2]
    assert grey(image_index, 2) == 2
    assert image_index.is_test is None
    assert image_index.remarks == ()


@pytest.mark.parametrize("test", ["test", "val"])
def test_two_trees(tmp_path: Path, test: str) -> None:
    write_images(tmp_path, "train/a/1.png", "train/b/1.png", "train/b/2.png", f"{test}/b/3.png")
    image_index = folder(tmp_path)
    assert listed(image_index) == {"a": ["train/a/1.png"], "b": ["train/b/1.png", "train/b/2.png", f"{test}/b/3.png"]}
    assert held_out(image_index) == {f"{test}/b/3.png"}
    assert image_index.remarks == (Remark("a", "class 'a' has no files to test on", left_out=False),)


def test_of_test_and_val_the_test_is_used(tmp_path: Path) -> None:
    write_images(tmp_path, "train/a/1.png", "test/a/2.png", "val/a/3.png", "stray.png")
    image_index = folder(tmp_path)
    assert held_out(image_index) == {"test/a/2.png"}
    assert image_index.remarks == tuple(
        Remark(name, "not used: only train/ and test/ are", left_out=False) for name in ("val", "stray.png")
    )


def test_an_empty_class_is_remarked_and_the_rest_goes_on(tmp_path: Path) -> None:
    write_images(tmp_path, "a/1.png", "c/1.png")
    (tmp_path / "b").mkdir()
    image_index = folder(tmp_path)
    assert image_index.classes == ("a", "c")
    assert image_index.labels.tolist() == [0, 1]
    assert image_index.remarks == (Remark("b", "class 'b' has no files to learn from", left_out=False),)


def test_classes_that_differ_by_case_are_remarked(tmp_path: Path) -> None:
    write_images(tmp_path, "Cat/1.png", "cat/1.png", "dog/1.png")
    if len(list(tmp_path.iterdir())) == 2:
        pytest.skip("this file system has no case")
    (remark,) = folder(tmp_path).remarks
    assert (remark.path, remark.left_out) == ("cat", False)
    assert remark.reason.startswith(
        "classes 'Cat' and 'cat' differ by case, spaces or hyphens only; they are learnt as"
    )


def test_classes_that_differ_by_a_space_are_remarked(tmp_path: Path) -> None:
    write_images(tmp_path, "leek/1.png", "leek /1.png", "red_beet/1.png", "red-beet/1.png", "red/1.png")
    assert {remark.path for remark in folder(tmp_path).remarks} == {"leek ", "red_beet"}


def test_what_belongs_to_no_class_is_remarked(tmp_path: Path) -> None:
    write_images(tmp_path, "a/1.png", "a/more/2.png", "stray.png")
    image_index = folder(tmp_path)
    assert image_index.source.names == ("a/1.png",)
    assert {remark.path: remark.left_out for remark in image_index.remarks} == {"a/more": True, "stray.png": False}


def test_links_are_followed_and_broken_ones_listed(tmp_path: Path) -> None:
    write_images(tmp_path, "else/1.png")
    (tmp_path / "set" / "a").mkdir(parents=True)
    (tmp_path / "set" / "b").symlink_to(tmp_path / "else")
    (tmp_path / "set" / "a" / "gone.png").symlink_to(tmp_path / "nothing.png")
    image_index = folder(tmp_path / "set")
    assert image_index.source.names == ("a/gone.png", "b/1.png")
    with pytest.raises(OSError, match="gone"):
        image_index.source.read(0)


def test_look(tmp_path: Path) -> None:
    write_image(tmp_path / "a" / "1.png")
    assert folder(tmp_path).preprocessing == Preprocessing(64, augment="auto")


def test_folders_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no sub-folders"):
        folder(tmp_path)
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError, match="has no files to learn from"):
        folder(tmp_path)


def test_classes_to_test_on_but_not_to_learn_from_are_left_out(tmp_path: Path) -> None:
    write_images(tmp_path, "train/a/1.png", "test/a/1.png", "test/x/1.png", "test/x/2.png", "test/y/1.png")
    (tmp_path / "train" / "x").mkdir()
    image_index = folder(tmp_path)
    assert listed(image_index) == {"a": ["train/a/1.png", "test/a/1.png"]}
    assert held_out(image_index) == {"test/a/1.png"}
    reason = "class {!r} has no files to learn from; its test files ({}) are left out"
    assert image_index.remarks == (Remark("x", reason.format("x", 2)), Remark("y", reason.format("y", 1)))


def test_a_link_that_leads_to_itself_is_a_file(tmp_path: Path) -> None:
    write_images(tmp_path, "a/1.png")
    (tmp_path / "a" / "loop").symlink_to("loop")
    (tmp_path / "round").symlink_to("round")
    image_index = folder(tmp_path)
    assert image_index.source.names == ("a/1.png", "a/loop")
    assert [remark.path for remark in image_index.remarks] == ["round"]
    with pytest.raises(OSError, match="symbolic links"):
        image_index.source.read(1)


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let nobody look into folders of these names, not even the super-user."""
    scan = os.scandir

    def refuse(path: Path) -> object:
        if path.name in names:
            raise PermissionError(EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)


def test_a_class_that_may_not_be_read_is_remarked_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_images(tmp_path, "a/1.png", "b/1.png")
    forbid(monkeypatch, "b")
    image_index = folder(tmp_path)
    assert listed(image_index) == {"a": ["a/1.png"]}
    assert image_index.remarks[0] == Remark("b", "permission denied")
    forbid(monkeypatch, tmp_path.name)
    with pytest.raises(UserError, match="has no sub-folders to read"):
        folder(tmp_path)


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    cafe = os.fsdecode(b"caf\xe9")
    try:
        write_images(tmp_path, "a/1.png", f"{cafe}/{cafe}.png", f"{cafe}/more/1.png", f"{cafe}.png")
    except OSError:
        pytest.skip("names of this file system are UTF-8")
    image_index = folder(tmp_path)
    assert image_index.classes == ("a", "caf\ufffd")
    assert image_index.source.names[1] == f"{cafe}/{cafe}.png"
    assert grey(image_index, 1) == 1
    assert [remark.path for remark in image_index.remarks] == ["caf\ufffd.png", "caf\ufffd/more"]
    write_images(tmp_path, f"{os.fsdecode(b'caf' + bytes([0xE8]))}/1.png")
    with pytest.raises(UserError, match="has two classes called 'caf\ufffd'; rename one"):
        folder(tmp_path)


def test_photographs() -> None:
    path = Path(os.environ.get("SSIL_DATA", "")) / "photos"
    if not path.is_dir():
        pytest.skip("photos is not in $SSIL_DATA")
    image_index = folder(path)
    assert (len(image_index), len(image_index.classes), image_index.remarks) == (200, 40, ())


@pytest.mark.parametrize(("train", "test"), [("Train", "Test"), ("training", "validation"), ("TRAIN", "valid")])
def test_parts_may_be_called_otherwise(tmp_path: Path, train: str, test: str) -> None:
    write_images(tmp_path, f"{train}/a/1.png", f"{test}/a/2.png")
    image_index = folder(tmp_path)
    assert listed(image_index) == {"a": [f"{train}/a/1.png", f"{test}/a/2.png"]}
    assert held_out(image_index) == {f"{test}/a/2.png"}


def test_a_part_to_train_on_alone_is_split(tmp_path: Path) -> None:
    write_images(tmp_path, "train/a/1.png", "train/b/2.png")
    assert folder(tmp_path).classes == ("a", "b")
    assert folder(tmp_path).is_test is None


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    write_images(tmp_path, "train/1.png", "bus/2.png")
    assert folder(tmp_path).classes == ("bus", "train")


def test_one_level_too_high(tmp_path: Path) -> None:
    write_images(tmp_path, "photos/a/1.png")
    with pytest.raises(UserError, match=r"has folders in folders, but no files; perhaps [^,]*photos\?"):
        folder(tmp_path)
    write_images(tmp_path, "veg/b/1.png")
    with pytest.raises(UserError, match=r"perhaps .*photos or .*veg, one at a time\?"):
        folder(tmp_path)
