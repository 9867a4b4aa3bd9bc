"""scikit-learn's conventions."""

import pickle
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from ssil.classifier.estimator import IncrementalClassifier
from ssil.classifier.model_directory import ModelDirectory
from ssil.core.errors import UserError
from tiny_classifiers import folder, labelled_images, settings

SMALL = {name: value for name, value in settings().model_dump().items() if name not in {"memory_mb", "options"}}


def arrays(names: list[str], count: int = 10, first: int = 0) -> tuple[NDArray[np.uint8], list[str]]:
    shown = labelled_images(names, count, first)
    return np.stack([np.asarray(Image.open(BytesIO(one.read()))) for one, _ in shown]), [name for _, name in shown]


def made() -> IncrementalClassifier:
    return IncrementalClassifier(**SMALL)


def quickly_made() -> IncrementalClassifier:
    return IncrementalClassifier(**SMALL | {"epochs": 1, "later_epochs": 1})


def test_call_by_call() -> None:
    model = made().partial_fit(*arrays(["cat", "ant", "bee"]))
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    model.partial_fit(*arrays(["dog", "eel"]))
    assert model.classes_.tolist() == ["ant", "bee", "cat", "dog", "eel"]
    X, y = arrays(["ant", "bee", "cat", "dog", "eel"], 4, 100)
    chances = model.predict_proba(X)
    assert chances.shape == (20, 5)
    assert np.allclose(chances.sum(1), 1)
    assert (model.predict(X) == model.classes_[chances.argmax(1)]).all()
    assert model.score(X, y) > 0.6
    assert model.fit(*arrays(["ant", "bee"])).classes_.tolist() == ["ant", "bee"]


def test_paths_images_and_arrays_are_the_same_images(tmp_path: Path) -> None:
    paths = sorted(folder(tmp_path, ["ant", "bee"]).rglob("*.png"))
    labels = [path.parent.name for path in paths]
    images = [Image.open(path) for path in paths]
    stacked = np.stack([np.asarray(image) for image in images])
    model = made().fit(paths, labels)
    assert np.array_equal(model.predict_proba(list(map(str, paths))), model.predict_proba(images))
    assert np.array_equal(model.predict_proba(images), model.predict_proba(stacked))
    assert np.array_equal(model.predict_proba(stacked), model.predict_proba(stacked[..., None]))


def test_whole_numbers_as_labels() -> None:
    X, y = arrays(["ant", "bee"])
    numbers = [{"ant": 7, "bee": 12}[name] for name in y]
    model = made().fit(X, numbers)
    assert set(model.predict(X).tolist()) <= {7, 12}
    assert model.score(X, numbers) > 0.9


def test_parameters_are_scikit_learns() -> None:
    model = IncrementalClassifier("ft", memory=9, epochs=2)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(memory=8).memory == 8
    assert "memory=9" in repr(model)
    with pytest.raises(NotFittedError):
        copy.predict(np.zeros((1, 8, 8), np.uint8))


@pytest.mark.slow
def test_cross_validation() -> None:
    X, y = arrays(["ant", "bee", "cat"], 8)
    assert cross_val_score(made(), X, y, cv=2).mean() > 0.7


def test_saved_and_loaded(tmp_path: Path) -> None:
    X, y = arrays(["ant", "bee"])
    model = IncrementalClassifier(**SMALL | {"backbone": "resnet14", "epochs": 1}).fit(X, y)
    model.save(tmp_path / "model")
    back = IncrementalClassifier.load(tmp_path / "model")
    assert np.array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.get_params() | {"options": None} == model.get_params() | {"options": None}
    back.partial_fit(*arrays(["cat"]))
    back.save(tmp_path / "model")
    entries = ModelDirectory(tmp_path / "model").load().history
    assert [(entry["parent"], entry["new"]) for entry in entries] == [(None, ["ant", "bee"]), (1, ["cat"])]
    with pytest.raises(UserError, match="version 2 is the current one there, and this is built on 1"):
        model.save(tmp_path / "model")
    model.save(tmp_path / "elsewhere")
    assert IncrementalClassifier.load(tmp_path / "model").classes_.tolist() == ["ant", "bee", "cat"]


