from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from image_trees import encoded, grey, held_out, listed, write_images
from ssil.core.errors import UserError
from ssil.data.image_index import Remark
from ssil.data.sources.imagenet import LABELS, PLACES, TINY_PLACES, imagenet, imagenet100, tiny_imagenet

TENCH, CRANE, MACHINE = "n01440764", "n02012849", "n03126707"
VAL = [f"ILSVRC2012_val_{number:08}.JPEG" for number in range(1, 4)]
KAGGLE = "ILSVRC/Data/CLS-LOC"


def lay(base: Path) -> Path:
    """Training images of three classes, and a flat val/."""
    write_images(
        base / "train", *(f"{wnid}/{wnid}_{number}.JPEG" for wnid in (CRANE, TENCH, MACHINE) for number in (10, 9))
    )
    write_images(base / "val", *VAL)
    return base


def by_wnid(base: Path) -> None:
    for file, wnid in zip(VAL, (MACHINE, TENCH, CRANE), strict=True):
        (base / "val" / wnid).mkdir()
        (base / "val" / file).rename(base / "val" / wnid / file)


def solution(folder: Path) -> None:
    rows = (
        f"{VAL[1][:-5]},{TENCH} 1 2 3 4 ",
        f"{VAL[2][:-5]},{CRANE} 1 2 3 4 {CRANE} 5 6 7 8 ",
        f"{VAL[0][:-5]},{MACHINE} 1 2 3 4",
    )
    (folder / "LOC_val_solution.csv").write_text("\n".join(("ImageId,PredictionString", *rows, "")))


def synsets(folder: Path) -> None:
    (folder / LABELS[0]).write_text(f"{MACHINE}\n{TENCH}\n{CRANE}\n")


@pytest.mark.parametrize("place", PLACES)
def test_it_is_found_by_wnid(tmp_path: Path, place: str) -> None:
    base = lay(tmp_path / place)
    by_wnid(base)
    image_index = imagenet(tmp_path)
    assert image_index.classes == image_index.keys == (TENCH, CRANE, MACHINE)
    assert listed(image_index)[TENCH] == [
        f"train/{TENCH}/{TENCH}_9.JPEG",
        f"train/{TENCH}/{TENCH}_10.JPEG",
        f"val/{TENCH}/{VAL[1]}",
    ]
    assert held_out(image_index) == {f"val/{MACHINE}/{VAL[0]}", f"val/{TENCH}/{VAL[1]}", f"val/{CRANE}/{VAL[2]}"}
    assert image_index.source.read(0) == encoded(".JPEG", 3)
    assert (image_index.preprocessing.size, image_index.preprocessing.augment, image_index.preprocessing.flip) == (
        224,
        "crop",
        True,
    )
    assert image_index.remarks == ()


def test_nothing_is_dropped_without_a_remark(tmp_path: Path) -> None:
    base = lay(tmp_path / "imagenet")
    synsets(base)
    write_images(base, "train/extra/1.JPEG", f"train/{TENCH}/more/1.JPEG", "val/more/1.JPEG")
    (base / "train" / f"{TENCH}.tar").touch()
    flat = imagenet(tmp_path)
    assert {(remark.path, remark.left_out) for remark in flat.remarks} == {
        (f"train/{TENCH}.tar", False),
        ("train/extra", False),
        (f"train/{TENCH}/more", True),
        ("val/more", False),
    }
    by_wnid(base)
    write_images(base, "val/mine.JPEG", f"val/{TENCH}/more/1.JPEG")
    assert {remark.path for remark in set(imagenet(tmp_path).remarks) - set(flat.remarks)} == {
        "val/mine.JPEG",
        f"val/{TENCH}/more",
    }


def test_a_part_of_train_goes_with_all_of_val(tmp_path: Path) -> None:
    base = lay(tmp_path / "imagenet")
    synsets(base)
    (base / "train" / CRANE).rename(tmp_path / "elsewhere")
    image_index = imagenet(tmp_path)
    assert image_index.classes == (TENCH, MACHINE)
    assert held_out(image_index) == {f"val/{VAL[0]}", f"val/{VAL[1]}"}
    reason = f"class {CRANE!r} has no files to learn from; its test files (1) are left out"
    assert image_index.remarks == (Remark(CRANE, reason),)


