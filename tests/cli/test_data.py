"""`ssil data`: what the commands print, write and refuse."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ssil.cli import main
from ssil.cli.data import COMMANDS
from ssil.data import load
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset
from ssil.data.store.reader import open_store


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three classes, of 4, 5 and 6 images, in `photos`; a file that is none of them in `worse`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path / "cache"))
    noise = np.random.default_rng(0)
    for label, name in enumerate(("ant", "bee", "cat")):
        for top in ("photos", "worse"):
            Path(top, name).mkdir(parents=True)
        for number in range(4 + label):
            image = Image.fromarray(noise.integers(0, 256, (20, 30 + number, 3), dtype=np.uint8))
            for top in ("photos", "worse"):
                image.save(Path(top, name, f"{number}.png"))
    Path("worse", "bee", "bad.png").write_text("no image")


def ssil(*arguments: str) -> int:
    return main(["data", *arguments])


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def landmarks() -> None:
    """Three landmarks, of 4, 6 and 7 images, in `lm`; the one that comes first has the later name."""
    rows = [(f"{label + 1}00{number}", label) for label, count in enumerate((4, 6, 7)) for number in range(count)]
    for number, (name, _) in enumerate(rows):
        path = Path("lm", "train", *name[:3], f"{name}.jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(path)
    table = "".join(f"{name},http,{label}\n" for name, label in rows)
    Path("lm", "train.csv").write_text(f"id,url,landmark_id\n{table}")
    titles = "".join(f"{label},Category:{name}_hill\n" for label, name in enumerate(("Cat", "Bee", "Ant")))
    Path("lm", "train_label_to_category.csv").write_text(f"landmark_id,category\n{titles}")


def images(dataset: Dataset) -> list[list[bytes]]:
    return [sorted(part.images.keys()) for part in (dataset.train, dataset.test)]


def test_prepare(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("prepare", "worse", "--out", "store", "--threads", "2") == 0
    said = capsys.readouterr().out
    assert "15 images of 3 classes in store" in said
    assert re.search(r"kB before, .* kB now \(100 %\)", said)
    assert "left out: 1\n  bee/bad.png: " in said
    assert len(open_store(Path("store")).source) == 15
    assert ssil("prepare", "worse", "--out", "store") == 0
    assert "store was complete already" in capsys.readouterr().out


def test_prepare_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("prepare", "worse", "--out", "store", "--short-side", "10", "--quality", "80", "--json") == 0
    (described,) = objects(capsys.readouterr().out)
    assert (described["images"], described["refused"], described["short_side"], described["quality"]) == (
        15,
        1,
        10,
        80,
    )
    assert described["bytes_after"] < described["bytes_before"]
    assert described["fingerprint"] == open_store(Path("store")).facts.fingerprint


def test_many_remarks_are_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(12):
        Path("worse", "cat", f"bad{number}.jpg").touch()
    assert ssil("prepare", "worse", "--out", "store") == 0
    said = capsys.readouterr().out
    assert said.count("bad") == 10
    assert "and 3 more: see store/refused.csv" in said
    assert len(Path("store", "refused.csv").read_text().splitlines()) == 14


def test_an_interrupt_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["ssil", "data", "prepare", "photos", "--out", "my store"])
    with monkeypatch.context() as patch:
        patch.setattr("ssil.data.store.writer._finish", stop)
        assert ssil("prepare", "photos", "--out", "my store") == 130
    said = capsys.readouterr().err
    assert (
        "what is finished is kept in my store (shards: 1); go on with: ssil data prepare photos --out 'my store'"
        in said
    )
    assert ssil("prepare", "photos", "--out", "my store") == 0


def test_check_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("check", "photos") == 0
    assert capsys.readouterr().out == "15 images, all good\n"
    assert ssil("check", "worse") == 2
    out, error = capsys.readouterr()
    assert re.fullmatch(r"bee/bad.png: .+\n", out)
    assert error == "error: data: worse has 1 fault in 16 images; see above\n"
    assert ssil("check", "worse", "--json") == 2
    fault, count = objects(capsys.readouterr().out)
    assert fault["path"] == "bee/bad.png"
    assert count == {"images": 16, "faults": 1}


def test_check_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("prepare", "worse", "--out", "store") == 0
    assert ssil("check", "store") == 0
    assert capsys.readouterr().out.endswith("15 images, all good\n")
    shard, image = Path("store", "data-00000.arrow"), Path("worse", "cat", "3.png").read_bytes()
    shard.write_bytes(shard.read_bytes().replace(image, image[:-40] + bytes(40)))
    assert ssil("check", "store") == 2
    out, error = capsys.readouterr()
    assert out == "cat/3.png: its bytes have changed since they were stored in data-00000.arrow\n"
    assert "1 fault" in error
    Path("store", "store.json").unlink()
    assert ssil("check", "store") == 2
    assert capsys.readouterr().err == (
        "error: data: store is not complete; run the same `ssil data prepare` again to continue\n"
    )


def test_check_some_classes_of_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("prepare", "photos", "--out", "store") == 0
    shard, image = Path("store", "data-00000.arrow"), Path("photos", "ant", "3.png").read_bytes()
    shard.write_bytes(shard.read_bytes().replace(image, image[:-40] + bytes(40)))
    assert ssil("check", "store", "--classes", "1") == 2
    assert "ant/3.png: its bytes have changed" in capsys.readouterr().out
    Path("classes.txt").write_text("bee\n")
    assert ssil("check", "store", "--class-list", "classes.txt") == 0


def test_check_trusts_no_earlier_look(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("check", "photos") == 0
    path = Path("photos", "ant", "1.png")
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(content[:-60] + bytes(60))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ssil("check", "photos") == 2
    assert "ant/1.png: " in capsys.readouterr().out


def test_odd_classes_are_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "none"):
        Path("photos", name).mkdir()
    Path("photos", "cat", "0.png").rename(Path("photos", "one", "0.png"))
    Path("photos", "none", "0.png").touch()
    assert ssil("check", "photos") == 2
    checked = capsys.readouterr().out
    assert ssil("prepare", "photos", "--out", "store") == 0
    prepared = capsys.readouterr().out
    for said in (checked, prepared):
        assert "none: the class has no readable image to train on\n" in said
        assert "one: the class has a single image" in said


def test_names_do_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("two\nlines.png", "\x1b[31mred.png", os.fsdecode(b"\xff.png")):
        Path("photos", "ant", name).touch()
    assert ssil("check", "photos") == 2
    out = capsys.readouterr().out
    assert out.count("\n") == 3
    assert "ant/two\\nlines.png: " in out
    assert "ant/\\x1b[31mred.png: " in out


@pytest.mark.parametrize("source", ["photos", "store"])
def test_show(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("prepare", "photos", "--out", "store") == 0
    capsys.readouterr()
    assert ssil("show", source, "--sheet", "deep/contact.png") == 0
    said = " ".join(capsys.readouterr().out.split())
    for words in (
        "images 15",
        "classes 3: ant, bee, cat",
        "per class 4 to 6 images, median 5",
        "smallest ant (4), bee (5), cat (6)",
        "largest cat (6), bee (5), ant (4)",
        "width 30 to 35 pixels, median 32",
        "height 20 pixels each",
    ):
        assert words in said
    with Image.open("deep/contact.png") as sheet:
        assert sheet.format == "PNG"
    assert ssil("show", source, "--json") == 0
    (described,) = objects(capsys.readouterr().out)
    assert described["per_class"] == {"min": 4, "median": 5.0, "max": 6}
    assert described["test_images"] is None


def test_show_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(4):
        Path("worse", "ant", f"{number}.png").write_text("[bold]no image")
    Path("worse", "readme.txt").touch()
    assert ssil("show", "worse") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "unreadable 5 of those read" in said
    assert "(of 11 measured)" in said
    assert "remarks: 1 readme.txt: " in said


def test_a_list_is_loaded_again_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("list", "worse", "--out", "split.csv", "--split-seed", "3") == 0
    assert capsys.readouterr().out == (
        "12 training and 3 test images in split.csv\nload it with: ssil run --dataset split.csv --data-root worse\n"
    )
    first, again = (
        load.load(DataSettings(dataset="worse", split_seed=3)),
        load.load(DataSettings(dataset="split.csv", data_root=Path("worse"), split_seed=9)),
    )
    assert again.fingerprint == first.fingerprint
    assert images(load.load(DataSettings(dataset="worse", split_seed=9))) != images(first)
    assert ssil("list", "worse", "--out", "worse/split.csv") == 0
    assert "--data-root" not in capsys.readouterr().out


def test_a_list_of_a_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("prepare", "photos", "--out", "store") == 0
    assert ssil("list", "store", "--out", "split.csv") == 0
    assert "--dataset split.csv --data-root DIR, where DIR holds the files that the store" in capsys.readouterr().out
    assert images(load.load(DataSettings(dataset="split.csv", data_root=Path("photos")))) == images(
        load.load(DataSettings(dataset="store"))
    )


def test_a_list_keeps_the_order_of_classes() -> None:
    Path("classes.txt").write_text("cat\nant\n")
    assert ssil("list", "photos", "--out", "split.csv", "--class-list", "classes.txt") == 0
    again = load.load(DataSettings(dataset="split.csv", data_root=Path("photos")))
    assert again.classes == ("cat", "ant")
    assert images(again) == images(load.load(DataSettings(dataset="photos", class_list=Path("classes.txt"))))


def test_a_list_goes_by_keys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    landmarks()
    monkeypatch.setitem(load.NAMED, "landmark-v2-1k", load._landmarks(2, 50))
    flags = ["--min-per-class", "5", "--max-per-class", "3", "--test-per-class", "2"]
    assert ssil("list", "landmark-v2-1k", "--data-root", "lm", *flags, "--out", "lm.csv") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "6 training and 4 test images in lm.csv"
    assert said[1] == "load it with: ssil run --dataset lm.csv --data-root lm --image-size 224 --augment crop"
    assert said[2] == "a table does not tell of landmark-v2-2's mean, std: these will be as for photographs"
    head, first, *_, last = Path("lm.csv").read_text().splitlines()
    assert head == "path,label,split,name"
    assert re.fullmatch(r"train/2/0/0/200\d\.jpg,1,train,Bee hill", first)
    assert last.endswith(",2,test,Ant hill")
    whole, again = (
        load.load(
            DataSettings(
                dataset="landmark-v2-1k", data_root=Path("lm"), min_per_class=5, max_per_class=3, test_per_class=2
            )
        ),
        load.load(DataSettings(dataset="lm.csv", data_root=Path("lm"), image_size=224, augment="crop")),
    )
    assert again.classes == whole.classes
    for one, other in ((again.train, whole.train), (again.test, whole.test)):  # all but mean and std, in the same order
        assert one.images.keys() == other.images.keys()
        assert one.labels.tolist() == other.labels.tolist()
    assert again.fingerprint != whole.fingerprint


def test_a_list_of_what_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("photos", "ant", "0.png").rename(Path("photos", "ant", os.fsdecode(b"\xff.png")))
    assert ssil("list", "photos", "--out", "split.csv") == 2
    assert "is no text, so no table can hold it; rename it" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["worse", "store"])
def test_limits_choose_what_a_run_would_use(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("prepare", "worse", "--out", "store") == 0
    limits = ["--min-per-class", "5", "--max-per-class", "3", "--split-seed", "4"]
    wanted = load.load(DataSettings(dataset="worse", min_per_class=5, max_per_class=3, split_seed=4))
    assert wanted.classes == ("bee", "cat")
    assert ssil("list", source, "--out", "split.csv", *limits) == 0
    assert ssil("prepare", source, "--out", "few", *limits) == 0
    assert load.load(DataSettings(dataset="few")).fingerprint == wanted.fingerprint
    assert load.load(DataSettings(dataset="split.csv", data_root=Path("worse"))).fingerprint == wanted.fingerprint
    capsys.readouterr()
    assert ssil("show", source, "--json", *limits) == 0
    (described,) = objects(capsys.readouterr().out)
    assert (described["images"], described["test_images"], described["classes"]) == (8, 2, 2)
    assert described["width"]["max"] <= 35
    assert ssil("check", source, "--json", *limits) == (2 if source == "worse" else 0)
    assert objects(capsys.readouterr().out)[-1]["images"] == (12 if source == "worse" else 11)


def test_a_store_is_loaded_as_its_source() -> None:
    assert ssil("prepare", "worse", "--out", "store") == 0
    source, store = (
        load.load(DataSettings(dataset="worse", split_seed=1)),
        load.load(DataSettings(dataset="store", split_seed=1)),
    )
    assert store.fingerprint == source.fingerprint
    assert store.classes == source.classes
    assert [remark.path for remark in store.left_out] == [remark.path for remark in source.left_out] == ["bee/bad.png"]


def test_export(capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil("export", "digits", "--out", "digits") == 0
    dataset = load.load(DataSettings(dataset="digits"))
    assert f"{len(dataset.train):,} training and {len(dataset.test):,} test images in digits" in capsys.readouterr().out
    assert len(list(Path("digits").glob("train/*/*.png"))) == len(dataset.train)
    assert load.load(DataSettings(dataset="digits")).classes == tuple(
        sorted(path.name for path in Path("digits", "train").iterdir())
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["prepar"], "unknown command 'prepar'; did you mean 'prepare'?"),
        (["mend"], "unknown command 'mend'; there are: prepare, check, show, list, export"),
        (["prepare", "photos"], "--out"),
        (["prepare", "imagnet", "--out", "s"], "source: 'imagnet' is no set of image files; did you mean 'imagenet'?"),
        (["prepare", "digits", "--out", "s"], "`ssil data export digits --out DIR` makes it one"),
        (["prepare", "nowhere", "--out", "s"], "give the path of a folder, a table or a store"),
        (
            ["prepare", "worse", "--out", "s", "--strict"],
            "data: bee/bad.png: .* .the first of 1; --strict stops at any",
        ),
        (["prepare", "photos", "--out", "s", "--quality", "0"], "quality: 0 must be from 1 to 100"),
        (["prepare", "photos", "--out", "worse"], "out: worse is not empty and holds no store; give a new directory"),
        (["show", "photos", "--sheet", "worse"], "sheet: worse can't be written"),
        (["show", "photos", "--classes", "0"], "classes: 0 does not fit: input should be greater than or equal to 1"),
        (["list", "photos", "--out", "split.txt"], "out: split.txt must end in .csv"),
        (["list", "photos", "--out", "worse/bee/bad.png/x.csv"], "out: worse/bee/bad.png/x.csv can't be written"),
        (["export", "digits", "--out", "worse"], "out: worse exists; give a new directory"),
        (["export", "digitz", "--out", "new"], "digitz.*digits"),
    ],
)
def test_bad_input(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil(*arguments) == 2
    error = capsys.readouterr().err
    assert re.search(said, error)
    assert error.startswith("error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ssil(command, "--help") == 0
    assert f"  ssil data {command}" in capsys.readouterr().out.partition("Examples:")[2]
