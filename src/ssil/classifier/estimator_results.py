"""What an estimator tells of its last update: results before and after, advice, and the page in a notebook."""

from html import escape
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ssil.classifier.advice.advise import Advice, advise
from ssil.classifier.holdout import HoldoutResult, evaluate
from ssil.classifier.model_directory import ModelDirectory, ModelVersion
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import Update
from ssil.classifier.update_page import notebook_frame
from ssil.classifier.update_report import UpdateReport


class LastUpdate:
    """The part of an estimator that tells of its last update."""

    classifier_: Classifier
    saved_: tuple[Path | None, ModelVersion | None]
    _last: tuple[Classifier | None, Update] | None
    """The classifier before the last update, and the update; None after loading."""
    _results: tuple[HoldoutResult | None, HoldoutResult | None] | None
    _advice: Advice | None

    def _remember(self, before: Classifier | None, result: Update) -> None:
        """Keep an update to tell of it."""
        self._last, self._results, self._advice = (before, result), (result.before, result.after), None

    @property
    def before_(self) -> HoldoutResult | None:
        """The last update's result before it; None for a first update, or if the version before is not kept."""
        return self._evaluated()[0]

    @property
    def after_(self) -> HoldoutResult | None:
        """The same after it."""
        return self._evaluated()[1]

    def _evaluated(self) -> tuple[HoldoutResult | None, HoldoutResult | None]:
        """Return the results of the last update, which are measured again after the classifier was loaded."""
        check_is_fitted(self, "classifier_")
        if self._results is None:
            parent = self._parent()
            before = evaluate(parent, self.classifier_.holdout) if parent else None
            self._results = before, evaluate(self.classifier_)
        return self._results

    def _parent(self) -> Classifier | None:
        """Return the classifier from which the loaded version was made, if its version is still there."""
        folder, version = self.saved_
        number = version.history[-1].get("parent") if version and version.history else None
        if not folder or number not in ModelDirectory(folder).numbers():
            return None
        settings = self.classifier_.settings
        return ModelDirectory(folder, (settings.method, settings.backbone)).load(number).classifier

    def advise(self) -> Advice | None:
        """Return what would help, by the images of the last update; None after the classifier was loaded or pickled."""
        check_is_fitted(self, "classifier_")
        if self._advice is None and self._last:
            self._advice = advise(*self._last)
        return self._advice

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: not the images of the last update."""
        state: Any = super().__getstate__()  # that of scikit-learn's base class
        return {**state, **({"_last": None} if hasattr(self, "_last") else {})}

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the parameters, and the page of the last update."""
        title = f"<code>{escape(repr(self))}</code>"
        if not hasattr(self, "classifier_"):
            return f"{title} (has learnt nothing yet)"
        names, old = self.classifier_.classes.names, self.classifier_.classes.old
        entry: dict[str, Any] = {"new": [*names[old:]], "more": []}
        if self._last:
            entry |= {"pictures": self._last[1].trained_images}
        version = self.saved_[1] if not self._last else None
        report = UpdateReport(
            "classifier",
            self.classifier_,
            version.history if version else (entry,),
            self.after_,
            self.before_,
            version.number if version else None,
            advice=self.advise(),
        )
        return title + notebook_frame(report)
