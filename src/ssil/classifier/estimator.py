"""The classifier with scikit-learn's interface: `fit`, `partial_fit`, `predict`, for scripts and notebooks."""

import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d

from ssil.classifier.classifier_settings import (
    FIXED,
    ClassifierSettings,
    make_settings,
    with_start_settings,
    with_weights_settings,
)
from ssil.classifier.holdout import HoldoutResult
from ssil.classifier.image_file import normalized_name
from ssil.classifier.image_inputs import ImagesLike, encoded
from ssil.classifier.model_directory import ModelDirectory, ModelVersion
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.update import NothingNewError, changed_settings, update
from ssil.core.errors import UserError
from ssil.nn.first_weights import find_first_weights, read_first_weights

INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
"""The name of a class whose label is a whole number."""
LARGEST = 10**18
"""Whole numbers up to this size are labels: they fit into 64 bits."""


OPEN = ("options", "backbone", "image_size", "method", "freeze")
"""The parameters whose default is None: no options; what `init` decides, or else `with_start_settings`."""
START = ("init", "scratch")
"""The parameters that are no settings: they say where a new classifier starts."""


def _signature() -> Signature:
    """Return the signature of the constructor: the classifier's settings and `START`, the first two by position.

    Where None stands for a setting, `init` may decide it.
    """
    hidden = ClassifierSettings.names(hidden=True)
    fields = {name: info for name, info in ClassifierSettings.model_fields.items() if name not in hidden}
    defaults = {name: None if name in OPEN else info.default for name, info in fields.items()} | {"scratch": False}
    first = ("self", "method", "memory")
    names = [*first, *(name for name in defaults if name not in {*first, *START}), *START]
    return Signature(
        [
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD if name in first else Parameter.KEYWORD_ONLY,
                default=Parameter.empty if name == "self" else defaults.get(name),
            )
            for name in names
        ]
    )


_SIGNATURE = _signature()


class InvalidInputError(UserError, ValueError):
    """Bad input of an estimator: one line for the user, and what scikit-learn's own tools expect."""


@contextmanager
def _invalid_input() -> Iterator[None]:
    """Raise every UserError as an InvalidInputError."""
    try:
        yield
    except UserError as error:
        raise InvalidInputError(*error.args) from error


class IncrementalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An image classifier that learns new classes call by call: each `partial_fit` is one update.

    Images are paths, Pillow's images or an array of bytes; labels are names, or whole numbers. The parameters are the
    settings of `ssil learn`; `init` names the first weights, which are read when the first update begins, and may
    decide `backbone` and `image_size`. By default these are efficientnet_lite0's, which stay as they are, and no old
    image is needed; `scratch=True` trains a network from random weights.

    Attributes:
        classes_: The labels in ascending order: all whole numbers, or all text. Whole numbers that were given as
            floats or booleans become integers, which compare as equal.
        classifier_: The classifier as a value, with its classes in order of arrival.
        before_: The last update's hold-out result before it; None for a first update.
        after_: The same after it.
        integers_: Whether the labels are whole numbers.
        saved_: The model directory from which the classifier was loaded or to which it was saved last, and the
            version there; None twice if there is none.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        bound = _SIGNATURE.bind(self, *arguments, **settings)
        bound.apply_defaults()
        for name in self._get_param_names():
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined]  # scikit-learn reads the parameters from here

    def fit(self, X: ImagesLike, y: ArrayLike) -> Self:
        """Learn from scratch.

        Raises:
            InvalidInputError: An image, a label or a parameter does not fit; the estimator is as it was before.
        """
        with _invalid_input():
            labels = _label_array(y)
            self._update(None, X, labels)
        self.saved_: tuple[Path | None, ModelVersion | None] = (None, None)
        return self

    def partial_fit(self, X: ImagesLike, y: ArrayLike, classes: object = None) -> Self:
        """Learn new classes, or more images of known ones, and keep the old; `classes` is not used.

        If all images are known already, nothing is learnt, and a warning says so.

        Raises:
            InvalidInputError: A parameter was changed that is fixed since the first update, labels are of another
                type, or an image, a label or a parameter does not fit; the estimator is as it was before.
        """
        if not hasattr(self, "classifier_"):
            return self.fit(X, y)
        with _invalid_input():
            given = self._given()
            changed_settings(self.classifier_.settings, {name: given[name] for name in FIXED if name in given})
            labels = _label_array(y)
            if _are_integers(labels) != self.integers_:
                kinds = ("text", "whole numbers") if self.integers_ else ("whole numbers", "text")
                raise UserError(f"y: the labels are {kinds[0]}, and those before were {kinds[1]}; convert them")
            try:
                self._update(self.classifier_, X, labels)
            except NothingNewError:
                warnings.warn("X: all of these images are known already; nothing was learnt", stacklevel=2)
        return self

    def _update(self, classifier: Classifier | None, X: ImagesLike, labels: NDArray[Any]) -> None:
        images = list(encoded(X))
        if len(images) != len(labels):
            raise UserError(f"y: {len(labels)} labels for {len(images)} images; give one each")
        labelled = list(zip(images, map(normalized_name, map(str, labels)), strict=True))
        given, start = self._given(), None
        if not classifier:
            given, start = with_start_settings(given, self.init, scratch=self.scratch)
        weights = find_first_weights(start) if start else None
        given = with_weights_settings(given, weights)
        kept = {name: getattr(classifier.settings, name) for name in FIXED} if classifier else {}
        init = read_first_weights(weights) if weights else None
        result = update(classifier, make_settings({**given, **kept}), labelled, init=init)
        self.before_, self.after_ = result.before, result.after
        self._set_classifier(result.classifier, _are_integers(labels))

    def _set_classifier(self, classifier: Classifier, integers: bool) -> None:
        self.classifier_, self.integers_ = classifier, integers
        self.classes_ = np.sort(_labels(classifier.classes.names, integers))

    def predict(self, X: ImagesLike) -> NDArray[Any]:
        """Return the most likely class of each image."""
        best = self.predict_proba(X).argmax(1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def is_unknown(self, X: ImagesLike) -> NDArray[np.bool_]:
        """Return for each image whether it is probably of no known class; `predict` names a known one all the same.

        About `unknown_loss` percent of the images of known classes are called unknown too. No image is if fewer than
        100 / `unknown_loss` images could be held out.
        """
        check_is_fitted(self, "classifier_")
        with _invalid_input():
            predictions = predict(self.classifier_, list(encoded(X)), top=1)
            return np.array([prediction.unknown for prediction in predictions], dtype=bool)

    def predict_proba(self, X: ImagesLike) -> NDArray[np.float64]:
        """Return probabilities: one row per image, one column per class in the order of `classes_`."""
        check_is_fitted(self, "classifier_")
        column = {str(label): number for number, label in enumerate(self.classes_)}
        with _invalid_input():
            images = list(encoded(X))
            probabilities = np.zeros((len(images), len(column)))
            for row, prediction in enumerate(predict(self.classifier_, images, top=len(column))):
                for name, probability in prediction.ranking:
                    probabilities[row, column[name]] = probability
        normalized: NDArray[np.float64] = probabilities / probabilities.sum(1, keepdims=True)  # they are of 32 bits
        return normalized

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: images are arrays of three or four dimensions, or lists of paths."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def save(self, folder: str | Path) -> None:
        """Publish the classifier as a new version of a model directory, which `ssil predict` and `ssil learn` read.

        Raises:
            UserError: The directory holds another model; or the classifier was loaded from there or saved there
                before, and its current version is another one by now.
        """
        check_is_fitted(self, "classifier_")
        settings = self.classifier_.settings
        directory = ModelDirectory(Path(folder), (settings.method, settings.backbone))
        home, last = getattr(self, "saved_", (None, None))
        parent = last if home == directory.folder.resolve() else None
        known = parent.classifier.classes.names if parent else ()
        new = [name for name in self.classifier_.classes.names if name not in known]
        with directory.locked():
            if not parent and directory.exists:
                raise UserError(f"folder: {folder} holds another model; save elsewhere, or load that one and update it")
            if parent and directory.current() != parent.number:
                found = f"version {directory.current()} is the current one there, and this is built on {parent.number}"
                raise UserError(f"folder: {found}; load that one, or save elsewhere")
            version = directory.publish_change(
                parent, self.classifier_, new=new, more=[], integer_labels=self.integers_
            )
        self.saved_ = (directory.folder.resolve(), version)

    @classmethod
    def load(cls, folder: str | Path, trusted: Collection[str] = ()) -> Self:
        """Load the current version of a model directory; methods and backbones from files must be `trusted`."""
        version = ModelDirectory(Path(folder), trusted).load()
        classifier, settings = version.classifier, version.classifier.settings
        loaded = cls(**{name: getattr(settings, name) for name in cls._get_param_names() if name not in START})
        loaded.before_, loaded.after_ = None, None
        loaded.saved_ = (Path(folder).resolve(), version)
        stated = [entry["integer_labels"] for entry in version.history if "integer_labels" in entry]
        numeric = all(INTEGER.fullmatch(name) for name in classifier.classes.names)
        loaded._set_classifier(classifier, numeric and (not stated or bool(stated[-1])))
        return loaded

    def _given(self) -> dict[str, Any]:
        """Return the parameters that are settings, without those that are left open."""
        named = {name: getattr(self, name) for name in self._get_param_names() if name not in START}
        return {name: value for name, value in named.items() if value is not None} | {
            "options": dict(self.options or {})
        }

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        title = escape(repr(self))
        if not hasattr(self, "classifier_"):
            return f"<code>{title}</code> (has learnt nothing yet)"
        classes, result = self.classifier_.classes, self.after_
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{task}</td><td>{_percent(result, name)}</td></tr>"
            for name, task in zip(classes.names, classes.task_of().tolist(), strict=True)
        )
        head = "<tr><th>class</th><th>update</th><th>hold-out accuracy</th></tr>"
        return f"<code>{title}</code><table>{head}{rows}</table>"


def _label_array(y: ArrayLike) -> NDArray[Any]:
    """Return labels as an array of integers or of text; raise UserError if they are something else, or mixed."""
    given = np.asarray(column_or_1d(y, warn=True))
    assert_all_finite(given, input_name="y")
    kinds = {_kind(label) for label in given.tolist()}
    if len(kinds) > 1 or "other" in kinds:
        raise UserError("y: labels are continuous, mixed or of another type; give whole numbers, or text")
    return given.astype(np.int64) if kinds == {"integer"} else given.astype(str)


def _kind(label: object) -> str:
    if isinstance(label, bool | int | float) and label == label // 1 and abs(label) < LARGEST:
        return "integer"
    return "text" if isinstance(label, str) else "other"


def _are_integers(labels: NDArray[Any]) -> bool:
    return bool(np.issubdtype(labels.dtype, np.integer))


def _labels(names: Sequence[str], integers: bool) -> NDArray[Any]:
    """Return the names of classes as the labels that were given."""
    return np.array([int(name) for name in names] if integers else names)


def _percent(result: HoldoutResult | None, name: str) -> str:
    accuracy = result.accuracy([name]) if result else None
    return "-" if accuracy is None else f"{accuracy:.0f} %"
