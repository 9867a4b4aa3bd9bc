"""Marks on photos that wait: made by a process of its own, which looks at them before they are learnt."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ssil.core.files import create_folder
from ssil.studio.learning_jobs import CANCEL, LOG, LearningJobs, launch

TEXTS: Mapping[str, str] = {
    "learnt": "learnt already",
    "same": "the same photo is in {}",
    "nearly same": "almost the same photo is in {}",
    "wrong class": "looks like {}",
    "blurred": "blurred",
    "dark": "very dark",
    "far": "unlike the others",
    "double": "almost the same as another",
}
"""What is told of a photo, by the kind of its mark; in the place of braces the other class."""


def mark_text(kind: str, other: str) -> str:
    """Return a mark in a few words.

    >>> mark_text("wrong class", "lime"), mark_text("dark", "")
    ('looks like lime', 'very dark')
    """
    return TEXTS[kind].format(other)


class CheckState(NamedTuple):
    """How far the look at photos is."""

    running: bool
    done: float
    """The share of photos that were looked at."""
    marked: int
    """Photos that wait and have a mark."""


class PhotoMarks:
    """The marks of a model's staging area, and the process that makes them."""

    def __init__(self, jobs: LearningJobs, trusted: Sequence[str] = ()) -> None:
        self._jobs, self._trusted, self._check = jobs, trusted, jobs.check

    def start(self) -> None:
        """Look at the photos, if there are some that were not looked at, and nothing else is computed."""
        with self._jobs.starting:
            if self._check.is_running() or self._jobs.running() or not self._is_needed():
                return
            create_folder(self._check.folder)
            for name in (CANCEL, LOG):
                (self._check.folder / name).unlink(missing_ok=True)
            launch(self._check, "ssil.studio.photo_checker", [str(self._jobs.model), *self._trusted])

    def stop(self) -> None:
        """End the look, if it runs: what it has not found is found when the photos are shown again."""
        if self._check.is_running():
            self._check.cancel()

    def state(self) -> CheckState:
        """Return how far the look is."""
        running = self._check.is_running()  # before the log is read
        done = [facts["done"] for _, facts in self._check.events() if "done" in facts]
        return CheckState(running, done[-1] if done else 0.0, len(self.by_digest()))

    def by_digest(self) -> dict[str, Mapping[str, Any]]:
        """Return the marks of photos that wait in the class in which they were marked, by checksum.

        The marks are those of the last look and, where it has not looked, what the last update has found.
        """
        found = {**self._jobs.suspects(), **{one["digest"]: one for one in self._result().get("marks", ())}}
        waiting = {image.digest: image.class_name for image in self._jobs.staging}
        return {digest: one for digest, one in found.items() if waiting.get(digest) == one["label"]}

    def _result(self) -> dict[str, Any]:
        return self._check.result() or {}

    def _is_needed(self) -> bool:
        seen = {*self._result().get("photos", ())}
        return any(image.digest not in seen for image in self._jobs.staging)
