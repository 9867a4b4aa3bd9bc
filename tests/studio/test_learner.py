"""The process that learns for the studio: how it ends is in its log."""

import threading
from pathlib import Path

import pytest

from ssil.studio import learner
from ssil.studio.learning_jobs import Job


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
