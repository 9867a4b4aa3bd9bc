"""The look at photos before they are learnt: a process of its own, once for the same photos, never beside an update."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from served import two_versions
from ssil.studio.learning_jobs import LearningJobs
from ssil.studio.photo_marks import PhotoMarks
from ssil.studio.staging import Staging
from tiny_classifiers import png, settings

SECONDS = 120


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_versions(tmp_path_factory.mktemp("marks") / "model").folder


@pytest.fixture
def jobs(model: Path, tmp_path: Path) -> LearningJobs:
    shutil.copytree(model, tmp_path / "model")
    staging = Staging(tmp_path / "model")
    for copy in range(6):
        staging.add("fly", png("fly", copy))
    staging.add("fly", png("ant", 0))
    return LearningJobs(tmp_path / "model", [settings().backbone])


def ended(marks: PhotoMarks) -> None:
    end = time.monotonic() + SECONDS
    while marks.state().running:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_marks(jobs: LearningJobs) -> None:
    marks = PhotoMarks(jobs, [settings().backbone])
    marks.start()
    assert marks.state().running
    ended(marks)
    wrong = next(image for image in jobs.staging if image.path.read_bytes() == png("ant", 0))
    assert marks.by_digest()[wrong.digest]["text"] == "the same photo is in ant", (
        jobs.check.folder / "output.txt"
    ).read_text()
    assert marks.state().marked == len(marks.by_digest())
    marks.start()
    assert not marks.state().running
    jobs.staging.move(wrong, "ant")
    assert wrong.digest not in marks.by_digest()
    jobs.staging.add("fly", png("fly", 99))
    marks.start()
    assert marks.state().running
    marks.stop()
    ended(marks)


def test_an_update_goes_first(jobs: LearningJobs) -> None:
    marks = PhotoMarks(jobs, [settings().backbone])
    marks.start()
    job = jobs.start()
    assert jobs.process
    os.kill(jobs.process.pid, signal.SIGSTOP)  # so that it can't end first
    ended(marks)
    marks.start()
    assert not marks.state().running
    jobs.process.kill()
    while job.is_running():
        time.sleep(0.05)


def test_a_failure_is_not_repeated(jobs: LearningJobs) -> None:
    """Its own code is not trusted here, so the model can't be loaded; the photos wait without marks."""
    marks = PhotoMarks(jobs)
    marks.start()
    ended(marks)
    assert "trust" in (jobs.check.result() or {})["problem"]
    marks.start()
    assert not marks.state().running
    assert marks.by_digest() == {}
