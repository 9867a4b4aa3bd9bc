"""All that is told of an update, whether it was published or refused: for the terminal, the page and a notebook."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ssil.classifier.accuracy import ClassResult, added
from ssil.classifier.advice.advise import Advice
from ssil.classifier.advice.earlier_suspects import EarlierSuspect
from ssil.classifier.advice.sentences import photos
from ssil.classifier.holdout import HoldoutResult
from ssil.classifier.mending import learn_again, merge_command
from ssil.classifier.model_directory import ModelVersion
from ssil.classifier.prediction import Classifier
from ssil.data.image_index import Remark


@dataclass(frozen=True)
class UpdateReport:
    """An update: the classifier after it, results before and after, advice, and its entry in the history."""

    title: str
    """The model's name."""
    classifier: Classifier
    history: tuple[Mapping[str, Any], ...]
    """Of the model, this update last."""
    after: HoldoutResult | None
    before: HoldoutResult | None = None
    number: int | None = None
    """The version; None if the update was not published."""
    refused: str = ""
    """Why the update was not published; empty if it was."""
    advice: Advice | None = None
    remarks: tuple[Remark, ...] = ()
    """On files that were left out, or look odd."""
    folder: str = ""
    """The model directory, as the user named it; empty if there is none."""
    earlier: tuple[EarlierSuspect, ...] = ()
    """Images that looked wrong in earlier updates and are still learnt as they were."""

    @classmethod
    def of_version(cls, title: str, version: ModelVersion, after: HoldoutResult | None) -> "UpdateReport":
        """Return what is known of a version after its update is done."""
        return cls(title, version.classifier, version.history, after, number=version.number)

    def published(self, version: ModelVersion) -> "UpdateReport":
        """Return the report of an update that has become a version."""
        return replace(self, classifier=version.classifier, history=version.history, number=version.number)

    @property
    def entry(self) -> Mapping[str, Any]:
        """The update's entry in the history."""
        return self.history[-1] if self.history else {}

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in order of arrival."""
        return self.classifier.classes.names

    @property
    def old(self) -> tuple[str, ...]:
        """The classes that were known before the update."""
        new = {*self.entry.get("new", ())}
        return tuple(name for name in self.names if name not in new)

    @property
    def new(self) -> tuple[str, ...]:
        """The classes that the update has brought."""
        return tuple(name for name in self.names if name not in {*self.old})

    def tried(self) -> str:
        """Return on how many photos the accuracy was measured, and that these were not learnt."""
        count = together(self.after, self.names).total
        if not self.after or not self.after.cross_validated:
            return f"{photos(count)} that were kept back, not learnt"
        every = sum(self.classifier.image_counts().values())
        of_all = f"{count:,} of its {photos(every)}" if count < every else f"all its {photos(count)}"
        return f"{of_all}, each left out of learning when tried"

    def again(self) -> tuple[str, ...]:
        """Return the commands that learn the images again, once their folders are mended; none if that is not known."""
        return learn_again(self.folder, self.history[-1:], not self.refused)

    def earlier_again(self) -> tuple[str, ...]:
        """Return the same commands for all updates from the first one with a suspect that is still there."""
        first = min((one.update for one in self.earlier), default=len(self.history))
        return learn_again(self.folder, self.history[first:], not self.refused)

    def merging(self) -> list[str]:
        """Return for each pair of classes that look like one the command that puts them into one folder.

        It is an empty text where that can't be done.
        """
        images, pairs = str(self.entry.get("images") or ""), self.advice.alike if self.advice else ()
        return [merge_command(images, pair.first, pair.second) if images else "" for pair in pairs]

    def lost(self) -> dict[str, tuple[ClassResult, ClassResult]]:
        """Return the old classes of which fewer images are recognised than before, worst first, and both results."""
        losses = [
            (was.percent - now.percent, name, was, now)
            for name, was, now in self._both(self.old)
            if was.percent is not None and now.percent is not None and now.percent < was.percent
        ]
        return {name: (was, now) for _, name, was, now in sorted(losses, key=lambda row: -row[0])}

    def _both(self, names: Iterable[str]) -> Iterator[tuple[str, ClassResult, ClassResult]]:
        for name in names:
            yield name, together(self.before, [name]), together(self.after, [name])


def together(result: HoldoutResult | None, names: Sequence[str]) -> ClassResult:
    """Return the result on the images of some classes together."""
    return added(ClassResult(*result.classes[name]) for name in names if result and name in result.classes)
