"""`ssil learn`, `predict`, `inspect`, `history`, `rollback`, as a person types them."""

import csv
import io
import json
from pathlib import Path

import pytest

import tiny_classifiers
from ssil.classifier.publish_update import Limits
from ssil.cli import main

SMALL = ["--backbone", "resnet14", "--image-size", "8", "--grey", "--no-flip", "--batch", "8", "--memory", "40"]
SHORT = ["--epochs", "6", "--later-epochs", "6"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photos")
    tiny_classifiers.folder(root / "first", ["ant", "bee", "cat"])
    tiny_classifiers.folder(root / "second", ["dog"])
    (root / "second/dog/broken.png").write_bytes(b"no picture")
    return root


@pytest.fixture(scope="module")
def model(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "mine"
    assert main(["learn", str(folder), str(photos / "first"), *SMALL, *SHORT]) == 0
    return folder


@pytest.mark.slow
def test_from_the_first_class_to_a_rollback(model: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", str(model), str(photos / "second")]) == 0
    said = capsys.readouterr().out
    assert "dog/broken.png: not an image" in said
    assert "version 2: 1 new class, 10 photos" in said
    assert main(["predict", str(model), str(photos / "first"), "--csv", "--top", "2"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["rank"] for row in rows] == ["1", "2"] * 30
    assert {row["class"] for row in rows} <= {"ant", "bee", "cat", "dog"}
    assert main(["inspect", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["class"], row["arrived"]) for row in found["classes"]] == [
        ("ant", 1),
        ("bee", 1),
        ("cat", 1),
        ("dog", 2),
    ]
    assert sum(row["exemplars"] + row["quiz"] for row in found["classes"]) == 40
    assert main(["inspect", str(model)]) == 0
    assert main(["history", str(model)]) == 0
    assert "2 (current)" in capsys.readouterr().out
    assert main(["rollback", str(model), "1"]) == 0
    assert main(["predict", str(model), str(photos / "second/dog/0.png"), "--json", "--top", "9"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {one["class"] for one in answer["classes"]} == {"ant", "bee", "cat"}
    assert sum(one["probability"] for one in answer["classes"]) == pytest.approx(1)


@pytest.mark.slow
def test_more_of_known_classes_alone(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tiny_classifiers.folder(tmp_path / "more", ["ant", "bee"], 14) / "bee/broken.png").write_bytes(b"no picture")
    assert main(["learn", str(model), str(tmp_path / "more"), "--json"]) == 0
    said = capsys.readouterr()
    entry = json.loads(said.out)
    assert (entry["new"], entry["more"], entry["score_gap"]) == ([], ["ant", "bee"], None)
    assert entry["refused"] is None
    assert entry["advice"]["examined"] >= 8
    assert "broken.png: not an image" in said.err
    assert main(["rollback", str(model), "1"]) == 0


@pytest.mark.slow
def test_images_for_testing_are_not_learnt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_classifiers.folder(tmp_path / "data/train", ["ant", "bee"], 8)
    tiny_classifiers.folder(tmp_path / "data/test", ["ant", "bee"], 12)
    few = ["--epochs", "1", "--later-epochs", "1"]
    assert main(["learn", str(tmp_path / "mine"), str(tmp_path / "data"), *SMALL, *few]) == 0
    said = capsys.readouterr().out
    assert "24 images are for testing, and not learnt" in said
    assert "version 1: 2 new classes, 16 photos" in said


@pytest.mark.slow
def test_what_can_not_be_judged_is_refused_under_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--epochs", "1", "--later-epochs", "1"]
    first, second = (
        tiny_classifiers.folder(tmp_path / "a", ["ant", "bee"], 4),
        tiny_classifiers.folder(tmp_path / "b", ["cat"], 4),
    )
    assert main(["learn", str(tmp_path / "mine"), str(first), *SMALL, *few]) == 0
    assert main(["learn", str(tmp_path / "mine"), str(second), "--max-drop", "5"]) == 3
    assert "no old class has an image in the hold-out set" in capsys.readouterr().err


@pytest.mark.slow
def test_an_update_that_costs_too_much_is_refused(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is one that no update keeps: its accuracy would have to rise by more than 100 points."""
    monkeypatch.setattr(Limits, "__post_init__", lambda limits: None)  # which refuses such a limit
    before = sorted(path.name for path in (model / "versions").iterdir())
    written = ["--html", str(tmp_path / "refused.html")]
    assert main(["learn", str(model), str(photos / "second"), "--max-drop", "-101", *written]) == 3
    said = capsys.readouterr()
    assert "refused: accuracy on the old classes falls" in said.err
    assert "not published: 1 new class, 10 photos" in said.out
    page = (tmp_path / "refused.html").read_text()
    assert "This update was not published." in page
    assert "Accuracy on the old classes falls" in page
    assert sorted(path.name for path in (model / "versions").iterdir()) == before


@pytest.mark.slow
def test_what_cant_be_read_is_said_and_the_rest_is_answered(
    model: Path, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="1"):
        main(["predict", str(model), str(photos / "second/dog"), "--unknown", "1.0"])
    said = capsys.readouterr()
    assert said.out.count(": unknown ") == 10
    assert "broken.png: not an image" in said.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["predict", "nowhere", "a.jpg"], "model: nowhere holds no model; make one with: ssil learn nowhere IMAGES"),
        (["learn", "model", "nowhere"], "images: nowhere does not exist; check the path"),
        (["learn", "model", "testz"], "images: testz does not exist; did you mean 'tests'?"),
        (["learn", "model", "README.md"], "images: README.md is no folder with one sub-folder per class"),
        (["rollback", "nowhere", "2"], "model: nowhere holds no model"),
        (["predict", "nowhere", "a.jpg", "--top", "0"], "top: give 1 or more"),
    ],
)
def test_bad_input_is_refused(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert reason in capsys.readouterr().err
    assert not Path("model").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--freeze", "--backbone", "resnet18"], "freeze: a backbone with random weights is not worth freezing"),
        (["--freeze", "--scratch"], "scratch: random weights are all trained; leave out --init, --freeze and --tune"),
        (["--method", "eel"], "method: unknown name 'eel', did you mean 'eeil'"),
        (["--epochs", "9"], "epochs: slda trains nothing, so that it would change nothing; leave it out"),
        (["--minutes", "2", "--method", "ncm"], "minutes: ncm trains nothing"),
        (["--backbone", "resnet15"], "backbone: unknown name 'resnet15'"),
        (["--image-size", "6400"], "image_size: '6400' does not fit: input should be less than or equal to 2048"),
    ],
)
def test_settings_are_refused_before_images_are_looked_at(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "mine"
    assert main(["learn", str(model), "nowhere", *words]) == 2
    assert reason in capsys.readouterr().err
    assert not model.exists()


def test_a_refused_first_update_leaves_nothing(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty := tmp_path / "empty").mkdir()
    for model in (tmp_path / "mine", empty):
        assert main(["learn", str(model), str(photos / "second"), *SMALL]) == 2
        assert "images: only one class" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()
    assert empty.is_dir()  # which is the user's


def test_a_model_that_trains_nothing_refuses_settings_of_training(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, untrained = str(tmp_path / "mine"), ["--backbone", "resnet14", "--image-size", "8", "--grey"]
    assert main(["learn", mine, str(photos / "first"), *untrained, "--method", "slda"]) == 0
    assert main(["learn", mine, str(photos / "second"), "--lr", "0.1"]) == 2
    assert "lr: slda trains nothing" in capsys.readouterr().err
    assert main(["learn", mine, str(photos / "second")]) == 0


def test_a_model_for_other_programs(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.onnx"
    assert main(["export", str(model), str(out), "--version", "1"]) == 0
    assert "version 1, 3 classes, images of 8 x 8 x 1" in capsys.readouterr().out
    assert out.stat().st_size > 100_000
    assert main(["export", str(model), str(tmp_path / "mine.onnx" / "below")]) == 2
    assert "can't be written" in capsys.readouterr().err


@pytest.mark.slow
def test_another_name_and_a_class_less(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = str(tmp_path / "mine")
    assert main(["learn", mine, str(photos / "first"), *SMALL, "--epochs", "1"]) == 0
    assert main(["rename", mine, "bee", "wasp"]) == 0
    assert main(["forget", mine, "ant"]) == 0
    assert main(["history", mine]) == 0
    said = capsys.readouterr().out
    assert "bee is now wasp" in said
    assert "forgot ant" in said
    assert "what remains of it: the network that was trained with its images stays as it is" in said
    assert main(["forget", mine, "emu"]) == 2
