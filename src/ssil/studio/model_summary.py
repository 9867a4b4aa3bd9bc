"""What the pages tell of a model: its classes with their photos, its versions, what an update will cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ssil.classifier.model_files import read_image
from ssil.classifier.version_changes import describe_change
from ssil.classifier.versions import COUNTED, EXEMPLARS, HOLDOUT, IMAGES, VersionedDirectory
from ssil.core.errors import UserError
from ssil.studio.learning_jobs import LearningJobs
from ssil.studio.staging import StagedImage, Staging

FEW, GOOD = 5, 20
"""Below FEW photos no photo of a class can be held out to test it; with GOOD a class is usually learnt well."""
START_SECONDS, IMAGE_SECONDS = 6.0, 0.06
"""Of an update: to load the network, and per photo where no earlier update tells. EfficientNet-Lite0 on two cores."""
VERSION_BYTES = 32_000_000
"""Of a first version on disk."""


class KeptImage(NamedTuple):
    """An image that a version keeps."""

    digest: str
    path: Path


class ClassSummary(NamedTuple):
    """A class, its photos, and what a person should know about it."""

    name: str
    known: bool
    learnt: int
    """Photos that were learnt or held out."""
    kept: Sequence[KeptImage]
    """Photos that the model has kept, which can be shown."""
    waiting: Sequence[StagedImage]
    hint: str

    @property
    def total(self) -> int:
        """All photos of the class."""
        return self.learnt + len(self.waiting)


class VersionSummary(NamedTuple):
    """A version, for the history."""

    number: int
    current: bool
    when: str
    change: str
    entry: Mapping[str, Any]


class Estimate(NamedTuple):
    """What the next update will cost, roughly."""

    seconds: float
    megabytes: float


def class_summaries(model: Path) -> list[ClassSummary]:
    """Return the classes that the model knows in order of arrival, then those that wait to be learnt."""
    waiting = Staging(model).by_class()
    known = _known_classes(model)
    names = [*known, *(name for name in waiting if name not in known)]
    counts = {name: (known[name][0] if name in known else 0) + len(waiting.get(name, ())) for name in names}
    largest = max(counts.values(), default=0)
    return [
        ClassSummary(
            name,
            name in known,
            *known.get(name, (0, ())),
            waiting.get(name, ()),
            _hint(counts[name], largest),
        )
        for name in names
    ]


def _known_classes(model: Path) -> dict[str, tuple[int, tuple[KeptImage, ...]]]:
    """Return for each known class how many photos were learnt, and those that are kept."""
    directory = VersionedDirectory(model)
    if not directory.exists:
        return {}
    description = directory.description(directory.current())
    found = {}
    for label, name in enumerate(description["classes"]["names"]):
        entries = [*description[EXEMPLARS][label], *description[HOLDOUT][label]]
        counted = (description.get(COUNTED) or description[EXEMPLARS])[label]
        learnt = {*counted} if description.get(COUNTED) else {entry["sha256"] for entry in counted}
        held = {entry["origin"] or entry["sha256"] for entry in description[HOLDOUT][label]}
        kept = tuple(KeptImage(entry["sha256"], model / entry["file"]) for entry in entries)
        found[name] = (len(learnt | held), kept)
    return found


def _hint(count: int, largest: int) -> str:
    """Return what a class lacks.

    >>> _hint(3, 30), _hint(12, 12), _hint(25, 200), _hint(25, 30)
    ('too few: add 2 or more, so that it can be tested', 'a few more would help', 'far fewer than others', '')
    """
    if count < FEW:
        return f"too few: add {FEW - count} or more, so that it can be tested"
    if count < GOOD:
        return "a few more would help"
    return "far fewer than others" if 4 * count < largest else ""


def find_image(model: Path, jobs: LearningJobs, digest: str) -> bytes | None:
    """Return the content of an image that waits, was learnt last, or is kept by a version; None if there is none."""
    if path := jobs.staging.path(digest) or jobs.learnt_image(digest) or _kept_file(model, digest):
        return read_image(path, digest)
    return None


def _kept_file(model: Path, digest: str) -> Path | None:
    """Return the file of an image that a version keeps."""
    found = (model / IMAGES).glob(f"*/{digest}.*")
    return next((path for path in found if path.suffix != ".safetensors"), None)


def version_summaries(model: Path) -> list[VersionSummary]:
    """Return the versions of a model, the newest first; none if there is no model."""
    directory = VersionedDirectory(model)
    if not directory.exists:
        return []
    current = directory.current_or_none()
    entries = {number: directory.last_entry(number) for number in reversed(directory.numbers())}
    return [
        VersionSummary(
            number,
            number == current,
            str(entry.get("time") or "")[:16].replace("T", " "),
            describe_change(entry),
            entry,
        )
        for number, entry in entries.items()
    ]


def estimate(model: Path, images: int) -> Estimate:
    """Return what it will cost to learn so many photos: by the last update, or by numbers that are usual."""
    directory, per_image, size = VersionedDirectory(model), IMAGE_SECONDS, VERSION_BYTES
    if directory.exists:
        try:
            number = directory.current()
            entry = directory.last_entry(number)
            size = sum(path.stat().st_size for path in directory.version(number).iterdir())
            per_image = float(entry["seconds"]) / float(entry["pictures"])
        except (UserError, OSError, KeyError, TypeError, ValueError, ZeroDivisionError):
            pass
    return Estimate(START_SECONDS + images * per_image, size / 1e6)
