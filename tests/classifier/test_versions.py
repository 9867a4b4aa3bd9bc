"""A model's directory as files: what an update leaves, what is pruned, and what a forgotten class leaves nowhere."""

from pathlib import Path

import pytest

from ssil.classifier import versions
from ssil.classifier.edits import forget, rename
from ssil.classifier.images import load_images
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_files import read_checked_json, write_checked_json
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from ssil.cli import main
from ssil.cli.prune import app
from ssil.core.errors import UserError
from tiny_classifiers import folder, labelled_images, settings

TRUSTED = (settings().backbone,)


@pytest.fixture(scope="module")
def classifiers() -> list[Classifier]:
    one = update(None, settings(epochs=1), labelled_images(["ant", "bee"])).classifier
    two = update(one, settings(later_epochs=1), labelled_images(["cat"])).classifier
    return [one, two, update(two, settings(later_epochs=1), labelled_images(["dog", "elk"])).classifier]


@pytest.fixture
def model(classifiers: list[Classifier], tmp_path: Path) -> ModelDirectory:
    directory = ModelDirectory(tmp_path / "model", TRUSTED)
    with directory.locked():
        for number in range(1, 4):
            directory.publish(classifiers[number - 1], [{"update": count} for count in range(number)])
    return directory


def kept(model: ModelDirectory) -> set[str]:
    """The images that versions refer to."""
    found = [model.load(number).classifier for number in model.numbers()]
    return {one.digest for known in found for group in (*known.exemplars, *known.holdout) for one in group}


def stored(model: ModelDirectory) -> set[str]:
    return {path.stem for path in model.folder.glob("pictures/*/*")}


def test_old_versions_go_with_the_images_that_only_they_have(model: ModelDirectory) -> None:
    before = stored(model)
    app([str(model.folder), "--keep", "1"], result_action="return_value")
    assert (model.numbers(), model.current()) == ([3], 3)
    assert stored(model) == kept(model) < before
    assert sorted(path.name for path in (model.folder / "versions").iterdir()) == ["0003"]


def test_the_current_version_stays_and_no_number_comes_twice(
    model: ModelDirectory, classifiers: list[Classifier]
) -> None:
    model.point_to(1)
    with model.locked():
        assert model.prune(1) == [2]
        assert model.publish(classifiers[1], [{}]).number == 4
    assert model.numbers() == [1, 3, 4]
    with model.locked():
        assert model.prune(9) == []
    with pytest.raises(UserError, match="keep: 0 versions are no model"):
        app([str(model.folder), "--keep", "0"], result_action="return_value", exit_on_error=False, print_error=False)


def test_the_next_writer_removes_what_a_killed_prune_leaves(model: ModelDirectory) -> None:
    model.prune(1)
    (model.folder / "versions/.0001.part/model.json").unlink()
    assert model.load().number == 3
    with model.locked():
        pass
    assert stored(model) == kept(model)
    assert sorted(path.name for path in (model.folder / "versions").iterdir()) == ["0003"]


def test_images_stay_where_a_version_cant_be_read(model: ModelDirectory) -> None:
    before = stored(model)
    (model.folder / "versions/0001/model.json").write_text("{}")
    with model.locked():
        pass
    assert stored(model) == before


def test_files_of_the_user_beside_the_images_stay(model: ModelDirectory) -> None:
    note = model.folder / "pictures/ant/note.txt"
    note.write_text("the best ones")
    with model.locked():
        model.prune(1)
    assert note.exists()


def test_a_class_is_erased_whatever_it_was_called(model: ModelDirectory) -> None:
    rename(model, "bee", "wasp")
    rename(model, "ant", "bee")
    forget(model, "wasp")
    assert model.load().classifier.classes.names == ("bee", "cat", "dog", "elk")
    assert {path.name for path in (model.folder / "pictures").iterdir()} == {"ant", "bee", "cat", "dog", "elk"}
    wasps = {image.digest for image, name in labelled_images(["bee"])}
    assert stored(model).isdisjoint(wasps)
    assert stored(model) == kept(model)


def test_a_class_of_a_name_that_another_had_before(classifiers: list[Classifier], tmp_path: Path) -> None:
    directory = ModelDirectory(tmp_path / "model", TRUSTED)
    with directory.locked():
        directory.publish(classifiers[0], [{"new": ["ant", "bee"]}])
    renamed = rename(directory, "bee", "wasp")
    made = update(renamed.classifier, settings(later_epochs=1), labelled_images(["bee"], first=30)).classifier
    with directory.locked():
        directory.publish(made, [*renamed.history, {"new": ["bee"]}])
    forget(directory, "bee")
    first = directory.load(1).classifier
    assert len(first.exemplars[1]) + len(first.holdout[1]) == 10


