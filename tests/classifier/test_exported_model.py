"""`model.onnx`: it predicts as PyTorch does; a stranger's graph is refused in one line; without it PyTorch predicts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ssil.classifier import onnx_export
from ssil.classifier.exported_model import Predictor, load_predictor, open_session, run_views
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_files import read_checked_json, write_checked_json
from ssil.classifier.model_verification import verify_model
from ssil.classifier.onnx_export import ExportDiffersError
from ssil.classifier.prediction import predict_views
from ssil.classifier.update import update
from ssil.cli import main
from ssil.core.errors import UserError
from ssil.core.files import checksum
from tiny_classifiers import folder, labelled_images, settings

TRUSTED = (settings().backbone,)
VERSION = "versions/0001"
VIEWS = np.random.default_rng(0).integers(256, size=(40, 8, 8, 1), dtype=np.uint8)
NAMES = [str(number) for number in range(len(VIEWS))]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = ModelDirectory(tmp_path_factory.mktemp("model") / "mine", TRUSTED)
    classifier = update(None, settings(epochs=1, method="icarl"), labelled_images(["ant", "bee", "cat"])).classifier
    with directory.locked():
        assert directory.publish(classifier, [{}]).onnx_problem is None
    return directory.folder


@pytest.fixture
def model(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Path(shutil.copytree(published, tmp_path / "model"))


def replaced(model: Path, content: bytes | None) -> None:
    """Another `model.onnx`, or none, with the right checksums."""
    path = model / VERSION / "model.json"
    said = read_checked_json(path)
    if content is None:
        said.pop("onnx")
    else:
        (model / VERSION / "model.onnx").write_bytes(content)
        said["onnx"] = checksum(content)
    write_checked_json(path, said)


def changed(model: Path, change: Callable[[onnx.ModelProto], object]) -> None:
    graph = onnx.load(model / VERSION / "model.onnx")
    change(graph)
    replaced(model, graph.SerializeToString())


def answers(predictor: Predictor, top: int = 3) -> list[tuple[str, list[str], list[float]]]:
    found = predictor.predict(NAMES, VIEWS, top)
    return [(name, [label for label, _ in ranking], [p for _, p in ranking]) for name, ranking, _ in found]


def test_onnx_runtime_predicts_as_pytorch(model: Path) -> None:
    exported = answers(load_predictor(model))
    classifier = ModelDirectory(model, TRUSTED).load().classifier
    by_torch = [*predict_views(classifier, NAMES, VIEWS, 3)]
    for (name, labels, chances), expected in zip(exported, by_torch, strict=True):
        assert (name, labels) == (expected.name, [label for label, _ in expected.ranking])
        assert chances == pytest.approx([p for _, p in expected.ranking], abs=1e-4)


def test_results_depend_neither_on_threads_nor_on_the_batch(model: Path) -> None:
    assert answers(load_predictor(model, threads=1)) == answers(load_predictor(model, threads=2))
    session = open_session((model / VERSION / "model.onnx").read_bytes(), 1)
    one_by_one = np.concatenate([run_views(session, view[None])[0] for view in VIEWS])
    assert np.allclose(one_by_one, run_views(session, VIEWS)[0], rtol=0, atol=1e-5)


def test_a_version_without_the_file_is_predicted_by_pytorch(model: Path) -> None:
    exported = answers(load_predictor(model))
    (model / VERSION / "model.onnx").unlink()
    with pytest.raises(UserError, match=r"model\.onnx can't be read \(no such file.*\); restore it, or roll back$"):
        load_predictor(model)
    replaced(model, None)
    by_torch = answers(load_predictor(model, trusted=TRUSTED))
    assert [one[:2] for one in by_torch] == [one[:2] for one in exported]
    with pytest.raises(UserError, match="--trust"):
        load_predictor(model)


def test_code_of_the_users_own_is_not_run_and_need_not_be_trusted(model: Path) -> None:
    assert len(answers(load_predictor(model))) == len(VIEWS)


def test_verification_finds_a_damaged_file_and_lets_pytorch_predict(model: Path) -> None:
    assert verify_model(model, lambda *_: None, TRUSTED) == []
    path = model / VERSION / "model.onnx"
    path.write_bytes(path.read_bytes()[:-1])
    (defect,) = verify_model(model, lambda *_: None, TRUSTED)
    assert defect.path == path
    assert "damaged" in defect.problem
    assert defect.repair
    assert defect.repair().startswith("PyTorch predicts instead, and ")
    assert verify_model(model, lambda *_: None, TRUSTED) == []
    assert len(answers(load_predictor(model, trusted=TRUSTED))) == len(VIEWS)


def outside(graph: onnx.ModelProto) -> None:
    tensor = graph.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret")


def constant_outside(graph: onnx.ModelProto) -> None:
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="secret")
    graph.graph.node.insert(0, helper.make_node("Constant", [], ["unused"], value=tensor))


def others_operator(graph: onnx.ModelProto) -> None:
    graph.graph.node[-1].domain = "com.microsoft"


def others_domain(graph: onnx.ModelProto) -> None:
    graph.opset_import.add(domain="ai.stranger", version=1)


def branch(graph: onnx.ModelProto) -> None:
    body = helper.make_graph([], "body", [], [])
    graph.graph.node.append(helper.make_node("If", ["scores"], [], then_branch=body, else_branch=body))


def function(graph: onnx.ModelProto) -> None:
    graph.functions.append(helper.make_function("mine", "f", [], [], [], []))


def other_input(graph: onnx.ModelProto) -> None:
    graph.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT


def other_outputs(graph: onnx.ModelProto) -> None:
    del graph.graph.output[1]


GRAPHS = (outside, constant_outside, others_operator, others_domain, branch, function, other_input, other_outputs)


@pytest.mark.parametrize("change", GRAPHS, ids=lambda change: change.__name__)
def test_a_strangers_graph_is_refused_in_one_line(
    change: Callable[[onnx.ModelProto], object], model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("secret").write_bytes(bytes(1 << 16))  # where external numbers of a model in memory would be read
    changed(model, change)
    with pytest.raises(
        UserError, match=r"^model: \S+model\.onnx is not what it should be \(.*\); restore it, or roll back$"
    ):
        load_predictor(model)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("content", [b"", b"no graph", b"\x08\x08", bytes(1000)])
def test_what_is_no_graph_is_refused_in_one_line(
    content: bytes, model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    replaced(model, content)
    with pytest.raises(UserError, match=r"^model: \S+model\.onnx is not what it should be \(.*\)"):
        load_predictor(model)
    assert capfd.readouterr() == ("", "")


def test_scores_of_other_classes_are_refused(model: Path) -> None:
    path = model / VERSION / "model.json"
    said = read_checked_json(path)
    said["classes"]["names"].append("dog")
    write_checked_json(path, said)
    with pytest.raises(
        UserError, match=r"model\.onnx is not what it should be \(.*40 images and 4 classes\); roll back$"
    ):
        answers(load_predictor(model))


def differing(*_: object) -> None:
    raise ExportDiffersError("scores of ONNX Runtime and PyTorch differ by 1.0e+00")


def test_learn_says_why_a_version_has_no_file_and_predicts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(onnx_export, "_compare", differing)
    images, out = folder(tmp_path / "images", ["ant", "bee"]), tmp_path / "model"
    small = ["--backbone", "resnet8", "--image-size", "8", "--grey", "--epochs", "1", "--method", "eeil"]
    assert main(["learn", str(out), str(images), *small]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "model.onnx" in line] == [
        "no model.onnx, so that predictions load PyTorch: scores of ONNX Runtime and PyTorch differ by 1.0e+00"
    ]
    assert not (out / VERSION / "model.onnx").exists()
    assert main(["predict", str(out), str(images / "ant"), "--json"]) == 0
    assert {json.loads(line)["classes"][0]["class"] for line in capsys.readouterr().out.splitlines()} <= {"ant", "bee"}
