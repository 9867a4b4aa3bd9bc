"""Edits of a model directory without training, each published as a new version: rename a class, forget a class."""

from dataclasses import replace
from typing import TypeVar

from ssil.classifier.final_fit import with_holdout
from ssil.classifier.image_file import normalized_name
from ssil.classifier.model_directory import ModelDirectory, ModelVersion
from ssil.classifier.name_history import without_suspects
from ssil.classifier.prediction import Classifier
from ssil.classifier.stored_values import without_stored_class
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError, did_you_mean
from ssil.data.image_index import as_utf8
from ssil.learning.snapshot import MAIN, without

Group = TypeVar("Group")


def rename(directory: ModelDirectory, old: str, new: str) -> ModelVersion:
    """Publish a version in which a class has another name."""
    directory.current()  # fails before the lock creates a folder of a misspelt name
    if new != as_utf8(new):
        raise UserError(f"name: {new!r} is not valid UTF-8; give another name")
    with directory.locked():
        before = directory.load()
        known, label, new = before.classifier, _label(before.classifier, old), normalized_name(new)
        names = known.classes.names
        if not new or new in names:
            raise UserError(f"name: {new!r} can't be the new name; give one that no class has")
        renamed = ClassTable((*names[:label], new, *names[label + 1 :]), known.classes.bounds)
        changed = replace(known, snapshot=replace(known.snapshot, classes=renamed))
        return directory.publish_change(before, changed, renamed=[names[label], new])


def forget(directory: ModelDirectory, name: str) -> ModelVersion:
    """Publish a version without a class, and erase the class's images from every version."""
    directory.current()  # fails before the lock creates a folder of a misspelt name
    with directory.locked():
        before = directory.load()
        known, label = before.classifier, _label(before.classifier, name)
        if known.classes.seen <= 2:
            raise UserError(
                f"class: without {name!r} there would be nothing left to tell apart; remove the model instead"
            )
        method = known.settings.configured().method
        smaller = replace(
            known,
            snapshot=without(known.snapshot, label),
            exemplars=without_stored_class(_without_class(known.exemplars, label), method, label),
            holdout=_without_class(known.holdout, label),
            counted=_without_class(known.counted, label),
            validated=known.validated.without_class(label) if known.validated else None,
        )
        changed, forgotten = with_holdout(smaller), known.classes.names[label]
        directory.erase_images(forgotten)  # first: if the process is killed after it, the class can still be forgotten
        past = replace(before, history=tuple(without_suspects(before.history)))
        return directory.publish_change(past, changed, forgotten=forgotten)


def _without_class(groups: tuple[Group, ...], label: int) -> tuple[Group, ...]:
    return tuple(group for number, group in enumerate(groups) if number != label)


def remaining_trace(classifier: Classifier) -> str:
    """Return what remains of a class that is forgotten; nothing if its images counted in its own sums alone."""
    if classifier.settings.configured().method.requirements().training:
        return "the network that was trained with its images stays as it is"
    return classifier.snapshot.scorers[MAIN].trace


def _label(classifier: Classifier, name: str) -> int:
    names = classifier.classes.names
    name = name if name in names else normalized_name(name)
    if name not in names:
        hint = did_you_mean(name, names, f"it knows, for example: {', '.join(names[:3])}", count=3)
        raise UserError(f"class: the model knows no {name!r}; {hint}")
    return names.index(name)
