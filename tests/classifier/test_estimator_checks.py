"""scikit-learn's own checks of estimators.

They bring rows of numbers, not images, and skip an estimator that says so in its tags. Here the estimator is given the
rows as images of two lines; what is checked is its contract: parameters, clones, labels, errors, pickles.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from numpy.typing import NDArray
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import Tags, get_tags
from sklearn.utils.estimator_checks import _check_name, check_estimator, estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

from ssil.classifier.estimator import IncrementalClassifier
from ssil.classifier.prediction import Classifier
from tiny_classifiers import settings

QUICK = {"epochs": 8, "later_epochs": 1, "batch": 32}
SMALL = {name: value for name, value in settings(**QUICK).model_dump().items() if name not in {"memory_mb", "options"}}


class RowClassifier(IncrementalClassifier):
    """The estimator for rows of numbers: an image's first line is their size, its second their fraction."""

    def _update(self, classifier: Classifier | None, X: Any, labels: NDArray[Any]) -> None:
        super()._update(classifier, self._images(validate_data(self, X, reset=classifier is None)), labels)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "classifier_")
        return super().predict_proba(self._images(validate_data(self, X, reset=False)))

    def _images(self, rows: NDArray[Any]) -> NDArray[np.uint8]:
        return np.stack([128 + 127 * np.tanh(rows / 3), 255 * (rows % 1)], 1).astype(np.uint8)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        return tags


def checks() -> Iterator[ParameterSet]:
    """Yield scikit-learn's checks under short names."""
    for number, (estimator, check) in enumerate(estimator_checks_generator(RowClassifier(**SMALL))):
        yield pytest.param(estimator, check, id=f"{_check_name(check)}-{number}")


@pytest.mark.parametrize(("estimator", "check"), [*checks()])
def test_contract(estimator: RowClassifier, check: Callable[[RowClassifier], None]) -> None:
    check(estimator)


def test_tags_say_that_images_are_no_rows() -> None:
    tags = get_tags(IncrementalClassifier()).input_tags
    assert (tags.two_d_array, tags.three_d_array, tags.string) == (False, True, True)
    with pytest.warns(SkipTestWarning, match="Can't test estimator IncrementalClassifier"):
        assert [result["status"] for result in check_estimator(IncrementalClassifier(), on_fail="raise")] == ["passed"]
