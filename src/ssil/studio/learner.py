"""The process that learns for the studio: the same `publish_update` as `ssil learn`, with a log in place of a terminal.

Call it as `python -m ssil.studio.learner MODEL JOB MAX_DROP [TRUSTED...]`. It imports torch, so no other module imports
it.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssil.classifier.accuracy import wilson
from ssil.core.errors import UserError
from ssil.core.files import write_json
from ssil.studio.disk_errors import disk_problem
from ssil.studio.learning_jobs import CANCEL, OUTPUT, RESULT, Job
from ssil.studio.photo_marks import mark_text

if TYPE_CHECKING:
    from ssil.classifier.advice.advise import Advice, AlikePair, NeededImages
    from ssil.classifier.advice.hard_images import HardImage
    from ssil.classifier.update_report import UpdateReport
    from ssil.learning.task import Progress, ProgressReport

SECONDS = 0.2
"""Between two looks for a request to cancel, and between two lines of the log."""
MOST_EXAMPLES, MOST_HARD = 6, 24
"""Images that are shown of two classes that are confused, and of all that are hard."""
CANCELLED = "the update was cancelled; the model is as it was, and your photos are still here"


class ProgressLog:
    """Appends progress to a job's log, a few times per second at most; raises KeyboardInterrupt if it is cancelled."""

    def __init__(self, job: Job) -> None:
        self.job, self._last, self._epochs = job, 0.0, 0

    def reading(self, done: int, files: int) -> None:
        """Note how many images were read."""
        self._note("reading", done / max(files, 1))

    def learning(self, progress: "Progress", report: "ProgressReport") -> None:
        """Note how much was learnt, and the loss of each epoch that has ended."""
        losses = epoch_losses(progress.losses)
        for number in range(self._epochs, len(losses)):
            self._append("epoch", epoch=number + 1, loss=round(losses[number], 4))
        self._epochs = len(losses)
        self._note("learning", report.done)

    def _note(self, stage: str, done: float) -> None:
        if (self.job.folder / CANCEL).exists():  # seen here before `watch_for_cancel`, or a library has swallowed it
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # or else the signal could come while the end is logged
            raise KeyboardInterrupt
        if time.monotonic() - self._last >= SECONDS or done >= 1:
            self._last = time.monotonic()
            self._append("progress", stage=stage, done=round(done, 4))

    def _append(self, event: str, **facts: Any) -> None:
        """Append to the log unless the disk is full: that is told when the model can't be written."""
        with suppress(OSError):
            self.job.append(event, **facts)


def epoch_losses(losses: Mapping[str, Mapping[str, Sequence[float]]]) -> list[float]:
    """Return the loss of each epoch, all its terms together, of one phase after the other.

    >>> epoch_losses({"main": {"ce": [2.0, 1.0], "kd": [0.5, 0.25]}, "balance": {"ce": [0.125]}})
    [2.5, 1.25, 0.125]
    """
    return [sum(terms) for phase in losses.values() for terms in zip(*phase.values(), strict=False)]


def learn(model: Path, job: Job, max_drop: float, trusted: Sequence[str]) -> None:
    """Carry out an update, and append to the log how it ended."""
    try:
        from ssil.classifier.publish_update import RefusedUpdateError  # imports torch, which must not be interrupted

        threading.Thread(target=watch_for_cancel, args=(job.folder / CANCEL,), daemon=True).start()
        try:
            report = _update(model, job, max_drop, trusted)
            write_json(job.folder / RESULT, _result(report))
            job.end("done", version=report.number)
        except RefusedUpdateError as error:
            write_json(job.folder / RESULT, _result(error.report))
            job.end("refused", reason=error.report.refused)
    except KeyboardInterrupt:
        job.end("cancelled", reason=CANCELLED)
    except UserError as error:
        job.end("failed", reason=str(error))
    except OSError as error:
        job.end("failed", reason=f"{disk_problem(error)}; the model is as it was, and your photos are still here")
        raise
    except BaseException as error:
        where = job.folder / OUTPUT
        job.end("failed", reason=f"something unforeseen happened ({type(error).__name__}); see {where}")
        raise


