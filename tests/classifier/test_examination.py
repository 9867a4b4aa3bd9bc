"""An update is judged by a test folder: which images count, what is remembered, and that --max-drop goes by it."""

from pathlib import Path

import pytest

import tiny_classifiers
from model_states import SETTINGS, TRUSTED
from ssil.classifier.estimator import IncrementalClassifier
from ssil.classifier.examination import folder_to_judge_by, read_test_folder, remember, remembered
from ssil.classifier.folder_results import run_folder_test
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_verification import verify_model
from ssil.classifier.publish_update import Limits, RefusedUpdateError, publish_update
from ssil.classifier.update import Update
from ssil.core.errors import UserError


def images_to_test(root: Path, names: list[str], first: int = 50) -> Path:
    for image, name in tiny_classifiers.labelled_images(names, 4, first):
        path = root / name / Path(image.name).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image.read())
    return root


@pytest.fixture
def model(tmp_path: Path) -> Path:
    publish_update(tmp_path / "model", str(tiny_classifiers.folder(tmp_path / "first", ["ant", "bee"])), SETTINGS)
    return tmp_path / "model"


def test_an_update_is_judged_by_a_folder_as_ssil_test_would(model: Path, tmp_path: Path) -> None:
    folder = images_to_test(tmp_path / "tests", ["ant", "bee", "cat", "dog"])
    (folder / "ant/broken.png").write_bytes(b"no image")
    cats = tiny_classifiers.folder(tmp_path / "cat", ["cat"])
    (cats / "cat/50.png").write_bytes((folder / "cat/50.png").read_bytes())
    found = publish_update(model, str(cats), SETTINGS, test=folder)
    entry = found.version.history[-1]["test"]
    before, after = (run_folder_test(model, folder, number, TRUSTED) for number in (1, 2))
    assert after.learnt == 0  # what is in the test folder is not learnt
    assert found.update.trained_images <= 8
    assert entry["tried"] == after.result().total == 12
    assert entry["accuracy"] == after.result().percent
    assert entry["old_before"] == before.result(["ant", "bee"]).percent
    assert entry["old_after"] == after.result(["ant", "bee"]).percent
    assert entry["new_after"] == after.result(["cat"]).percent
    reasons = [remark.reason for remark in found.remarks]
    assert "1 of its images are among those to learn; they are not learnt" in reasons
    assert ModelDirectory(model, TRUSTED).load().history[-1]["test"]["digest"] == read_test_folder(folder).digest


def test_a_folder_is_remembered_and_judges_later_updates(model: Path, tmp_path: Path) -> None:
    folder = images_to_test(tmp_path / "tests", ["ant", "bee"])
    remember(model, read_test_folder(folder))
    assert (remembered(model) or {})["images"] == 8
    assert verify_model(model, lambda *_: None, TRUSTED) == []
    images_to_test(folder, ["cat"])
    found = publish_update(model, str(tiny_classifiers.folder(tmp_path / "cat", ["cat"])), SETTINGS)
    assert found.version.history[-1]["test"]["tried"] == 12
    assert any("has changed: 12 images, 8 before" in remark.reason for remark in found.remarks)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"test folder .*tests is gone; put it back, or name another one"):
        publish_update(model, str(tiny_classifiers.folder(tmp_path / "dog", ["dog"])), SETTINGS)
    remember(model, None)
    assert folder_to_judge_by(model, None) is None
    assert "test" not in publish_update(model, str(tmp_path / "dog"), SETTINGS).version.history[-1]


def test_max_drop_goes_by_the_folder(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = images_to_test(tmp_path / "tests", ["ant", "bee"])
    judged = list[Update]()

    def excess(result: Update, _: Limits) -> str:
        judged.append(result)
        return "too much"

    monkeypatch.setattr("ssil.classifier.publish_update._excess", excess)
    with pytest.raises(RefusedUpdateError) as refused:
        publish_update(model, str(tiny_classifiers.folder(tmp_path / "cat", ["cat"])), SETTINGS, Limits(5), test=folder)
    assert judged[0].before
    assert {name: one.total for name, one in judged[0].before.classes.items()} == {"ant": 4, "bee": 4}
    entry = refused.value.report.entry
    assert entry["test"]["old_before"] == judged[0].before.accuracy(["ant", "bee"])


def test_a_damaged_file_is_told(model: Path) -> None:
    (model / "exam.json").write_text("{}")
    with pytest.raises(UserError, match=r"exam\.json"):
        folder_to_judge_by(model, None)
    (defect,) = verify_model(model, lambda *_: None, TRUSTED)
    assert defect.path == model / "exam.json"


def test_the_estimator_tests_and_accepts_too(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = images_to_test(tmp_path / "tests", ["ant", "bee", "elk"])
    found = IncrementalClassifier.load(model, TRUSTED).test(folder)
    assert found.classes == run_folder_test(model, folder, trusted=TRUSTED).classes
    with pytest.raises(ValueError, match="no image of a known class"):
        IncrementalClassifier.load(model, TRUSTED).test(images_to_test(tmp_path / "others", ["elk"]))
    with pytest.raises(ValueError, match="no update that was refused"):
        IncrementalClassifier.accept(model, TRUSTED)
    monkeypatch.setattr("ssil.classifier.publish_update._excess", lambda *_: "too much")
    with pytest.raises(RefusedUpdateError):
        publish_update(model, str(tiny_classifiers.folder(tmp_path / "cat", ["cat"])), SETTINGS)
    assert IncrementalClassifier.accept(model, TRUSTED).classes_.tolist() == ["ant", "bee", "cat"]