def test_exif_rotation_and_cmyk_images(tmp_path: Path) -> None:
    X, y = arrays(["ant", "bee"])
    model = made().fit(X, y)
    turned = Image.fromarray(np.rot90(X[0]).copy()).convert("RGB")
    exif = turned.getexif()
    exif[0x0112] = 6  # to be turned by a quarter to be upright
    turned.save(tmp_path / "turned.png", exif=exif)
    opened = Image.open(tmp_path / "turned.png")
    assert np.allclose(model.predict_proba([opened]), model.predict_proba([tmp_path / "turned.png"]))
    assert model.predict_proba([turned.convert("CMYK")]).shape == (1, 2)


def test_what_a_notebook_shows() -> None:
    assert "has learnt nothing yet" in made()._repr_html_()
    shown = made().fit(*arrays(["ant", "<b>"]))._repr_html_()
    assert "&amp;lt;b&amp;gt;" in shown
    assert "<b>" not in shown
    assert "photos like these are recognised" in shown


def test_a_single_path_or_image_is_predicted(tmp_path: Path) -> None:
    X, y = arrays(["ant", "bee"])
    model, image = made().fit(X, y), Image.fromarray(X[0])
    image.save(tmp_path / "a.png")
    expected = model.predict(X[:1]).tolist()
    for single in (tmp_path / "a.png", str(tmp_path / "a.png"), image):
        assert model.predict(single).tolist() == expected
        assert model.predict_proba(single).shape == (1, 2)


def test_results_survive_loading_and_advice_does_not(tmp_path: Path) -> None:
    model = made().fit(*arrays(["ant", "bee"]))
    model.save(tmp_path / "model")
    model.partial_fit(*arrays(["cat"])).save(tmp_path / "model")
    loaded = IncrementalClassifier.load(tmp_path / "model", trusted=[model.backbone])
    for kept, own in ((loaded.after_, model.after_), (loaded.before_, model.before_)):
        assert kept
        assert own
        assert kept.classes == own.classes
    assert "version 2" in loaded._repr_html_()
    assert loaded.advise() is None
    advice = model.advise()
    assert advice
    assert advice.examined > 0
    assert model.advise() is advice
    again = pickle.loads(pickle.dumps(model))
    assert (again.advise().examined, again.after_) == (advice.examined, model.after_)
    assert again._last is None


def test_messages_speak_of_parameters() -> None:
    with pytest.raises(UserError, match="leave out init, freeze and tune, or scratch"):
        IncrementalClassifier(scratch=True, freeze=True).fit(*arrays(["ant", "bee"]))


def test_bad_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="y: 1 labels for 20 images"):
        made().fit(arrays(["ant", "bee"])[0], ["ant"])
    with pytest.raises(UserError, match="image 0 is float64"):
        made().fit(np.zeros((2, 8, 8)), ["ant", "bee"])  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"none\.png can't be read"):
        made().fit([tmp_path / "none.png"], ["ant"])


def test_fixed_parameters_can_not_change() -> None:
    model = quickly_made().fit(*arrays(["ant", "bee"]))
    for name, value in {"image_size": 16, "backbone": "resnet14", "method": "ft", "grey": False}.items():
        own = model.get_params()[name]
        model.set_params(**{name: value})
        with pytest.raises(UserError, match=rf"{name}: the model was made with .*, which can't be changed"):
            model.partial_fit(*arrays(["cat"]))
        model.set_params(**{name: own})
    model.set_params(image_size=16)
    assert model.fit(*arrays(["cat", "dog"])).classes_.tolist() == ["cat", "dog"]


