"""The process that learns for the studio: how it ends is in its log."""

import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from full_disk import file_size_limit
from ssil.core.errors import UserError
from ssil.studio import learner
from ssil.studio.learner import ProgressLog
from ssil.studio.learning_jobs import LOG, Job

SECONDS = 60


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


def test_a_cancellation_that_is_seen_twice_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress notices the request, and the thread sends its signal while the end is logged."""
    job, sent, watch, end = Job(1, tmp_path), threading.Event(), learner.watch_for_cancel, Job.end

    def watched(path: Path) -> None:
        watch(path)
        sent.set()

    def cancelled(*_: object) -> None:
        job.cancel()
        ProgressLog(job).reading(1, 2)

    def end_late(self: Job, event: str, **facts: Any) -> None:
        assert sent.wait(SECONDS)
        end(self, event, **facts)

    monkeypatch.setattr(learner, "watch_for_cancel", watched)
    monkeypatch.setattr(learner, "_update", cancelled)
    monkeypatch.setattr(Job, "end", end_late)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            learner.learn(tmp_path / "model", job, 5.0, [])
    finally:
        signal.signal(signal.SIGINT, before)
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
