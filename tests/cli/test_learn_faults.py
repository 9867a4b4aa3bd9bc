"""`ssil learn` in trouble: a full disk, Ctrl-C, a second learner, readers meanwhile. The model goes on predicting."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tiny_classifiers
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.publish_update import PublishedUpdate, publish_update
from ssil.classifier.update import update
from ssil.cli import main

pytestmark = pytest.mark.slow

SMALL = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--no-flip", "--batch", "8", "--memory", "40"]
SHORT = ["--epochs", "1", "--later-epochs", "1"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photos")
    for name, classes in {"first": ["ant", "bee"], "second": ["cat"], "third": ["dog"]}.items():
        tiny_classifiers.folder(root / name, classes)
    return root


@pytest.fixture(scope="module")
def taught(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "mine"
    assert main(["learn", str(folder), str(photos / "first"), *SMALL, *SHORT]) == 0
    return folder


@pytest.fixture
def model(taught: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(taught, tmp_path / "model"))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def learn(model: Path, photos: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ssil", "learn", str(model), str(photos)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **more)


def test_files_that_may_not_grow(model: Path, photos: Path) -> None:
    before = files(model)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = learn(model, photos / "second", preexec_fn=limit)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"error: model: {model} can't be written (File too large); make room, and try again" in done.stderr
    assert files(model) == before
    assert learn(model, photos / "second").returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=1500k", "tmpfs"]
    mount = shutil.which("mount")
    if os.geteuid() or not mount or subprocess.run([mount, *options, folder], capture_output=True).returncode:
        pytest.skip("only root, where it may mount, can make a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk(disk: Path, taught: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Path(shutil.copytree(taught, disk / "model"))
    before = files(model)
    image = str(photos / "first/ant/0.png")
    assert main(["predict", str(model), image]) == 0
    said = capsys.readouterr().out
    assert main(["learn", str(model), str(photos / "second")]) == 2
    assert "can't be written (No space left on device); make room" in capsys.readouterr().err
    assert files(model) == before
    assert main(["predict", str(model), image]) == 0
    assert capsys.readouterr().out == said


def at_step(number: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen while an update is being learnt."""
    steps = iter(range(1, 1000))

    def meddled(*given: Any, observer: Any, **more: Any) -> PublishedUpdate:
        def watched(progress: Any, pace: Any) -> None:
            if next(steps) == number:
                act()
            observer(progress, pace)

        return publish_update(*given, observer=watched, **more)

    monkeypatch.setattr("ssil.classifier.publish_update.publish_update", meddled)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt(
    model: Path, photos: Path, number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(model)
    at_step(1, lambda: os.kill(os.getpid(), number), monkeypatch)
    assert main(["learn", str(model), str(photos / "second")]) == 130
    assert capsys.readouterr().err.endswith("interrupted: the model is as it was\n")
    assert files(model) == before
    assert main(["learn", str(model), str(photos / "second")]) == 0


def test_a_second_learner_is_told_and_can_follow(
    model: Path, photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    second = list[subprocess.CompletedProcess[str]]()
    at_step(1, lambda: second.append(learn(model, photos / "third")), monkeypatch)
    assert main(["learn", str(model), str(photos / "second")]) == 0
    assert second[0].returncode == 2
    assert f"error: out: another process is at work in {model}; wait" in second[0].stderr
    assert learn(model, photos / "third").returncode == 0
    capsys.readouterr()
    assert main(["history", str(model), "--json"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["version"], one["parent"], one["new"]) for one in entries] == [
        (1, None, ["ant", "bee"]),
        (2, 1, ["cat"]),
        (3, 2, ["dog"]),
    ]


READER = """
import sys
from ssil.cli import main
model, image = sys.argv[1:]
for _ in range(20):
    assert main(["predict", model, image, "--json", "--top", "9"]) == 0
    print("read", file=sys.stderr, flush=True)
"""


def test_readers_never_see_half_a_model(model: Path, photos: Path) -> None:
    """One process predicts twenty times; all the while another publishes, and removes all but the newest version."""
    directory = ModelDirectory(model)
    first = directory.load()
    other = update(first.classifier, first.classifier.settings, tiny_classifiers.labelled_images(["cat"])).classifier
    command = [sys.executable, "-c", READER, str(model), str(photos / "first/ant/0.png")]
    turns = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        assert reader.stderr
        assert reader.stderr.readline() == "read\n"
        while reader.poll() is None:
            turns += 1
            with directory.locked():
                directory.publish((first.classifier, other)[turns % 2], [{"new": [], "more": []}])
                directory.prune(1)
        out, err = reader.communicate(timeout=120)
    assert reader.returncode == 0, err
    answers = [len(json.loads(line)["classes"]) for line in out.splitlines()]
    assert len(answers) == 20
    assert set(answers) <= {2, 3}
    assert turns > 1