def test_labels_keep_their_type(tmp_path: Path) -> None:
    images, _ = arrays(["ant", "bee"])
    for label in (1, "1"):
        labels = [label] * (len(images) // 2) + [type(label)(20)] * (len(images) // 2)
        model = quickly_made().fit(images, labels)
        assert model.classes_.tolist() == [label, type(label)(20)]
        model.save(tmp_path / type(label).__name__)
        back = IncrementalClassifier.load(tmp_path / type(label).__name__, trusted=[model.backbone])
        assert back.classes_.tolist() == [label, type(label)(20)]
        other = "x" if isinstance(label, int) else 7
        with pytest.raises(UserError, match=r"y: the labels are .*, and those before were .*; convert them"):
            back.partial_fit(images[:4], [other] * 4)


def test_another_model_is_not_replaced(tmp_path: Path) -> None:
    images = arrays(["ant", "bee"])
    quickly_made().fit(*images).save(tmp_path / "model")
    with pytest.raises(UserError, match="holds another model; save elsewhere"):
        quickly_made().fit(*images).save(tmp_path / "model")
    assert ModelDirectory(tmp_path / "model").numbers() == [1]


def test_pickled() -> None:
    model = quickly_made().fit(*arrays(["ant", "bee"]))
    copy = pickle.loads(pickle.dumps(model))
    images, _ = arrays(["ant"])
    assert (copy.predict_proba(images) == model.predict_proba(images)).all()
    assert copy.partial_fit(*arrays(["cat"])).classes_.tolist() == ["ant", "bee", "cat"]


def test_columns_are_in_the_order_that_metrics_expect() -> None:
    images, names = arrays(["ant", "bee", "cat"])
    numbers = [{"ant": 10, "bee": 9, "cat": -1}[name] for name in names]
    model = quickly_made().fit(images[:20], numbers[:20]).partial_fit(images[20:], numbers[20:])
    assert model.classifier_.classes.names == ("10", "9", "-1")
    assert model.classes_.tolist() == [-1, 9, 10]
    chances = model.predict_proba(images)
    own = [float(row[model.classes_.tolist().index(label)]) for row, label in zip(chances, numbers, strict=True)]
    assert log_loss(numbers, chances) == pytest.approx(-np.log(own).mean())


@pytest.mark.parametrize("labels", [[False, True], [0.0, 1.0], np.array([0, 1], dtype=object), np.array([[0], [1]])])
def test_whole_numbers_in_other_guises(labels: ArrayLike) -> None:
    images, _ = arrays(["ant", "bee"])
    with pytest.warns() if np.ndim(labels) == 2 else nullcontext():  # a column is no list, and scikit-learn says so
        model = quickly_made().fit(images, np.repeat(np.asarray(labels), 10, axis=0))
    assert model.classes_.dtype == np.int64
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (np.array([0, "ant"], dtype=object), "mixed or of another type"),
        ([b"ant", b"bee"], "mixed or of another type"),
        ([0, 2**63], "mixed or of another type"),
        ([0.5, 1.0], "continuous"),
        ([0.0, np.nan], "y contains NaN"),
        ([0, 0], "only one class"),
    ],
)
def test_labels_that_are_refused_change_nothing(labels: ArrayLike, reason: str) -> None:
    images, names = arrays(["ant", "bee"])
    model = quickly_made().fit(images, names)
    before = model.predict_proba(images)
    with pytest.raises(ValueError, match=reason):
        model.fit(images, np.repeat(np.asarray(labels), 10))
    assert (model.predict_proba(images) == before).all()
    assert model.classes_.tolist() == ["ant", "bee"]
    assert not model.integers_


def test_nothing_new() -> None:
    images = arrays(["ant", "bee"])
    model = quickly_made().fit(*images)
    before = model.classifier_
    with pytest.warns(UserWarning, match="all of these images are known already"):
        model.partial_fit(*images)
    assert model.classifier_ is before
