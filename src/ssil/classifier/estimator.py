"""The classifier with scikit-learn's interface: `fit`, `partial_fit`, `predict`, for scripts and notebooks."""

import re
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ssil.classifier.classifier_settings import (
    FIXED,
    ClassifierSettings,
    make_settings,
    with_start_settings,
    with_weights_settings,
)
from ssil.classifier.estimator_labels import are_integers, label_array, named_labels
from ssil.classifier.estimator_results import LastUpdate
from ssil.classifier.examination import examine, read_test_folder
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
FLAG = re.compile(r"--([a-z][a-z-]*[a-z])")
"""An option of the command line in a message."""


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
    """Raise every UserError as an InvalidInputError, with the names of parameters in place of flags."""
    try:
        yield
    except UserError as error:
        raise InvalidInputError(FLAG.sub(_parameter, str(error))) from error


def _parameter(flag: re.Match[str]) -> str:
    """Return the name of the parameter that a flag stands for.

    >>> FLAG.sub(_parameter, "give --later-epochs, or leave out --trust my.py:net")
    'give later_epochs, or leave out trusted my.py:net'
    """
    name = flag[1].replace("-", "_")
    return {"trust": "trusted"}.get(name, name)


class IncrementalClassifier(LastUpdate, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An image classifier that learns new classes call by call: each `partial_fit` is one update.

    Images are paths, Pillow's images or an array of bytes; labels are names, or whole numbers. The parameters are the
    settings of `ssil learn`; `init` names the first weights, which are read when the first update begins, and may
    decide `backbone` and `image_size`. By default these are efficientnet_lite0's, which stay as they are, and no old
    image is needed; `scratch=True` trains a network from random weights.

    Attributes:
        classes_: The labels in ascending order: all whole numbers, or all text. Whole numbers that were given as
            floats or booleans become integers, which compare as equal.
        classifier_: The classifier as a value, with its classes in order of arrival.
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
            labels = label_array(y)
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
            labels = label_array(y)
            if are_integers(labels) != self.integers_:
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
        self._remember(classifier, result)
        self._set_classifier(result.classifier, are_integers(labels))

    def _set_classifier(self, classifier: Classifier, integers: bool) -> None:
        self.classifier_, self.integers_ = classifier, integers
        self.classes_ = np.sort(named_labels(classifier.classes.names, integers))

    def predict(self, X: ImagesLike) -> NDArray[Any]:
        """Return the most likely class of each image, or of a single path or image of Pillow's."""
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

    def test(self, folder: str | Path) -> HoldoutResult:
        """Return the results on a test folder, which has one sub-folder of images per class.

        Images that were learnt are left out.

        Raises:
            InvalidInputError: There is no such folder, or no image in it of a class that is known and was not learnt.
        """
        check_is_fitted(self, "classifier_")
        with _invalid_input():
            found = examine(read_test_folder(Path(folder)), None, self.classifier_).after
            if not found:
                raise UserError(f"folder: {folder} has no image of a known class that was not learnt; give another")
        return found

    @classmethod
    def accept(cls, folder: str | Path, trusted: Collection[str] = ()) -> Self:
        """Publish the update that a model directory's `ssil learn --max-drop` has refused, and load it.

        Raises:
            InvalidInputError: There is no such update, or it was made from another version than the current one.
        """
        with _invalid_input():
            directory = ModelDirectory(Path(folder), trusted)
            directory.current()  # fails before the lock creates a folder of a misspelt name
            with directory.locked():
                directory.accept_candidate()
        return cls.load(folder, trusted)

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
        with _invalid_input():
            version = ModelDirectory(Path(folder), trusted).load()
        classifier, settings = version.classifier, version.classifier.settings
        loaded = cls(**{name: getattr(settings, name) for name in cls._get_param_names() if name not in START})
        loaded._last, loaded._results, loaded._advice = None, None, None
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
