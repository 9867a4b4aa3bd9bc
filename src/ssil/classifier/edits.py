"""Changes to a model that need no training: another name for a class, or no class of that name at all."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ssil.classifier.classifier import Classifier
from ssil.classifier.images import spelt
from ssil.classifier.model_directory import ModelDirectory, ModelVersion
from ssil.core import __version__
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError, did_you_mean
from ssil.learning.snapshot import without


def rename(directory: ModelDirectory, old: str, new: str) -> ModelVersion:
    """A version in which a class has another name."""
    with directory.locked():
        before = directory.load()
        known, label, new = before.classifier, _label(before.classifier, old), spelt(new)
        if not new or new in known.classes.names:
            raise UserError(f"name: {new!r} can't be the new name; give one that no class has")
        names = (*known.classes.names[:label], new, *known.classes.names[label + 1 :])
        snapshot = replace(known.snapshot, classes=ClassTable(names, known.classes.bounds))
        return _publish(directory, before, replace(known, snapshot=snapshot), renamed=[known.classes.names[label], new])


def forget(directory: ModelDirectory, name: str) -> ModelVersion:
    """A version without a class; its pictures are erased, from every version that is kept."""
    with directory.locked():
        before = directory.load()
        known, label = before.classifier, _label(before.classifier, name)
        if known.classes.seen <= 2:
            raise UserError(
                f"class: without {name!r} there would be nothing left to tell apart; remove the model instead"
            )
        exemplars, quiz = (
            tuple(group for c, group in enumerate(groups) if c != label) for groups in (known.exemplars, known.quiz)
        )
        rest = replace(known, snapshot=without(known.snapshot, label), exemplars=exemplars, quiz=quiz)
        directory.erase(known.classes.names[label])  # first, so that a kill leaves a class that can still be forgotten
        return _publish(directory, before, rest, forgotten=known.classes.names[label])


def _label(classifier: Classifier, name: str) -> int:
    names = classifier.classes.names
    name = name if name in names else spelt(name)
    if name not in names:
        hint = did_you_mean(name, names, f"it knows, for example: {', '.join(names[:3])}", count=3)
        raise UserError(f"class: the model knows no {name!r}; {hint}")
    return names.index(name)


def _publish(directory: ModelDirectory, before: ModelVersion, classifier: Classifier, **done: Any) -> ModelVersion:
    entry: Mapping[str, Any] = {
        "parent": before.number,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "ssil": __version__,
        **done,
    }
    return directory.publish(classifier, [*before.history, entry])
