"""All that is told of an update, whether it was published or refused: for the terminal, the page and a notebook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ssil.classifier.accuracy import ClassResult, added
from ssil.classifier.advice.advise import Advice
from ssil.classifier.advice.earlier_suspects import EarlierSuspect
from ssil.classifier.advice.sentences import photos
from ssil.classifier.holdout import HoldoutResult
from ssil.classifier.lost_classes import LostClass, lost_classes
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

    def to_mend(self) -> bool:
        """Return whether folders are to be mended, after which they should be learnt again."""
        found = self.advice and (self.advice.suspects or self.advice.alike)
        return bool(found or self.earlier or any(one.left_out for one in self.remarks))

    def again(self) -> tuple[str, ...]:
        """Return the commands that learn the folders again, once they are mended; none if these are not known.

        They begin with the first update that has a suspect which is still there, if its folder and later ones are.
        """
        first = min((one.update for one in self.earlier), default=len(self.history) - 1)
        both = (learn_again(self.folder, self.history[at:], not self.refused) for at in (first, -1))
        return next(filter(None, both), ())

    def retold(self) -> str:
        """Return why the accuracy before is not what was told of that version; nothing if it is, in whole points."""
        past, now = self.history[-2] if len(self.history) > 1 else {}, together(self.before, self.old)
        told, tried = past.get("accuracy"), past.get("tried")
        if not isinstance(told, int | float) or not isinstance(tried, int) or now.percent is None:
            return ""
        if round(told) == round(now.percent):
            return ""
        return f"the {told:.0f} told of the version before was on {photos(tried)}, this is on {now.total:,}"

    def merging(self) -> list[str]:
        """Return for each pair of classes that look like one the command that puts them into one folder.

        It is an empty text where that can't be done.
        """
        images, pairs = str(self.entry.get("images") or ""), self.advice.alike if self.advice else ()
        return [merge_command(images, pair.first, pair.second) if images else "" for pair in pairs]

    def lost(self) -> list[LostClass]:
        """Return the old classes that have lost photos, worst first, with the class that takes them now."""
        return lost_classes(self.before, self.after, self.advice, self.new)


def together(result: HoldoutResult | None, names: Sequence[str]) -> ClassResult:
    """Return the result on the images of some classes together."""
    return added(ClassResult(*result.classes[name]) for name in names if result and name in result.classes)
