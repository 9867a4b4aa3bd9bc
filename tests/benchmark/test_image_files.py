"""Runs on image files: where they are kept changes nothing; what was left out is told."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ssil import RunConfig, run
from ssil.benchmark.record import Record, read_record
from ssil.core.errors import UserError


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four classes of six noisy images, some large; one more file is no image."""
    folder, noise = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number in range(24):
        small = Image.fromarray(noise.integers(0, 255, (8, 10, 3), dtype=np.uint8))
        path = folder / "abcd"[number % 4] / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        small.resize((200, 150) if number % 3 else (50, 40), Image.Resampling.BICUBIC).save(path)
    (folder / "a" / "notes.jpg").write_text("no image")
    return folder


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path / "cache"))


def learn(photos: Path, **settings: Any) -> Record:
    return run(
        RunConfig(
            dataset=str(photos),
            image_size=32,
            augment="crop",
            tasks=2,
            backbone="resnet14",
            epochs=2,
            batch=8,
            memory=8,
            **settings,
        )
    )


@pytest.mark.parametrize("flags", [(), ("--threads", "2")], ids=["default", "asked"])
def test_training_keeps_its_threads_on_a_folder_that_was_never_seen(
    photos: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    out, small = tmp_path / "run", ("--image-size", "8", "--tasks", "1", "--backbone", "resnet14", "--epochs", "1")
    arguments = ["run", "--dataset", str(photos), "--method", "ft", *small, "--out", str(out), *flags]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1" if flags else "2"}
    command = [sys.executable, "-m", "ssil", *arguments]
    subprocess.run(command, env=os.environ | environment, check=True, capture_output=True)  # decodes every image
    assert read_record(out).provenance["threads"] == 2


def results(record: Record) -> list[dict[str, Any]]:
    timings = {"seconds", "seconds_by_phase", "images_per_second", "peak_memory_mb"}
    return [task.model_dump(exclude=timings) for task in record.tasks]


def test_where_images_are_kept_changes_nothing(photos: Path) -> None:
    resident = learn(photos, in_memory=True)
    assert results(learn(photos, in_memory=False)) == results(resident)
    assert results(learn(photos, in_memory=False, hold_exemplars="bytes")) == results(resident)
    assert results(learn(photos, in_memory=False, hold_exemplars="decoded")) == results(resident)


def test_what_is_left_out_is_told(photos: Path, tmp_path: Path) -> None:
    record = learn(photos, out=tmp_path / "run")
    assert record.provenance["left_out"] == 1
    assert record.provenance["skipped_files"] == ["a/notes.jpg"]
    assert (tmp_path / "run" / "remarks.csv").read_text().splitlines() == [
        "path,reason,left_out",
        "a/notes.jpg,not an image,True",
    ]
    again = learn(photos, out=tmp_path / "run", in_memory=False, strict=False)
    assert results(again) == results(record)


def test_a_folder_may_move_but_not_change(photos: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(photos, here)
    first = learn(here, out=tmp_path / "run")
    here.rename(there)
    assert results(learn(there, out=tmp_path / "run")) == results(first)
    Image.new("RGB", (50, 40), "red").save(there / "a" / "new.jpg")
    with pytest.raises(UserError, match="begun with other images"):
        learn(there, out=tmp_path / "run")
