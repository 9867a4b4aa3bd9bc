"""The process that learns for the studio: how it ends is in its log."""

import threading
from pathlib import Path

import pytest

from full_disk import file_size_limit
from ssil.core.errors import UserError
from ssil.studio import learner
from ssil.studio.learner import ProgressLog
from ssil.studio.learning_jobs import LOG, Job


def test_a_cancellation_before_the_first_image_is_read_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt may come as soon as the thread that looks for it runs."""

    def interrupt(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupt)
    job = Job(1, tmp_path)
    learner.learn(tmp_path / "model", job, 5.0, [])
    assert [facts["event"] for _, facts in job.events()] == ["cancelled"]


def test_on_a_full_disk_progress_is_left_out_and_the_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(1, tmp_path)
    for done in range(3):
        job.append("progress", stage="learning", done=done / 3)

    def no_room(*_: object) -> None:
        ProgressLog(job).reading(1, 2)
        raise UserError("disk: the model can't be written")

    monkeypatch.setattr(learner, "_update", no_room)
    with file_size_limit((job.folder / LOG).stat().st_size + 5):
        learner.learn(tmp_path / "model", job, 5.0, [])
    ((_, end),) = job.events()
    assert (end["event"], end["reason"]) == ("failed", "disk: the model can't be written")