def _update(model: Path, job: Job, max_drop: float, trusted: Sequence[str]) -> "UpdateReport":
    from ssil.classifier.publish_update import Limits, publish_update
    from ssil.learning.execution import keep_freed_memory

    keep_freed_memory()
    log = ProgressLog(job)
    table, limits = str(job.table), Limits(max_drop)
    return publish_update(
        model, table, {}, limits, trusted=trusted, on_progress=log.reading, observer=log.learning
    ).report


def watch_for_cancel(path: Path) -> None:
    """Interrupt the main thread once a file exists."""
    while not path.exists():
        time.sleep(SECONDS)
    os.kill(os.getpid(), signal.SIGINT)


def _result(report: "UpdateReport") -> dict[str, Any]:
    """Return what the page of an update shows."""
    before = report.before.classes if report.before else {}
    after = report.after.classes if report.after else {}
    facts = ("parent", "seconds", "pictures", "old_before", "old_after", "new_after", "estimate")
    return {
        "version": report.number,
        **{name: report.entry.get(name) for name in facts},
        "classes": [_row(name, name in report.old, before, after) for name in report.names],
        "remarks": [f"{remark.path}: {remark.reason}" for remark in report.remarks],
        **(_advice(report.advice) if report.advice else {}),
    }


def _advice(advice: "Advice") -> dict[str, Any]:
    from ssil.classifier.advice.sentences import TITLES, about_confused  # imports torch

    return {
        "suspects": [
            {
                "digest": one.image.original_digest,
                "kind": TITLES[one.kind],
                "text": mark_text(one.kind, one.other),
                "label": one.label,
                "other": one.other,
            }
            for one in advice.suspects
        ],
        "hard": [*map(_about_hard, advice.hard[:MOST_HARD])],
        "confused": [
            {"text": about_confused(pair), "digests": [image.digest for image in pair.images[:MOST_EXAMPLES]]}
            for pair in advice.confused
        ],
        "steps": [*map(_about_alike, advice.alike), *map(_about_needed, advice.needed)],
    }


def _about_hard(one: "HardImage") -> dict[str, Any]:
    wrong = one.taken_for != one.label
    return {
        "digest": one.image.original_digest,
        "kind": "hard",
        "text": f"taken for {one.taken_for}" if wrong else "only just recognised",
        "label": one.label,
        "other": one.taken_for if wrong else "",
        "confidence": round(one.confidence, 4),
    }


def _about_alike(pair: "AlikePair") -> str:
    return (
        f"{pair.first} and {pair.second} look like one class under two names ({pair.nearer} of their {pair.images} "
        "photos look more like the other): if they are one, put their photos into one class."
    )


def _about_needed(needed: "NeededImages") -> str:
    few = f"there are only {needed.images}" if needed.images else "none was learnt"
    why = f"{needed.correct} of {needed.total} were recognised" if needed.total else few
    return f"Add photos of {needed.label}: {why}."


def _row(
    name: str, known: bool, before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> dict[str, Any]:
    was, now = _numbers(before.get(name) if known else None), _numbers(after.get(name))
    change = now["percent"] - was["percent"] if was and now else None
    return {"name": name, "known": known, "before": was, "after": now, "change": change}


def _numbers(result: tuple[int, int] | None) -> dict[str, Any] | None:
    if not result or not result[1]:
        return None
    correct, total = result
    low, high = wilson(correct / total, total)
    return {"correct": correct, "total": total, "percent": 100 * correct / total, "low": low, "high": high}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts a server with & ignores it
    _model, _folder, _max_drop, *_trusted = sys.argv[1:]
    learn(Path(_model), Job(int(Path(_folder).name), Path(_folder)), float(_max_drop), _trusted)
