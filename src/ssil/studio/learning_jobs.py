"""Updates in processes of their own: started, followed and cancelled by files alone.

A job is a folder, `MODEL/staging/jobs/0001`, with the table of its images, the log that its process appends to, and a
lock that the process holds as long as it lives. So a server that is started anew finds a running job as it is. Whether
the update was published is read from the model's history, the only place that can't be wrong.
"""

import csv
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from ssil.classifier.model_files import check_digest
from ssil.classifier.start_anew import refuse_to_start_anew, remove_only_version
from ssil.classifier.versions import VersionedDirectory
from ssil.core.errors import UserError
from ssil.core.files import LOCK, append_line, create_folder, write_atomic
from ssil.data.image_index import as_utf8
from ssil.studio.staging import StagedImage, Staging

JOBS, TABLE, LOG, RESULT, CANCEL, OUTPUT = "jobs", "images.csv", "log.jsonl", "result.json", "cancel", "output.txt"
CHECK = "check"
"""The folder of the look at photos before they are learnt."""
LEARNT, LEARNT_TABLE = "learnt", "images.learnt.csv"
"""The images that a job has learnt, kept until the next one is published so that it can be taken back; their table."""
KEPT_JOBS = 20
"""Of which the logs are kept."""
ENDS = ("done", "failed", "cancelled", "refused")
"""The events that end a log."""

JobState = Literal["running", "done", "failed", "cancelled", "refused", "stopped"]
"""`refused`: the old classes would lose too much; `stopped`: the process was killed, and nothing was changed."""
MAX_DROP = 5.0
"""Points that the old classes may lose before the user is asked."""


