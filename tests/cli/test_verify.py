"""`ssil verify`: damage of any file is found, and a repair leaves a sound directory and loses nothing good."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tiny_classifiers
import tiny_runs
from attacked import LEARN, SHORT, TRUST, images
from command_lines import contents
from ssil.benchmark.runner import run
from ssil.cli import main
from ssil.core.files import locked

Damage = Callable[[Path], object]


def flip(path: Path) -> None:
    """Change a byte in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


DAMAGES: dict[str, Damage] = {"flipped": flip, "truncated": truncate, "missing": Path.unlink}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a directory of each kind: model, frozen (has features), run, stopped, store."""
    root = tmp_path_factory.mktemp("verify")
    data = tiny_runs.patterns(root / "patterns.npz", [5] * 6)
    settings = {"tasks": 3, "memory": 9, "checkpoint_every": "2"}
    run(tiny_runs.config(data, **settings, out=root / "run"))
    with pytest.raises(KeyboardInterrupt):
        run(tiny_runs.config(data, **settings, out=root / "stopped"), tiny_runs.Stopper(6))
    source = images(root / "images", ("ant", "bee"), "png")
    (source / "ant" / "broken.png").write_bytes(b"no image")
    assert main(["data", "prepare", str(source), "--out", str(root / "store")]) == 0
    for name, classes in {"first": ["ant", "bee"], "second": ["cat"]}.items():
        photos = tiny_classifiers.folder(root / name, classes)
        given = LEARN if name == "first" else TRUST
        assert main(["learn", str(root / "model"), str(photos), *map(str, (*given, *SHORT))]) == 0
    return root


@pytest.fixture
def copy(originals: Path, tmp_path: Path) -> Callable[[str], Path]:
    return lambda kind: Path(shutil.copytree(originals / kind, tmp_path / kind))


def verified(folder: Path, *more: str) -> int:
    return main(["verify", str(folder), *map(str, TRUST), *more])


@pytest.mark.parametrize("kind", ["model", "run", "stopped", "store"])
def test_what_nobody_has_changed_is_sound(kind: str, originals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(originals / kind)
    assert verified(originals / kind) == 0
    name = "run" if kind == "stopped" else kind
    assert capsys.readouterr().out == f"1 {name} in {originals / kind}: sound\n"
    assert contents(originals / kind) == before


FILES = {
    "model": ["current.json", "versions/0001/model.json", "versions/0002/weights.safetensors", "pictures/*/*.png"],
    "run": [
        "record.json",
        "checksums.json",
        "arrays/task-02.safetensors",
        "checkpoint/state.json",
        "checkpoint/s*.safe*",
    ],
    "stopped": ["record.json", "arrays/task-01.safetensors", "checkpoint/state.json", "checkpoint/p*.safetensors"],
    "store": ["store.json", "prepare.json", "index.arrow", "refused.csv", "data-00000.arrow"],
}
CASES = [(kind, file, damage) for kind, files in FILES.items() for file in files for damage in DAMAGES]
UNNOTICED = {
    ("run", "record.json", "missing"),  # then it is no run with a record, see below
    ("run", "checksums.json", "missing"),  # as in runs of earlier versions
    ("run", "checkpoint/state.json", "missing"),  # a finished run may have lost its model on purpose
}
REPAIRED = {
    *(("model", file, damage) for file in FILES["model"] for damage in DAMAGES),
    *(("store", file, damage) for file in ("prepare.json", "index.arrow", "refused.csv") for damage in DAMAGES),
    *(("run", file, damage) for file in FILES["run"][3:] for damage in DAMAGES),
    *(("run", "checksums.json", damage) for damage in ("truncated",)),
}
"""What a repair mends; everything else has to be restored or made again."""


@pytest.mark.parametrize(("kind", "file", "damage"), [case for case in CASES if case not in UNNOTICED])
def test_damage_is_found_and_repaired_where_it_can_be(
    kind: str, file: str, damage: str, copy: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy(kind)
    path = sorted(folder.glob(file))[0]
    good = {name: value for name, value in contents(folder).items() if name != str(path.relative_to(folder))}
    DAMAGES[damage](path)
    left = path.read_bytes() if path.exists() else None
    assert verified(folder) == 3
    assert capsys.readouterr().err.startswith("refused: ")
    assert main(["verify", str(folder), *map(str, TRUST), "--json"]) == 3
    *defects, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert last == {"directories": 1, "defects": len(defects)}
    assert any(one["path"].startswith(str(folder)) and one["problem"] and one["meaning"] for one in defects)
    assert verified(folder, "--repair") == (0 if (kind, file, damage) in REPAIRED else 3)
    beside = folder.with_name(f"{kind}.damaged")
    kept = {*contents(folder).values(), *(contents(beside).values() if beside.exists() else ())}
    lost = {name for name, value in good.items() if value not in kept and not name.endswith("model.json")}
    assert not lost, "a file that was good is neither there nor beside"
    if left is not None and damage != "missing":
        everywhere = [one for root in (folder, beside) for one in root.rglob("*") if one.is_file()]
        assert any(one.read_bytes() == left for one in everywhere), "the damaged file was deleted"


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("model", ".current.json.part"),
        ("model", "versions/.0003.part"),
        ("run", ".record.json.part"),
        ("run", "arrays/.task-01.safetensors.part"),
        ("run", "checkpoint/.state.json.part"),
        ("run", f"checkpoint/snapshot-{'0' * 32}.safetensors"),
        ("store", ".index.arrow.part"),
        ("store", ".data-00000.arrow.part"),
    ],
)
def test_what_a_killed_process_left_is_removed(kind: str, file: str, copy: Callable[[str], Path]) -> None:
    folder = copy(kind)
    before = contents(folder)
    (folder / file).write_bytes(b"half")
    assert verified(folder) == 3
    assert verified(folder, "--repair") == 0
    assert {**contents(folder), "lock": ""} == {**before, "lock": ""}


def test_an_image_that_no_version_refers_to_is_dropped_and_a_users_own_stays(copy: Callable[[str], Path]) -> None:
    folder = copy("model")
    image = next((folder / "pictures" / "ant").glob("*.png"))
    mine = folder / "pictures" / "bee" / f"{'0' * 32}.png"
    mine.write_text("the user's own")
    shutil.copy(image, folder / "pictures" / "bee" / image.name)
    assert verified(folder) == 3
    assert verified(folder, "--repair") == 0
    assert mine.exists()
    assert not (folder / "pictures" / "bee" / image.name).exists()


def test_a_damaged_version_is_left_for_the_newest_whole_one(copy: Callable[[str], Path]) -> None:
    folder = copy("model")
    flip(folder / "versions" / "0002" / "weights.safetensors")
    assert verified(folder, "--repair") == 0
    assert json.loads((folder / "current.json").read_text())["version"] == 1
    assert (folder.with_name("model.damaged") / "versions" / "0002" / "model.json").exists()


def test_predictions_of_another_run_are_found(copy: Callable[[str], Path]) -> None:
    folder = copy("run")
    (folder / "checksums.json").unlink()
    shutil.copy(folder / "arrays" / "task-02.safetensors", folder / "arrays" / "task-03.safetensors")
    assert verified(folder) == 3


def test_a_torn_line_of_the_log_is_taken_out(copy: Callable[[str], Path]) -> None:
    folder = copy("run")
    whole = (folder / "log.jsonl").read_bytes()
    (folder / "log.jsonl").write_bytes(whole + b'{"time": "2026-')
    assert verified(folder) == 3
    assert verified(folder, "--repair") == 0
    assert (folder / "log.jsonl").read_bytes() == whole


def test_a_folder_of_several_is_verified_whole(originals: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(originals) == 0
    assert capsys.readouterr().out.endswith(f"1 model, 2 runs, 1 store in {originals}: sound\n")


def test_what_is_none_of_ours_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store.json").write_text("{}")
    for folder in (tmp_path, tmp_path / "missing", tmp_path / "store.json"):
        assert main(["verify", str(folder), "--repair"]) == 2
        assert "is no model, run or store" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["store.json"]


def test_a_directory_at_work_is_left_alone(copy: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy("run")
    with locked(folder, "run", ours=True):
        assert verified(folder, "--repair") == 2
    assert "another process is at work" in capsys.readouterr().err


def test_links_are_reported(copy: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copy("model")
    (folder / "link").symlink_to(tmp_path)
    assert verified(folder) == 3
    assert "neither a file nor a folder" in capsys.readouterr().out
