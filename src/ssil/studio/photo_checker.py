"""The process that looks at photos before they are learnt, see `marks_before_learning`.

Call it as `python -m ssil.studio.photo_checker MODEL [TRUSTED...]`. It imports torch, so no other module imports it.
"""

import os
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssil.classifier.image_file import ImageFile
from ssil.core.errors import UserError
from ssil.core.files import write_json
from ssil.studio.learner import ProgressLog, watch_for_cancel
from ssil.studio.learning_jobs import CANCEL, RESULT, Job, LearningJobs
from ssil.studio.photo_marks import mark_text
from ssil.studio.staging import Staging

if TYPE_CHECKING:
    from ssil.classifier.advice.before_learning import ImageMark

NICENESS = 10
"""Who learns, or tries a photo, meanwhile goes first."""


def check(model: Path, trusted: Sequence[str]) -> None:
    """Look at all photos that wait, and write their marks; a failure is written too, so that it is not repeated."""
    jobs = LearningJobs(model, trusted)
    threading.Thread(target=watch_for_cancel, args=(jobs.check.folder / CANCEL,), daemon=True).start()
    waiting = [(_image(jobs.staging, one.digest), one.class_name) for one in jobs.staging]
    result: dict[str, Any] = {"photos": [image.digest for image, _ in waiting], "marks": []}
    try:
        result["marks"] = [_facts(one) for one in _marks(model, jobs.check, trusted, waiting)]
    except UserError as error:
        result["problem"] = str(error)
    write_json(jobs.check.folder / RESULT, result)


def _marks(
    model: Path, job: Job, trusted: Sequence[str], waiting: Sequence[tuple[ImageFile, str]]
) -> "list[ImageMark]":
    from ssil.classifier.advice.before_learning import marks_before_learning
    from ssil.classifier.model_directory import ModelDirectory

    directory = ModelDirectory(model, trusted)
    known = directory.load().classifier if directory.exists else None
    return marks_before_learning(known, waiting, ProgressLog(job).learning)


def _image(staging: Staging, digest: str) -> ImageFile:
    return ImageFile(digest, digest, partial(staging.read, digest))


def _facts(mark: "ImageMark") -> dict[str, Any]:
    facts = {"kind": mark.kind, "text": mark_text(mark.kind, mark.other)}
    return {**facts, "digest": mark.digest, "label": mark.label, "other": mark.other}


if __name__ == "__main__":
    os.nice(NICENESS)
    _model, *_trusted = sys.argv[1:]
    try:
        check(Path(_model), _trusted)
    except KeyboardInterrupt:
        sys.exit(1)  # cancelled: an update has begun