def test_nothing_is_erased_where_a_version_cant_be_read(model: ModelDirectory) -> None:
    (model.folder / "versions/0003/model.json").write_text("{}")
    model.point_to(2)
    before = {number: (model.folder / f"versions/000{number}/model.json").read_text() for number in (1, 2)}
    with pytest.raises(UserError, match="0003"):
        forget(model, "bee")
    assert {number: (model.folder / f"versions/000{number}/model.json").read_text() for number in (1, 2)} == before


def test_a_disk_may_spell_a_folder_otherwise(model: ModelDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that does not tell upper from lower case does: the images of `ant` lie in `Ant`, which is the same."""
    before = stored(model)
    (model.folder / "pictures/ant").rename(model.folder / "pictures/Ant")
    plain = versions._inode
    monkeypatch.setattr(versions, "_inode", lambda path: plain(path.with_name("Ant") if path.name == "ant" else path))
    with model.locked():
        pass
    assert stored(model) == before


def test_a_damaged_current_json_is_mended_by_a_rollback(
    model: ModelDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    trust = ["--trust", TRUSTED[0]]
    (model.folder / "current.json").write_text("{}")
    (model.folder / "versions/0001/model.json").write_text("{}")
    assert main(["history", str(model.folder)]) == 0
    assert "checksum" in capsys.readouterr().out
    assert main(["rollback", str(model.folder), "2"]) == 2  # code of its own
    assert "say --trust" in capsys.readouterr().err
    assert main(["rollback", str(model.folder), "2", *trust]) == 0
    assert model.current() == 2
    (model.folder / "current.json").unlink()
    assert main(["rollback", str(model.folder), "3", *trust]) == 0
    assert model.current() == 3


def test_two_spellings_of_a_letter_are_one_class(model: ModelDirectory, tmp_path: Path) -> None:
    composed, apart = "M\u00fcller", "Mu\u0308ller"
    rename(model, "bee", apart)
    assert composed in model.load().classifier.classes.names
    folder(tmp_path / "photos", [apart, "ant"], 2)
    assert {name for _, name in load_images(str(tmp_path / "photos"))[0]} == {composed, "ant"}
    assert composed not in forget(model, apart).classifier.classes.names


def test_a_class_that_was_erased_but_not_forgotten_can_be_forgotten(model: ModelDirectory) -> None:
    model.erase_images("bee")
    assert forget(model, "bee").classifier.classes.seen == 4
    assert not (model.folder / "pictures/bee").exists()


@pytest.mark.parametrize("name", ["..", ".", "a/b", "ж" * 120, "Müller", "a\nb", "CON:", "%2F"])
def test_any_name_can_be_a_class(classifiers: list[Classifier], tmp_path: Path, name: str) -> None:
    made = update(
        classifiers[0], settings(later_epochs=1), [(one, name) for one, _ in labelled_images(["cat"])]
    ).classifier
    directory = ModelDirectory(tmp_path / "model", TRUSTED)
    with directory.locked():
        directory.publish(made, [{}])
    found = directory.load().classifier
    assert found.classes.names[-1] == name
    assert all(one.read() for one in found.exemplars[-1])
    assert len([*(directory.folder / "pictures").iterdir()]) == 3
    forget(directory, name)
    assert len([*(directory.folder / "pictures").iterdir()]) == 2


@pytest.mark.parametrize(
    "history", [[1], [{"new": 3}], [{"renamed": [1, 2]}], [{"new": [["ant"]]}], [{"old_before": "much"}]]
)
def test_a_history_of_other_types_is_refused_in_one_line(
    model: ModelDirectory, history: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    path = model.version(2) / "model.json"
    description = read_checked_json(path)
    write_checked_json(path, description | {"history": history})
    assert main(["history", str(model.folder)]) == 0
    assert "model.json is not what it should be; restore it" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"model\.json is not what it should be"):
        forget(model, "elk")
    assert model.current() == 3


@pytest.mark.parametrize("number", [10**4000, True, 0, -1, 1.5, "2"], ids=lambda value: repr(value)[:5])
def test_a_current_version_of_no_number_is_refused(model: ModelDirectory, number: object) -> None:
    write_checked_json(model.folder / "current.json", {"format": 1, "version": number})
    with pytest.raises(UserError, match=r"current\.json is not what it should be") as refused:
        model.current()
    assert len(str(refused.value)) < 500
