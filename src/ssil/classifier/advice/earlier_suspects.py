"""Images that looked wrong in an earlier update, and that the model still has as they were."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ssil.classifier.advice.advise import KINDS, Advice
from ssil.classifier.advice.learnt_before import learnt_classes
from ssil.classifier.advice.sentences import about_suspect
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.prediction import Classifier
from ssil.data.image_index import read_image_file

MOST = 30
"""Suspects of an update that its entry in the history keeps."""
KEYS = ("digest", "class", "kind", "image", "what_to_do")
"""What it keeps of each."""


class EarlierSuspect(NamedTuple):
    """An image that looked wrong in an earlier update."""

    update: int
    """The position of the update's entry in the history, from 0."""
    image: str
    """The image's name."""
    sentence: str
    """What was said of it."""
    digest: str = ""
    """The image's checksum."""

    def picture(self, classifier: Classifier) -> ImageFile | None:
        """Return the image: the file if it is as it was, or else the copy that a classifier keeps, if any."""
        with suppress(OSError):
            found = ImageFile.from_bytes(self.image, read_image_file(Path(self.image)))
            if found.digest == self.digest:
                return found
        groups = (*classifier.exemplars, *classifier.holdout)
        return next((one for group in groups for one in group if one.original_digest == self.digest), None)


def suspects_to_remember(advice: Advice) -> list[dict[str, str]]:
    """Return what the history keeps of an update's suspects."""
    found = (
        (one.image.original_digest, one.label, one.kind, one.image.name, about_suspect(one)) for one in advice.suspects
    )
    return [dict(zip(KEYS, one, strict=True)) for one in found][:MOST]


def earlier_suspects(
    history: Sequence[Mapping[str, Any]], classifier: Classifier, arrived: LabelledImages
) -> list[EarlierSuspect]:
    """Return the suspects of earlier updates that a classifier after an update still has in the same class.

    An image that now arrives in another class, or whose class was forgotten or renamed, is left out.

    Args:
        history: The entries before the update.
        classifier: The classifier after it.
        arrived: What the update has brought.
    """
    labels = learnt_classes(classifier) | {image.original_digest: name for image, name in arrived}
    found = (
        _suspect(update, entry, one)
        for update, entry in enumerate(history)
        for one in _kept(entry)
        if labels.get(one["digest"]) == one["class"]
    )
    return [*{one.image: one for one in found}.values()]


def _suspect(update: int, entry: Mapping[str, Any], one: Mapping[str, str]) -> EarlierSuspect:
    """Return what an entry says of a suspect; with the folder that was learnt, which older entries leave out."""
    name, folder = one["image"], entry.get("images")
    path = str(Path(folder) / name) if isinstance(folder, str) and not name.startswith(folder) else name
    shown = path if Path(path).is_file() else name
    return EarlierSuspect(update, shown, one["what_to_do"].replace(name, shown, 1), one["digest"])


def _kept(entry: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the suspects in an entry of the history, without what is not as it should be."""
    for one in entry.get("suspects") or ():
        if isinstance(one, dict) and all(isinstance(one.get(key), str) for key in KEYS) and one["kind"] in KINDS:
            yield one
