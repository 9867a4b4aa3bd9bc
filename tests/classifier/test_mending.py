"""Commands that mend folders: run in a shell, they do what they say, and nothing is lost."""

import subprocess
from pathlib import Path

import pytest

from ssil.classifier.mending import learn_again, merge_command, set_aside


def made(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def run(command: str) -> None:
    subprocess.run(["sh", "-c", command], check=True)


def test_a_folder_of_a_known_class_is_renamed(tmp_path: Path) -> None:
    root = made(tmp_path / "my week", "Red  pear/1.jpg", "Red  pear/2.jpg")
    run(merge_command(str(root), "red pear", "Red  pear"))
    assert files(root) == {"red pear/1.jpg", "red pear/2.jpg"}


def test_two_folders_become_one(tmp_path: Path) -> None:
    root = made(tmp_path, "train/pear/1.jpg", "train/pear-new/2.jpg", "train/pear-new/3.jpg")
    run(merge_command(str(root), "pear", "pear-new"))
    assert files(root) == {"train/pear/1.jpg", "train/pear/2.jpg", "train/pear/3.jpg"}
    assert not (root / "train/pear-new").exists()


def test_no_file_would_replace_another(tmp_path: Path) -> None:
    root = made(tmp_path, "pear/1.jpg", "Pear/1.jpg", "table.csv")
    assert merge_command(str(root), "pear", "Pear") == ""
    assert merge_command(str(root / "table.csv"), "pear", "Pear") == ""
    assert merge_command(str(root), "pear", "apple") == ""


def test_updates_are_undone_and_learnt_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "week 1").mkdir()
    one, two = {"images": "week 1", "parent": None}, {"images": "week-2", "parent": 1}
    assert learn_again("m", [two], published=True) == ("ssil rollback m 1", "ssil learn m week-2")
    assert learn_again("m", [two], published=False) == ("ssil learn m week-2",)
    both = ("mv m m-old", "ssil learn m 'week 1'", "ssil learn m week-2")
    assert learn_again("m", [one, two], published=False) == both
    judged = {**two, "test": {"folder": "my test"}}
    assert learn_again("m", [one, judged], published=True) == (*both[:2], "ssil exam m 'my test'", both[2])
    assert learn_again("m", [judged], published=True) == ("ssil rollback m 1", "ssil learn m week-2")
    assert learn_again("", [two], published=True) == ()
    assert learn_again("m", [one, {"renamed": ["a", "b"]}], published=True) == ()
    gone = {"images": "moved elsewhere", "parent": None}
    assert learn_again("m", [gone, two], published=True) == ()  # or the model would be set aside for nothing
    assert learn_again("m", [gone], published=True) == ("mv m m-old", "ssil learn m 'moved elsewhere'")


def test_a_model_is_set_aside_under_a_free_name(tmp_path: Path) -> None:
    model = tmp_path / "m"
    for expected in ("m-old", "m-old1", "m-old2"):
        assert set_aside(f"{model}/") == str(tmp_path / expected)
        (tmp_path / expected).mkdir()