@pytest.mark.parametrize("label", [solution, synsets])
@pytest.mark.parametrize(("place", "above"), [("imagenet", "imagenet"), ("imagenet", ""), (KAGGLE, "")])
def test_flat_validation_images(tmp_path: Path, label: Callable[[Path], None], place: str, above: str) -> None:
    lay(tmp_path / place)
    label(tmp_path / above)
    image_index = imagenet(tmp_path)
    assert [files[-1] for files in listed(image_index).values()] == [f"val/{VAL[1]}", f"val/{VAL[2]}", f"val/{VAL[0]}"]
    assert held_out(image_index) == {f"val/{file}" for file in VAL}


def test_a_validation_image_without_label_is_left_out(tmp_path: Path) -> None:
    solution(lay(tmp_path / "imagenet"))
    write_images(tmp_path / "imagenet" / "val", "mine.JPEG")
    image_index = imagenet(tmp_path)
    assert len(held_out(image_index)) == 3
    assert [remark.path for remark in image_index.remarks if remark.left_out] == ["val/mine.JPEG"]


@pytest.mark.parametrize(("name", "gap"), [("LOC_synset_mapping.txt", " "), ("words.txt", "\t")])
def test_human_names(tmp_path: Path, name: str, gap: str) -> None:
    synsets(lay(tmp_path / KAGGLE))
    lines = (f"{TENCH}{gap}tench, Tinca tinca", f"{CRANE}{gap}crane", f"{MACHINE}{gap}crane", f"n00000001{gap}entity")
    (tmp_path / name).write_text("\n".join(lines))
    image_index = imagenet(tmp_path)
    assert image_index.classes == ("tench", f"crane ({CRANE})", f"crane ({MACHINE})")
    assert image_index.keys == (TENCH, CRANE, MACHINE)


def test_what_to_put_where(tmp_path: Path) -> None:
    (tmp_path / "imagenet" / "train").mkdir(parents=True)
    with pytest.raises(
        UserError, match=r"put train/ .* and val/ into a folder imagenet in .*--data-root or \$SSIL_DATA"
    ):
        imagenet(tmp_path)
    (tmp_path / "imagenet" / "val").mkdir()
    (tmp_path / "imagenet" / "train" / f"{TENCH}.tar").touch()
    with pytest.raises(UserError, match="has no folder named by a wnid; unpack the tar file"):
        imagenet(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "error"),
    [
        ("else.txt", "", "has no labels: has no folders by wnid; put LOC_val_solution.csv"),
        ("ILSVRC2012_validation_ground_truth.txt", "490\n361\n171\n", "numbers follow .*; put LOC_val_solution.csv"),
        ("ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", "490\n", "numbers follow"),
        ("val_labels.txt", "490\n361\n171\n", "has labels that are no wnids; put LOC_val_solution.csv"),
        ("synset_labels.txt", f"{TENCH}\n", "has 1 labels for 3 files in val/"),
        ("LOC_val_solution.csv", "a,b\n1,2\n", "is no table of ImageId,PredictionString"),
        ("LOC_val_solution.csv", "ImageId,PredictionString\n1\n", "is no table of ImageId,PredictionString"),
    ],
)
def test_labels_that_are_refused(tmp_path: Path, file: str, content: str, error: str) -> None:
    path = lay(tmp_path / "imagenet") / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    with pytest.raises(UserError, match=error) as raised:
        imagenet(tmp_path)
    assert "\n" not in str(raised.value)


def test_the_subset_is_drawn_by_seed_1993(tmp_path: Path) -> None:
    wnids = [f"n{number:08}" for number in range(10, 10_010, 10)]
    for wnid in wnids:
        write_images(tmp_path / "imagenet", f"train/{wnid}/1.JPEG", f"val/{wnid}/2.JPEG")
    image_index = imagenet100(tmp_path)
    order = list(range(1000))
    np.random.RandomState(1993).shuffle(order)
    assert order[:5] == [54, 7, 894, 512, 126]
    assert image_index.keys == tuple(wnids[index] for index in sorted(order[:100]))
    assert image_index.name == "imagenet100"
    assert len(image_index) == 200
    assert len(held_out(image_index)) == 100
    assert listed(image_index)[wnids[54]] == [f"train/{wnids[54]}/1.JPEG", f"val/{wnids[54]}/2.JPEG"]


