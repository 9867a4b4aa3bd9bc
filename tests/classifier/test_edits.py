"""Classes that get another name, or are forgotten."""

from pathlib import Path

import pytest

from ssil.classifier.edits import forget, remaining_trace, rename
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.update import update
from ssil.core.errors import UserError
from tiny_classifiers import labelled_images, settings

METHODS = ("ssil", "icarl", "lucir", "il2m", "scail", "bic", "podnet", "ncm", "slda", "fecam", "ranpac", "der", "memo")


def chances(classifier: Classifier) -> list[dict[str, float]]:
    return [
        dict(prediction.ranking)
        for prediction in predict(classifier, [one for one, _ in labelled_images(["ant", "dog"], 3)], top=9)
    ]


@pytest.fixture(params=METHODS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> ModelDirectory:
    own = settings(method=request.param, epochs=3, later_epochs=3)
    first = update(None, own, labelled_images(["ant", "bee", "cat"])).classifier
    directory = ModelDirectory(tmp_path / "model", (own.backbone,))
    with directory.locked():
        directory.publish(first, [{}])
        directory.publish(update(first, own, labelled_images(["dog", "eel"])).classifier, [{}])
    return directory


def test_a_class_gets_another_name(model: ModelDirectory) -> None:
    before = chances(model.load().classifier)
    made = rename(model, "bee", "wasp")
    assert made.classifier.classes.names == ("ant", "wasp", "cat", "dog", "eel")
    wanted = [{{"bee": "wasp"}.get(name, name): p for name, p in ranking.items()} for ranking in before]
    assert chances(made.classifier) == wanted
    assert made.history[-1]["renamed"] == ["bee", "wasp"]


def test_a_forgotten_class_is_gone_and_the_others_stay_what_they_were(model: ModelDirectory) -> None:
    known = model.load().classifier
    made = forget(model, "bee")
    rest = made.classifier
    assert rest.classes.names == ("ant", "cat", "dog", "eel")
    assert rest.classes.bounds == (0, 2, 4)
    if known.settings.method in {
        "ssil",
        "icarl",
        "lucir",
        "bic",
        "ncm",
        "der",
        "memo",
    }:  # those whose scores don't depend on other classes
        for now, then in zip(chances(rest), chances(known), strict=True):
            left = {name: p for name, p in then.items() if name != "bee"}
            wanted = {name: p / sum(left.values()) for name, p in left.items()}
            assert now == pytest.approx(wanted, abs=1e-5)
    assert update(rest, rest.settings, labelled_images(["fox", "gnu"])).classifier.classes.seen == 6


def test_what_remains_of_a_class_is_named(model: ModelDirectory) -> None:
    found = remaining_trace(model.load().classifier)
    method = model.load().classifier.settings.method
    parts = {
        "ncm": "",
        "slda": "matrix that all classes share",
        "fecam": "matrix that all",
        "ranpac": "matrix that all",
    }
    assert parts.get(method, "the network that was trained") in found
    assert bool(found) == (method != "ncm")


def test_no_version_keeps_an_image_of_it(model: ModelDirectory) -> None:
    forget(model, "bee")
    assert not (model.folder / "pictures/bee").exists()
    for number in model.numbers():
        found = model.load(number).classifier
        kept = {one.name.partition("/")[0] for group in (*found.exemplars, *found.holdout) for one in group}
        assert "bee" not in kept
        assert "ant" in kept
    assert all(0 <= p <= 1 for ranking in chances(model.load(1).classifier) for p in ranking.values())


def test_bad_names_are_refused(tmp_path: Path) -> None:
    own = settings(epochs=1)
    directory = ModelDirectory(tmp_path / "model", (own.backbone,))
    directory.publish(update(None, own, labelled_images(["ant", "bee"])).classifier, [{}])
    with pytest.raises(UserError, match="class: the model knows no 'bea'; did you mean 'bee'"):
        forget(directory, "bea")
    with pytest.raises(UserError, match="nothing left to tell apart"):
        forget(directory, "bee")
    with pytest.raises(UserError, match="name: 'ant' can't be the new name"):
        rename(directory, "bee", "ant")
    with pytest.raises(UserError, match=r"name: .* is not valid UTF-8"):
        rename(directory, "bee", "caf\udce9")
    assert directory.numbers() == [1]


def test_a_misspelt_model_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no model"):
        rename(ModelDirectory(tmp_path / "modle"), "ant", "bee")
    with pytest.raises(UserError, match="holds no model"):
        forget(ModelDirectory(tmp_path / "modle"), "ant")
    assert not (tmp_path / "modle").exists()
