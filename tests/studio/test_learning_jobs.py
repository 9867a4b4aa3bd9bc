"""Updates in processes of their own: published, cancelled, killed; the photos are kept until they are learnt."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from served import FIRST, two_versions
from ssil.classifier.versions import VersionedDirectory
from ssil.cli import main
from ssil.core.errors import UserError
from ssil.studio.learning_jobs import Job, LearningJobs
from ssil.studio.staging import Staging
from tiny_classifiers import png, settings

SECONDS = 120


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_versions(tmp_path_factory.mktemp("jobs") / "model").folder


@pytest.fixture
def jobs(model: Path, tmp_path: Path) -> LearningJobs:
    shutil.copytree(model, tmp_path / "model")
    staging = Staging(tmp_path / "model")
    for name in ("fly", "gnu/emu"):
        for copy in range(6):
            staging.add(name, png(name, copy))
    return LearningJobs(tmp_path / "model", [settings().backbone])


def waited(jobs: LearningJobs, job: Job, until: Callable[[], bool] | None = None) -> str:
    end = time.monotonic() + SECONDS
    while job.is_running() and not (until and until()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return jobs.state(job)


def kill(jobs: LearningJobs) -> None:
    assert jobs.process
    with suppress(ProcessLookupError):
        os.kill(jobs.process.pid, signal.SIGKILL)


def names(jobs: LearningJobs) -> list[str]:
    directory = VersionedDirectory(jobs.model)
    return list(directory.description(directory.current())["classes"]["names"])


def test_an_update(jobs: LearningJobs) -> None:
    job = jobs.start()
    with pytest.raises(UserError, match="running already"):
        jobs.start()
    assert waited(jobs, job) == "done", [*job.events(), (job.folder / "output.txt").read_text()]
    assert names(jobs) == [*FIRST, "fly", "gnu/emu"]
    assert [*jobs.staging] == []
    assert jobs.published_version(job) == 3
    events = job.events()
    assert [number for number, _ in events] == [*range(1, len(events) + 1)]
    assert events[-1][1]["event"] == "done"
    assert job.events(len(events) - 1) == events[-1:]
    result = job.result()
    assert result
    assert [(row["name"], row["known"]) for row in result["classes"]][2:4] == [("cat", True), ("fly", False)]
    with pytest.raises(UserError, match="no new photos"):
        jobs.start()


def test_a_cancelled_update_changes_nothing(jobs: LearningJobs) -> None:
    job = jobs.start()
    job.cancel()
    assert waited(jobs, job) == "cancelled"
    assert names(jobs) == [*FIRST]
    assert len([*jobs.staging]) == 12


def test_an_update_can_be_cancelled_where_the_server_ignores_interrupts(jobs: LearningJobs) -> None:
    """As one does that a shell has started with `&`; its processes inherit that."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        job = jobs.start()
    finally:
        signal.signal(signal.SIGINT, before)
    job.cancel()
    assert waited(jobs, job) == "cancelled"
    assert names(jobs) == [*FIRST]


def test_a_killed_update_changes_nothing_and_can_be_repeated(jobs: LearningJobs) -> None:
    job = jobs.start()
    kill(jobs)
    assert waited(jobs, job) == "stopped"
    assert names(jobs) == [*FIRST]
    assert len([*jobs.staging]) == 12


def test_a_published_update_whose_process_was_killed_is_done(jobs: LearningJobs) -> None:
    """The history tells of it, though the log does not; its photos wait no longer."""
    job = jobs.start()
    waited(jobs, job, until=lambda: jobs.published_version(job) is not None)
    kill(jobs)
    assert waited(jobs, job) == "done"
    assert [*jobs.staging] == []


def test_a_version_that_was_written_but_not_published_is_none(jobs: LearningJobs) -> None:
    """As a kill between the two leaves it: the photos wait on, also when the next update was published."""
    first = jobs.start()
    assert waited(jobs, first) == "done"
    jobs.take_back(first)
    (first.folder / "log.jsonl").unlink()
    (first.folder / "images.learnt.csv").unlink()
    VersionedDirectory(jobs.model).point_to(2)
    assert jobs.state(first) == "stopped"
    assert jobs.published_version(first) is None
    assert len([*jobs.staging]) == 12
    assert waited(jobs, jobs.start()) == "done"
    assert jobs.state(first) == "stopped"


def test_an_update_stays_done_when_its_version_is_removed(jobs: LearningJobs) -> None:
    job = jobs.start()
    assert waited(jobs, job) == "done"
    directory = VersionedDirectory(jobs.model)
    directory.point_to(2)
    shutil.rmtree(directory.version(3))
    assert jobs.state(job) == "done"
    assert jobs.published_version(job) is None


def test_of_two_requests_at_once_one_starts_an_update(jobs: LearningJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)

    def wait_for_the_other() -> None:
        with suppress(threading.BrokenBarrierError):
            both.wait(1)

    monkeypatch.setattr(jobs, "_remove_old", wait_for_the_other)  # after the look whether an update is running
    with ThreadPoolExecutor(2) as pool:
        replies = [pool.submit(jobs.start) for _ in range(2)]
        problems = [reply.exception() for reply in replies]
    assert [str(problem).partition(":")[0] for problem in problems if problem] == ["learn"]
    job = next(reply.result() for reply in replies if not reply.exception())
    job.cancel()
    assert waited(jobs, job) == "cancelled"


def test_an_update_that_may_cost_too_much_waits_for_a_decision(jobs: LearningJobs) -> None:
    """Without hold-out images nobody can tell what the old classes lose, which is refused whatever they lose."""
    shutil.rmtree(jobs.model / "pictures")
    job = jobs.start()
    assert waited(jobs, job) == "refused", job.events()
    assert "the model is as it was" in job.events()[-1][1]["reason"]
    assert names(jobs) == [*FIRST]
    assert len([*jobs.staging]) == 12
    assert jobs.awaits_decision(job)
    assert job.result()
    assert main(["accept", str(jobs.model), "--trust", settings().backbone]) == 0
    assert jobs.state(job) == "done"
    assert not jobs.awaits_decision(job)
    assert [*jobs.staging] == []


def test_a_bad_update_says_why(tmp_path: Path) -> None:
    staging = Staging(tmp_path / "model")
    staging.add("ant", png("ant", 1))
    jobs = LearningJobs(tmp_path / "model")
    job = jobs.start()
    assert waited(jobs, job) == "failed"
    assert "only one class" in job.events()[-1][1]["reason"]
    assert len([*staging]) == 1


def test_the_photos_of_the_last_update_are_kept_until_another_is_published(jobs: LearningJobs) -> None:
    first = jobs.start()
    assert waited(jobs, first) == "done"
    jobs.staging.add("fly", png("fly", 50))
    later = jobs.start()
    later.cancel()
    assert waited(jobs, later) == "cancelled"
    jobs.take_back(first)
    assert len([*jobs.staging]) == 13
