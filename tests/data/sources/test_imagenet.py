from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from image_trees import encoded, held_out, listed, pictures
from ssil.core.errors import UserError
from ssil.data.image_index import Remark
from ssil.data.sources.imagenet import LABELS, PLACES, imagenet, imagenet100

TENCH, CRANE, MACHINE = "n01440764", "n02012849", "n03126707"
VAL = [f"ILSVRC2012_val_{number:08}.JPEG" for number in range(1, 4)]
KAGGLE = "ILSVRC/Data/CLS-LOC"


def lay(base: Path) -> Path:
    """Training images of three classes, and a flat val/."""
    pictures(
        base / "train", *(f"{wnid}/{wnid}_{number}.JPEG" for wnid in (CRANE, TENCH, MACHINE) for number in (10, 9))
    )
    pictures(base / "val", *VAL)
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
    listing = imagenet(tmp_path)
    assert listing.classes == listing.keys == (TENCH, CRANE, MACHINE)
    assert listed(listing)[TENCH] == [
        f"train/{TENCH}/{TENCH}_9.JPEG",
        f"train/{TENCH}/{TENCH}_10.JPEG",
        f"val/{TENCH}/{VAL[1]}",
    ]
    assert held_out(listing) == {f"val/{MACHINE}/{VAL[0]}", f"val/{TENCH}/{VAL[1]}", f"val/{CRANE}/{VAL[2]}"}
    assert listing.source.read(0) == encoded(".JPEG", 3)
    assert (listing.look.size, listing.look.augment, listing.look.flip) == (224, "crop", True)
    assert listing.remarks == ()


def test_nothing_is_dropped_without_a_remark(tmp_path: Path) -> None:
    base = lay(tmp_path / "imagenet")
    synsets(base)
    pictures(base, "train/extra/1.JPEG", f"train/{TENCH}/more/1.JPEG", "val/more/1.JPEG")
    (base / "train" / f"{TENCH}.tar").touch()
    flat = imagenet(tmp_path)
    assert {(remark.path, remark.left_out) for remark in flat.remarks} == {
        (f"train/{TENCH}.tar", False),
        ("train/extra", False),
        (f"train/{TENCH}/more", True),
        ("val/more", False),
    }
    by_wnid(base)
    pictures(base, "val/mine.JPEG", f"val/{TENCH}/more/1.JPEG")
    assert {remark.path for remark in set(imagenet(tmp_path).remarks) - set(flat.remarks)} == {
        "val/mine.JPEG",
        f"val/{TENCH}/more",
    }


def test_a_part_of_train_goes_with_all_of_val(tmp_path: Path) -> None:
    base = lay(tmp_path / "imagenet")
    synsets(base)
    (base / "train" / CRANE).rename(tmp_path / "elsewhere")
    listing = imagenet(tmp_path)
    assert listing.classes == (TENCH, MACHINE)
    assert held_out(listing) == {f"val/{VAL[0]}", f"val/{VAL[1]}"}
    reason = f"class {CRANE!r} has no files to learn from; its test files (1) are left out"
    assert listing.remarks == (Remark(CRANE, reason),)


@pytest.mark.parametrize("label", [solution, synsets])
@pytest.mark.parametrize(("place", "above"), [("imagenet", "imagenet"), ("imagenet", ""), (KAGGLE, "")])
def test_flat_validation_images(tmp_path: Path, label: Callable[[Path], None], place: str, above: str) -> None:
    lay(tmp_path / place)
    label(tmp_path / above)
    listing = imagenet(tmp_path)
    assert [files[-1] for files in listed(listing).values()] == [f"val/{VAL[1]}", f"val/{VAL[2]}", f"val/{VAL[0]}"]
    assert held_out(listing) == {f"val/{file}" for file in VAL}


def test_a_validation_image_without_label_is_left_out(tmp_path: Path) -> None:
    solution(lay(tmp_path / "imagenet"))
    pictures(tmp_path / "imagenet" / "val", "mine.JPEG")
    listing = imagenet(tmp_path)
    assert len(held_out(listing)) == 3
    assert [remark.path for remark in listing.remarks if remark.left_out] == ["val/mine.JPEG"]


@pytest.mark.parametrize(("name", "gap"), [("LOC_synset_mapping.txt", " "), ("words.txt", "\t")])
def test_human_names(tmp_path: Path, name: str, gap: str) -> None:
    synsets(lay(tmp_path / KAGGLE))
    lines = (f"{TENCH}{gap}tench, Tinca tinca", f"{CRANE}{gap}crane", f"{MACHINE}{gap}crane", f"n00000001{gap}entity")
    (tmp_path / name).write_text("\n".join(lines))
    listing = imagenet(tmp_path)
    assert listing.classes == ("tench", f"crane ({CRANE})", f"crane ({MACHINE})")
    assert listing.keys == (TENCH, CRANE, MACHINE)


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
        pictures(tmp_path / "imagenet", f"train/{wnid}/1.JPEG", f"val/{wnid}/2.JPEG")
    listing = imagenet100(tmp_path)
    order = list(range(1000))
    np.random.RandomState(1993).shuffle(order)
    assert order[:5] == [54, 7, 894, 512, 126]
    assert listing.keys == tuple(wnids[index] for index in sorted(order[:100]))
    assert listing.name == "imagenet100"
    assert len(listing) == 200
    assert len(held_out(listing)) == 100
    assert listed(listing)[wnids[54]] == [f"train/{wnids[54]}/1.JPEG", f"val/{wnids[54]}/2.JPEG"]


def test_the_subset_needs_all_classes(tmp_path: Path) -> None:
    synsets(lay(tmp_path / "imagenet"))
    with pytest.raises(UserError, match="drawn from all 1,000 classes of ImageNet, and 3 are there"):
        imagenet100(tmp_path)
