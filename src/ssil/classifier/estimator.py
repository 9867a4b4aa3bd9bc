"""The classifier by scikit-learn's conventions: `fit`, `partial_fit`, `predict`, for scripts and notebooks."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from inspect import Parameter, Signature
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ssil.classifier.classifier import Classifier, guesses, update
from ssil.classifier.classifier_settings import ModelSettings, make_settings
from ssil.classifier.holdout import Marks
from ssil.classifier.images import Picture, spelt
from ssil.classifier.model_directory import ModelDirectory, ModelVersion
from ssil.core import __version__
from ssil.core.errors import UserError
from ssil.data.decode import UnreadableError, measure
from ssil.data.image_index import content
from ssil.nn.pretrained import read_pretrained

Shown = Sequence[str | Path | Image.Image] | NDArray[np.uint8]
"""Pictures: paths, Pillow's images, or an array (N, H, W) or (N, H, W, C) of bytes."""


def _signature() -> Signature:
    """Return the signature of the constructor: the classifier's settings and `init`, the first two by position."""
    fields = ModelSettings.model_fields
    defaults = {name: info.default or None if name == "options" else info.default for name, info in fields.items()}
    first = ("self", "method", "memory")
    names = [*first, *(name for name in defaults if name not in first), "init"]
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


class IncrementalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that learns new classes call by call: each `partial_fit` is one update.

    Pictures are paths, Pillow's images or an array of bytes; labels are names, or whole numbers. The parameters are the
    settings of `ssil learn`; `init` names first weights, which are read only when learning begins.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        bound = _SIGNATURE.bind(self, *arguments, **settings)
        bound.apply_defaults()
        for name in self._get_param_names():
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined]  # scikit-learn reads the parameters from here

    def fit(self, X: Shown, y: ArrayLike) -> Self:
        """Learn from scratch."""
        self.saved_: tuple[Path | None, ModelVersion | None] = (None, None)
        return self._learn(None, X, y)

    def partial_fit(self, X: Shown, y: ArrayLike, classes: object = None) -> Self:
        """Learn new classes, or more of known ones, and keep the old; `classes` need not be known beforehand."""
        return self._learn(getattr(self, "classifier_", None), X, y)

    def _learn(self, classifier: Classifier | None, X: Shown, y: ArrayLike) -> Self:
        labels = np.asarray(y)
        shown = list(pictures(X))
        if len(shown) != len(labels):
            raise UserError(f"y: {len(labels)} labels for {len(shown)} pictures; give one each")
        arrived = list(zip(shown, map(spelt, map(str, labels)), strict=True))
        init = read_pretrained(self.init) if self.init and not classifier else None
        made = update(classifier, self._settings(), arrived, init=init)
        kind = int if np.issubdtype(labels.dtype, np.integer) else str
        self.classifier_, self.before_, self.after_ = made.classifier, made.before, made.after
        self.classes_ = np.array([kind(name) for name in made.classifier.classes.names])
        return self

    def predict(self, X: Shown) -> NDArray[Any]:
        """The most likely class of each picture."""
        best = self.predict_proba(X).argmax(1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def predict_proba(self, X: Shown) -> NDArray[np.float64]:
        """A probability for each picture (row) and class (column, in the order of `classes_`)."""
        check_is_fitted(self, "classifier_")
        names = self.classifier_.classes.names
        place = {name: column for column, name in enumerate(names)}
        shown = list(pictures(X))
        chances = np.zeros((len(shown), len(names)))
        for row, guess in enumerate(guesses(self.classifier_, shown, top=len(names))):
            for name, chance in guess.ranking:
                chances[row, place[name]] = chance
        return chances

    def save(self, folder: str | Path) -> None:
        """As a model's directory, which `ssil predict` and `ssil learn` take too; a new version, if there is one.

        Where it was loaded from there, or saved there before, that version must still be the current one.
        """
        check_is_fitted(self, "classifier_")
        directory = ModelDirectory(Path(folder), (self.method, self.backbone))
        home, past = getattr(self, "saved_", (None, None))
        before = past if home == directory.folder.resolve() else None
        known = before.classifier.classes.names if before else ()
        entry = {
            "parent": before.number if before else None,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "ssil": __version__,
            "new": [name for name in self.classifier_.classes.names if name not in known],
            "more": [],
        }
        with directory.locked():
            if before and directory.current() != before.number:
                found = f"version {directory.current()} is the current one there, and this is built on {before.number}"
                raise UserError(f"folder: {found}; load that one, or save elsewhere")
            made = directory.publish(self.classifier_, [*(before.history if before else ()), entry])
        self.saved_ = (directory.folder.resolve(), made)

    @classmethod
    def load(cls, folder: str | Path, trusted: Collection[str] = ()) -> Self:
        """The current version of a model's directory; code of your own that it names must be `trusted`."""
        version = ModelDirectory(Path(folder), trusted).load()
        found = version.classifier
        settings = found.settings
        made = cls(**{name: getattr(settings, name) for name in cls._get_param_names() if name != "init"})
        names = found.classes.names
        made.classifier_, made.before_, made.after_ = found, None, None
        made.saved_ = (Path(folder).resolve(), version)
        made.classes_ = np.array([int(name) for name in names] if all(map(str.isdecimal, names)) else names)
        return made

    def _settings(self) -> ModelSettings:
        given = {name: getattr(self, name) for name in self._get_param_names() if name != "init"}
        return make_settings({**given, "options": dict(self.options or {})})

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        title = escape(repr(self))
        if not hasattr(self, "classifier_"):
            return f"<code>{title}</code> (has learnt nothing yet)"
        classifier, marks = self.classifier_, self.after_
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{update}</td><td>{_percent(marks, name)}</td></tr>"
            for name, update in zip(classifier.classes.names, classifier.classes.task_of().tolist(), strict=True)
        )
        head = "<tr><th>class</th><th>update</th><th>right in the quiz</th></tr>"
        return f"<code>{title}</code><table>{head}{rows}</table>"


def _percent(marks: Marks | None, name: str) -> str:
    accuracy = marks.accuracy([name]) if marks else None
    return "-" if accuracy is None else f"{accuracy:.0f} %"


def pictures(shown: Shown) -> Iterator[Picture]:
    """Each in its encoded form; one that can't be one is named by its place."""
    for place, one in enumerate(shown):
        yield _picture(one, place)


def _picture(one: str | Path | Image.Image | NDArray[np.uint8], place: int) -> Picture:
    if isinstance(one, str | Path):
        try:
            data = content(Path(one))
            measure(data)
        except (OSError, UnreadableError) as error:
            raise UserError(f"X: {one} can't be read ({error})") from None
        return Picture.of(str(one), data)
    image = ImageOps.exif_transpose(one) if isinstance(one, Image.Image) else _image(np.asarray(one), place)
    file = BytesIO()
    (image.convert("RGB") if image.mode in {"CMYK", "YCbCr", "LAB", "HSV"} else image).save(file, "PNG")
    return Picture.of(f"picture {place}", file.getvalue())


def _image(pixels: NDArray[Any], place: int) -> Image.Image:
    if pixels.dtype != np.uint8 or pixels.ndim not in {2, 3}:
        raise UserError(f"X: picture {place} is {pixels.dtype} {pixels.shape}; give uint8 (H, W) or (H, W, channels)")
    return Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)