def test_the_subset_needs_all_classes(tmp_path: Path) -> None:
    synsets(lay(tmp_path / "imagenet"))
    with pytest.raises(UserError, match="drawn from all 1,000 classes of ImageNet, and 3 are there"):
        imagenet100(tmp_path)


@pytest.fixture(params=TINY_PLACES)
def tiny(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    base: Path = tmp_path / request.param
    for wnid in ("n02124075", "n01443537"):
        write_images(base / "train" / wnid / "images", *(f"{wnid}_{number}.JPEG" for number in (0, 10, 9)))
        (base / "train" / wnid / f"{wnid}_boxes.txt").write_text(f"{wnid}_0.JPEG\t0\t10\t63\t58\n")
    write_images(base, "val/images/val_0.JPEG", "val/images/val_1.JPEG", "test/images/test_0.JPEG")
    lines = ("val_0.JPEG\tn02124075\t0\t32\t44\t62", "val_1.JPEG\tn01443537\t52\t55\t57\t59")
    (base / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    (base / "wnids.txt").write_text("n02124075\nn01443537\n")
    (base / "words.txt").write_text("n01443537\tgoldfish, Carassius auratus\nn02124075\tEgyptian cat\n")
    return base


def test_tiny_official_layout(tiny: Path, tmp_path: Path) -> None:
    image_index = tiny_imagenet(tmp_path)
    assert image_index.classes == ("goldfish", "Egyptian cat")
    assert image_index.keys == ("n01443537", "n02124075")
    assert listed(image_index)["goldfish"] == [
        *(f"train/n01443537/images/n01443537_{number}.JPEG" for number in (0, 9, 10)),
        "val/images/val_1.JPEG",
    ]
    assert held_out(image_index) == {"val/images/val_0.JPEG", "val/images/val_1.JPEG"}
    assert grey(image_index, image_index.source.names.index("val/images/val_1.JPEG")) == 1
    assert (image_index.preprocessing.size, image_index.preprocessing.augment, image_index.preprocessing.flip) == (
        64,
        "shift",
        True,
    )
    assert image_index.remarks == ()


def test_tiny_a_file_without_annotation_is_left_out(tiny: Path, tmp_path: Path) -> None:
    write_images(tiny, "val/images/val_2.JPEG")
    (remark,) = tiny_imagenet(tmp_path).remarks
    assert (remark.path, remark.left_out) == ("val/images/val_2.JPEG", True)


def test_tiny_a_class_that_is_missing_is_left_out(tiny: Path, tmp_path: Path) -> None:
    (tiny / "train" / "n01443537").rename(tiny / "elsewhere")
    image_index = tiny_imagenet(tmp_path)
    assert image_index.classes == ("Egyptian cat",)
    assert image_index.remarks == (
        Remark("train/n01443537/images", "no such file or directory"),
        Remark("goldfish", "class 'goldfish' has no files to learn from; its test files (1) are left out"),
    )


def test_tiny_nothing_is_dropped_without_a_remark(tiny: Path, tmp_path: Path) -> None:
    fish = "train/n01443537"
    write_images(tiny, "train/1.JPEG", "train/n09999999/images/1.JPEG", f"{fish}/1.JPEG", f"{fish}/images/more/1.JPEG")
    write_images(tiny, "val/images/more/1.JPEG")
    assert {(remark.path, remark.left_out) for remark in tiny_imagenet(tmp_path).remarks} == {
        ("train/1.JPEG", False),
        ("train/n09999999", False),
        (f"{fish}/1.JPEG", False),
        (f"{fish}/images/more", True),
        ("val/images/more", True),
    }


def test_tiny_damaged_annotations_are_refused(tiny: Path, tmp_path: Path) -> None:
    (tiny / "val" / "val_annotations.txt").write_text("val_0.JPEG\n")
    with pytest.raises(UserError, match="has lines without a wnid"):
        tiny_imagenet(tmp_path)


def test_tiny_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unpack .*tiny-imagenet-200.zip in .*--data-root or \$SSIL_DATA"):
        tiny_imagenet(tmp_path)
