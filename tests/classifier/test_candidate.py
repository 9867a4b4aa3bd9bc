"""An update that is refused is kept: accepted later, rolled back, dropped, killed in between, nothing is lost."""

from pathlib import Path
from typing import Any

import pytest

import kill_points
import tiny_classifiers
from model_states import SETTINGS, TRUSTED, litter
from ssil.classifier import edits
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_verification import verify_model
from ssil.classifier.prediction import predict
from ssil.classifier.publish_update import Limits, RefusedUpdateError, publish_update
from ssil.classifier.update import Update
from ssil.core.errors import UserError


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelDirectory:
    """A model that knows ant and bee; an update with cat was refused."""
    publish_update(tmp_path / "model", str(tiny_classifiers.folder(tmp_path / "first", ["ant", "bee"])), SETTINGS)
    tiny_classifiers.folder(tmp_path / "cat", ["cat"])
    with monkeypatch.context() as patch:
        patch.setattr("ssil.classifier.publish_update._excess", excess)
        with pytest.raises(RefusedUpdateError, match=r"too much is lost; the model is as it was; .*ssil accept"):
            publish_update(tmp_path / "model", str(tmp_path / "cat"), SETTINGS, Limits(5))
    return ModelDirectory(tmp_path / "model", TRUSTED)


def excess(_: Update, limits: Limits) -> str:
    assert limits == Limits(5)
    return "too much is lost"


def sound(directory: ModelDirectory) -> bool:
    return verify_model(directory.folder, lambda *_: None, TRUSTED) == []


def accept(directory: ModelDirectory) -> int:
    with directory.locked():
        return directory.accept_candidate().number


def test_a_refused_update_is_kept_and_changes_nothing(refused: ModelDirectory) -> None:
    assert refused.current() == 1
    assert refused.numbers() == [1]
    description = refused.candidate_description()
    assert description
    assert description["classes"]["names"] == ["ant", "bee", "cat"]
    assert description["history"][-1]["refused"] == "too much is lost"
    assert sound(refused)


def test_it_is_accepted_and_rolled_back(refused: ModelDirectory) -> None:
    assert accept(refused) == 2
    version = refused.load()
    assert (version.number, version.classifier.classes.names) == (2, ("ant", "bee", "cat"))
    cats = [image for image, _ in tiny_classifiers.labelled_images(["cat"], 2)]
    assert [one.ranking for one in predict(version.classifier, cats)]
    assert not refused.candidate.exists()
    assert sound(refused)
    with refused.locked():
        refused.point_to(1)
    assert refused.load().classifier.classes.names == ("ant", "bee")
    with pytest.raises(UserError, match="no update that was refused"):
        accept(refused)
    assert sound(refused)


def test_the_next_update_drops_it_with_its_images(refused: ModelDirectory, tmp_path: Path) -> None:
    publish_update(refused.folder, str(tiny_classifiers.folder(tmp_path / "dog", ["dog"])), SETTINGS)
    assert refused.load().classifier.classes.names == ("ant", "bee", "dog")
    assert not refused.candidate.exists()
    assert litter(refused.folder) == []
    assert not (refused.folder / "pictures/cat").exists()


def test_a_refused_update_replaces_the_one_before(
    refused: ModelDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssil.classifier.publish_update._excess", excess)
    with pytest.raises(RefusedUpdateError):
        publish_update(refused.folder, str(tiny_classifiers.folder(tmp_path / "dog", ["dog"])), SETTINGS, Limits(5))
    assert (refused.candidate_description() or {})["classes"]["names"] == ["ant", "bee", "dog"]
    assert sound(refused)


def test_another_version_drops_it(refused: ModelDirectory) -> None:
    edits.rename(refused, "bee", "wasp")
    with pytest.raises(UserError, match="no update that was refused"):
        accept(refused)


def test_it_belongs_to_the_version_it_was_made_from_and_forgetting_a_class_drops_it(
    refused: ModelDirectory, tmp_path: Path
) -> None:
    assert accept(refused) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssil.classifier.publish_update._excess", excess)
        with pytest.raises(RefusedUpdateError):
            publish_update(refused.folder, str(tiny_classifiers.folder(tmp_path / "dog", ["dog"])), SETTINGS, Limits(5))
    with refused.locked():
        refused.point_to(1)
    with pytest.raises(UserError, match="made from version 2, and 1 is the current one"):
        accept(refused)
    with refused.locked():
        refused.point_to(2)
    edits.forget(refused, "cat")
    assert not refused.candidate.exists()
    assert litter(refused.folder) == []


def test_damage_is_found_and_moved_aside(refused: ModelDirectory) -> None:
    path = refused.candidate / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    (defect,) = verify_model(refused.folder, lambda *_: None, TRUSTED)
    assert defect.path == path
    with pytest.raises(UserError, match="damaged"):
        accept(refused)
    assert refused.current() == 1
    assert defect.repair
    defect.repair()
    assert not refused.candidate.exists()


MOMENTS: dict[str, dict[str, tuple[int, ...]]] = {
    "refuse": {"write": (1, 3, 5), "flush": (2, 12, 20), "rename": (1, 8, 9), "renamed": (1, 9)},
    "accept": {"write": (1,), "flush": (1, 2, 3), "rename": (1, 2), "renamed": (1, 2)},
    "discard": {"rename": (1,), "renamed": (1,)},
    "learn": {"write": (2,), "rename": (2, 3, 4, 5), "renamed": (2, 3, 4, 5)},
}
CASES = {
    f"{what}, {event} {nth}": (what, event, nth)
    for what, events in MOMENTS.items()
    for event, times in events.items()
    for nth in times
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = Path(__file__).with_name("candidate_kills.py")
    return kill_points.results(script, tmp_path_factory.mktemp("killed"), cases=CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_killed_in_between_nothing_is_lost(results: dict[str, Any], name: str) -> None:
    found = results[name]
    assert found["right"]
    assert found["defects"] == []
    assert [path for path in found["litter"] if "/candidate" not in path] == []
    acceptable = found["candidate"] and not name.startswith("learn")  # an update, even a killed one, may be newer
    assert found["accepted"] in ({2} if acceptable else {found["version"], 2})
    assert found["version"] == 1 or not acceptable


@pytest.mark.slow
def test_kills_take_place_and_leave_the_old_model_the_candidate_or_the_new_one(results: dict[str, Any]) -> None:
    assert sum(found["killed"] for found in results.values()) > 0.7 * len(results)
    states = {(found["version"], found["candidate"]) for found in results.values()}
    assert states >= {(1, False), (1, True), (2, False)}