class Job(NamedTuple):
    """An update that was begun."""

    number: int
    folder: Path

    @property
    def table(self) -> Path:
        """The table of its images."""
        return self.folder / TABLE

    def has_made(self, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry of a model's history is that of this job."""
        return entry.get("images") == as_utf8(str(self.table))

    def append(self, event: str, **facts: Any) -> None:
        """Append an event to the log."""
        append_line(self.folder / LOG, json.dumps({"event": event, "time": round(time.time(), 2), **facts}))

    def end(self, event: str, **facts: Any) -> None:
        """Append the last event to the log; if the disk has no room for it, write it in place of the others."""
        try:
            self.append(event, **facts)
        except OSError:
            os.truncate(self.folder / LOG, 0)
            self.append(event, **facts)

    def events(self, after: int = 0) -> list[tuple[int, dict[str, Any]]]:
        """Return the events behind the first `after` ones, numbered from 1; a line that is half written is left out."""
        try:
            lines = (self.folder / LOG).read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        return [(number, json.loads(line)) for number, line in enumerate(lines, 1) if number > after]

    def last_event(self) -> Any:
        """Return the name of the last event; None if there is none."""
        return next((facts["event"] for _, facts in reversed(self.events())), None)

    def result(self) -> dict[str, Any] | None:
        """Return what the update has done to each class; None if it is not known."""
        with suppress(OSError, ValueError):
            return dict(json.loads((self.folder / RESULT).read_bytes()))
        return None

    def is_running(self) -> bool:
        """Return whether its process lives."""
        try:
            with (self.folder / LOCK).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: others may look too
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def cancel(self) -> None:
        """Ask the process to stop; it looks a few times per second."""
        write_atomic(self.folder / CANCEL, b"")


class LearningJobs:
    """The jobs of a model directory."""

    def __init__(self, model: Path, trusted: Sequence[str] = (), max_drop: float = MAX_DROP) -> None:
        self.model, self.staging, self._trusted, self._max_drop = model, Staging(model), trusted, max_drop
        self.check = Job(0, self.staging.folder / CHECK)
        """The look at photos before they are learnt."""
        self.process: subprocess.Popen[bytes] | None = None
        """The process that was started last."""
        self.starting = threading.Lock()
        """Held while a process is started: of two requests at once, the second one sees that of the first."""

    def all(self) -> list[Job]:
        """Return all jobs, the oldest first."""
        folders = [path for path in (self.staging.folder / JOBS).glob("*") if path.name.isdecimal()]
        return sorted(Job(int(path.name), path) for path in folders)

    def find(self, number: int) -> Job | None:
        """Return a job by its number."""
        return next((job for job in self.all() if job.number == number), None)

    def running(self) -> Job | None:
        """Return the job whose process lives, if there is one."""
        return next((job for job in reversed(self.all()) if job.is_running()), None)

    def start(self) -> Job:
        """Begin to learn all images that wait; raise UserError if there are none, or a job is running."""
        with self.starting:
            if self.running():
                raise UserError("learn: an update is running already; wait for its end, or cancel it")
            if not (images := [*self.staging]):
                raise UserError("learn: there are no new photos; add some first")
            return self._started(images)

    def _started(self, images: Sequence[StagedImage]) -> Job:
        self._remove_old()
        self.staging.clear_removed()
        job = self._new_job()
        rows = [(os.path.relpath(image.path, job.folder), image.class_name) for image in images]
        write_atomic(job.table, _table(rows))
        job.append("progress", stage="starting", done=0.0)
        if self.check.is_running():
            self.check.cancel()
        self.process = launch(
            job, "ssil.studio.learner", [str(self.model), str(job.folder), str(self._max_drop), *self._trusted]
        )
        return job

    def state(self, job: Job) -> JobState:
        """Return what became of a job; the images of one that was published are put aside."""
        if job.is_running():
            return "running"
        if self._is_published(job):
            self._put_aside(job)
            return "done"
        last = job.last_event()
        return last if last in ENDS[1:] else "stopped"

    def published_version(self, job: Job) -> int | None:
        """Return the version that a job has made and published; None if there is none, or it was removed since."""
        directory = VersionedDirectory(self.model)
        made = (number for number in reversed(directory.numbers()) if job.has_made(directory.last_entry(number)))
        return next(made, None) if self._is_published(job) else None

    def _is_published(self, job: Job) -> bool:
        """Return whether the version of a job became the current one: a killed process may leave one that never did."""
        last = job.last_event()
        if last == "done" or ((job.folder / LEARNT_TABLE).exists() and last != "cancelled"):
            return True
        directory = VersionedDirectory(self.model)
        with suppress(UserError):
            return any(job.has_made(entry) for entry in directory.description(directory.current())["history"])
        return False

    def awaits_decision(self, job: Job) -> bool:
        """Return whether a job was refused, and its update is kept as the model's candidate."""
        with suppress(UserError, LookupError):
            found = VersionedDirectory(self.model).candidate_description()
            return found is not None and job.has_made(found["history"][-1])
        return False

    def take_back(self, job: Job) -> None:
        """Let the images of a job wait again, after the version before it was made the current one."""
        for path in (job.folder / LEARNT).glob("*/*"):
            self.staging.move(StagedImage("", path), unquote(path.parent.name))

    def can_start_anew(self, job: Job) -> bool:
        """Return whether a job has made the only version, and all its images can wait again."""
        try:
            refuse_to_start_anew(VersionedDirectory(self.model), self.published_version(job) or 0)
        except UserError:
            return False
        return len([*(job.folder / LEARNT).glob("*/*")]) == len(_rows(job.folder / LEARNT_TABLE))

    def start_anew(self, job: Job) -> None:
        """Let the images of the first job wait again, and remove the version that it has made.

        Raises:
            UserError: It is not the only one, or its images are not kept, or another process changes the model.
        """
        directory = VersionedDirectory(self.model)
        with directory.locked():
            if not self.can_start_anew(job):
                raise UserError("version: there is none before this one, and its photos are not kept any more")
            self.take_back(job)
            remove_only_version(directory, self.published_version(job) or 0)
        job.append("cancelled", reason="the update was taken back; its photos wait again")

    def learnt_image(self, digest: str) -> Path | None:
        """Return the file of an image that the last update has learnt; None if there is none."""
        found = (path for job in self.all() for path in (job.folder / LEARNT).glob(f"*/{check_digest(digest)}.*"))
        return next(found, None)

    def suspects(self) -> dict[str, Mapping[str, Any]]:
        """Return what the last update that was published has found odd or hard, by the checksum of the image."""
        last = next((result for job in reversed(self.all()) if (result := job.result())), {})
        return {one["digest"]: one for one in (*last.get("hard", ()), *last.get("suspects", ()))}

    def _put_aside(self, job: Job) -> None:
        """Take the images of a published job out of those that wait."""
        if not job.table.exists():
            return
        for earlier in self.all():
            if earlier.number < job.number:
                shutil.rmtree(earlier.folder / LEARNT, ignore_errors=True)
        with suppress(FileNotFoundError):  # another request was faster
            for row in _rows(job.table):
                if image := self.staging.find(Path(row["path"]).stem):
                    image.path.replace(_created(job.folder / LEARNT / image.path.parent.name) / image.path.name)
            job.table.rename(job.folder / LEARNT_TABLE)

    def _new_job(self) -> Job:
        number = max((job.number for job in self.all()), default=0) + 1
        folder = self.staging.folder / JOBS / f"{number:04d}"
        create_folder(folder)
        return Job(number, folder)

    def _remove_old(self) -> None:
        """Remove what is left of jobs long ago."""
        for job in self.all()[: -KEPT_JOBS + 1]:
            shutil.rmtree(job.folder, ignore_errors=True)


def launch(job: Job, module: str, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a module as a process, which inherits the lock: it is held from now until it ends, however it ends."""
    with (job.folder / LOCK).open("wb") as lock, (job.folder / OUTPUT).open("wb") as output:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[lock.fileno()],
            start_new_session=True,
        )
    threading.Thread(target=process.wait, daemon=True).start()  # so that no dead process is left
    return process


def _rows(table: Path) -> list[dict[str, str]]:
    """Return the rows of a table; none if it is not there (any more)."""
    with suppress(FileNotFoundError), table.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]
    return []


def _created(folder: Path) -> Path:
    create_folder(folder)
    return folder


def _table(rows: Sequence[tuple[str, str]]) -> bytes:
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerows([("path", "label"), *rows])
    return text.getvalue().encode()


def class_rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the classes of a result, those that lost most first, then in order of arrival."""
    return sorted(result["classes"], key=lambda row: min(0.0, row["change"] or 0.0))
