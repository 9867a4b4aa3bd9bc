from pathlib import Path

import pytest

from image_trees import grey, held_out, listed, pictures
from ssil.core.errors import UserError
from ssil.data.image_index import Remark
from ssil.data.sources.tiny_imagenet import FOLDER, tiny_imagenet


@pytest.fixture(params=[FOLDER, ""])
def base(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    base: Path = tmp_path / request.param
    for wnid in ("n02124075", "n01443537"):
        pictures(base / "train" / wnid / "images", *(f"{wnid}_{number}.JPEG" for number in (0, 10, 9)))
        (base / "train" / wnid / f"{wnid}_boxes.txt").write_text(f"{wnid}_0.JPEG\t0\t10\t63\t58\n")
    pictures(base, "val/images/val_0.JPEG", "val/images/val_1.JPEG", "test/images/test_0.JPEG")
    lines = ("val_0.JPEG\tn02124075\t0\t32\t44\t62", "val_1.JPEG\tn01443537\t52\t55\t57\t59")
    (base / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    (base / "wnids.txt").write_text("n02124075\nn01443537\n")
    (base / "words.txt").write_text("n01443537\tgoldfish, Carassius auratus\nn02124075\tEgyptian cat\n")
    return base


def test_official_layout(base: Path, tmp_path: Path) -> None:
    listing = tiny_imagenet(tmp_path)
    assert listing.classes == ("goldfish", "Egyptian cat")
    assert listing.keys == ("n01443537", "n02124075")
    assert listed(listing)["goldfish"] == [
        *(f"train/n01443537/images/n01443537_{number}.JPEG" for number in (0, 9, 10)),
        "val/images/val_1.JPEG",
    ]
    assert held_out(listing) == {"val/images/val_0.JPEG", "val/images/val_1.JPEG"}
    assert grey(listing, listing.source.names.index("val/images/val_1.JPEG")) == 1
    assert (listing.look.size, listing.look.augment, listing.look.flip) == (64, "shift", True)
    assert listing.remarks == ()


def test_a_file_without_annotation_is_left_out(base: Path, tmp_path: Path) -> None:
    pictures(base, "val/images/val_2.JPEG")
    (remark,) = tiny_imagenet(tmp_path).remarks
    assert (remark.path, remark.left_out) == ("val/images/val_2.JPEG", True)


def test_a_class_that_is_missing_is_left_out(base: Path, tmp_path: Path) -> None:
    (base / "train" / "n01443537").rename(base / "elsewhere")
    listing = tiny_imagenet(tmp_path)
    assert listing.classes == ("Egyptian cat",)
    assert listing.remarks == (
        Remark("train/n01443537/images", "no such file or directory"),
        Remark("goldfish", "class 'goldfish' has no files to learn from; its test files (1) are left out"),
    )


def test_nothing_is_dropped_without_a_remark(base: Path, tmp_path: Path) -> None:
    fish = "train/n01443537"
    pictures(base, "train/1.JPEG", "train/n09999999/images/1.JPEG", f"{fish}/1.JPEG", f"{fish}/images/more/1.JPEG")
    pictures(base, "val/images/more/1.JPEG")
    assert {(remark.path, remark.left_out) for remark in tiny_imagenet(tmp_path).remarks} == {
        ("train/1.JPEG", False),
        ("train/n09999999", False),
        (f"{fish}/1.JPEG", False),
        (f"{fish}/images/more", True),
        ("val/images/more", True),
    }


def test_damaged_annotations_are_refused(base: Path, tmp_path: Path) -> None:
    (base / "val" / "val_annotations.txt").write_text("val_0.JPEG\n")
    with pytest.raises(UserError, match="has lines without a wnid"):
        tiny_imagenet(tmp_path)


def test_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unpack .*tiny-imagenet-200.zip in .*--data-root or \$SSIL_DATA"):
        tiny_imagenet(tmp_path)
