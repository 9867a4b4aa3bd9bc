"""Updates of the studio that never end by themselves."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ssil.studio.learning_jobs import Job


@contextmanager
def running_job(model: Path, number: int) -> Iterator[Job]:
    """A job whose process, here this one, holds its lock."""
    job = Job(number, model / "staging" / "jobs" / f"{number:04d}")
    job.folder.mkdir(parents=True)
    with (job.folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        job.append("progress", stage="reading", done=0.0)
        yield job
