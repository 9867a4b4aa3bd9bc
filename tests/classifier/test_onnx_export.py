"""An exported file answers as the snapshot does, for every method, head and scorer."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnxruntime import InferenceSession
from torch import Tensor

import tiny_runs
from followed_methods import IMAGES, follow, plan_for
from ssil import __version__
from ssil.classifier import onnx_export as module
from ssil.classifier.onnx_export import ExportDiffersError, export
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.data.augmentation import Transform
from ssil.learning.registry import configure, recipes
from ssil.learning.snapshot import MAIN, Scorer, Snapshot, freeze
from ssil.methods.il2m import Rectified
from ssil.methods.scail import Rescaled
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, Output, build

T = 1.5
GREY = Transform((0.4,), (0.2,))
NOISE = torch.randint(256, (9, 8, 8, 1), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def like_ft(name: str) -> bool:
    """A linear head, without branches, whose logits are the scores: all such methods leave the same graph."""
    method = configure(name).method
    plain = isinstance(method.head(4), LinearHead) and not method.branches
    return plain and method.scorers[MAIN] is Scorer and name != "ft"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("export") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module")
def images(dataset: Path) -> Tensor:
    return plan_for("ft", dataset).stream.test.images.fetch(torch.arange(24))


@pytest.fixture
def plain(dataset: Path) -> Snapshot:
    return follow("ft", dataset)[-1].snapshot


def answer(path: Path, images: Tensor) -> list[Tensor]:
    """Scores and probabilities."""
    session = InferenceSession(path, providers=["CPUExecutionProvider"])
    return [torch.from_numpy(found) for found in session.run(None, {"images": images.numpy()})]


def compare(snapshot: Snapshot, transform: Transform, images: Tensor, path: Path) -> Tensor:
    """The exported file's answers with the snapshot's own; returns its scores."""
    path.write_bytes(export(snapshot, transform, images[:5], T))
    network, scorer = snapshot.network, snapshot.scorers[MAIN]
    with torch.inference_mode():
        scores = snapshot.scores(network(transform.test(images, network.head.weight.dtype))).float()
    chances = scores / scores.sum(1, keepdim=True) if type(scorer) is Rectified else (scores / T).softmax(1)
    scale = float(scores[scores.isfinite()].abs().max())
    for batch in (1, 7):
        found = answer(path, images[:batch])
        for mine, theirs, atol in zip(found, (scores, chances), (1e-4 * scale, 1e-4), strict=True):
            torch.testing.assert_close(mine, theirs[:batch], rtol=0, atol=atol)
    return scores


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if like_ft(name) else []) for name in recipes()]
)
def test_the_outputs_of_every_method_are_pytorchs(name: str, dataset: Path, images: Tensor, tmp_path: Path) -> None:
    compare(follow(name, dataset)[-1].snapshot, GREY, images, tmp_path / "model.onnx")


@pytest.mark.parametrize(("name", "options"), [("il2m", {"scores": "raw"}), ("wa", {"variant": "original"})])
def test_scorers_that_an_option_brings(
    name: str, options: dict[str, Any], dataset: Path, images: Tensor, tmp_path: Path
) -> None:
    compare(follow(name, dataset, **options)[-1].snapshot, GREY, images, tmp_path / "model.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bic", "il2m", "scail"])
def test_a_model_of_one_task(name: str, dataset: Path, images: Tensor, tmp_path: Path) -> None:
    """There are no old classes to treat otherwise."""
    compare(follow(name, dataset)[0].snapshot, GREY, images, tmp_path / "model.onnx")


def test_classes_that_scail_rules_out_score_minus_infinity(dataset: Path, images: Tensor, tmp_path: Path) -> None:
    snapshot = follow("scail", dataset)[-1].snapshot
    scorer = deepcopy(snapshot.scorers[MAIN])
    assert isinstance(scorer, Rescaled)
    scorer.top = 1
    scores = compare(replace(snapshot, scorers={MAIN: scorer}), GREY, images, tmp_path / "model.onnx")
    assert ((scores == -torch.inf).sum(1) == 3).all()


def test_colour_group_norm_and_double_precision(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    network = build(f"{tiny_runs.__file__}:backbone", LinearHead, 3, "group", generator).grow(3, generator).double()
    snapshot = freeze(network, ClassTable().extend(["cat", "dog"]).extend(["eel"]), {MAIN: Scorer()})
    images = torch.randint(256, (7, 12, 12, 3), dtype=torch.uint8, generator=generator)
    colour = Transform((0.5, 0.4, 0.3), (0.2, 0.3, 0.1))
    compare(snapshot, colour, images, tmp_path / "model.onnx")
    assert [*answer(tmp_path / "model.onnx", images)[0].shape] == [7, 3]


def test_the_file_says_what_it_is_and_nothing_of_the_machine(
    plain: Snapshot, capfd: pytest.CaptureFixture[str]
) -> None:
    names = tuple("äbcdef")
    snapshot = replace(plain, classes=replace(plain.classes, names=names))
    content = export(snapshot, GREY, NOISE, metadata={"method": "ft"})
    model = onnx.load_from_string(content)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(metadata.pop("class_names")) == list(names)
    assert metadata == {"method": "ft"}
    assert (model.producer_name, model.producer_version) == ("ssil", __version__)
    inputs, outputs = (
        [(value.name, shape(value)) for value in part] for part in (model.graph.input, model.graph.output)
    )
    assert inputs == [("images", ["batch", 8, 8, 1])]
    assert outputs == [("scores", ["batch", 6]), ("probabilities", ["batch", 6])]
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.UINT8
    assert b".py" not in content
    assert b"/src" not in content
    assert capfd.readouterr() == ("", "")


def shape(value: onnx.ValueInfoProto) -> list[str | int]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


class Moody(Scorer):
    """Computes other things for other images."""

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        return output.logits if output.logits.mean() > 0 else -output.logits


class Forgetful(Scorer):
    """Computes a number outside of PyTorch, which the exporter can't follow."""

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        return output.logits * float(output.logits.abs().max())


class Sized(Scorer):
    """Depends on the batch's size, as a number."""

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        return output.logits + torch.zeros(int(output.logits.shape[0]), 1)


def test_a_model_that_is_no_graph_is_refused_in_one_line(plain: Snapshot, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"^export: PyTorch can't turn this model into ONNX \(\w.*\); use .*$"):
        export(replace(plain, scorers={MAIN: Moody()}), GREY, NOISE)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("scorer", [Forgetful(), Sized()])
def test_what_the_exporter_cant_follow_is_found_by_comparison(scorer: Scorer, plain: Snapshot) -> None:
    with pytest.raises((ExportDiffersError, UserError)):
        export(replace(plain, scorers={MAIN: scorer}), GREY, NOISE)


def wrong(network: Network) -> Network:
    other = network.clone()
    other.head.weight.add_(0.01)
    return other


def test_outputs_unlike_pytorchs_are_not_exported(plain: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "folded", wrong)
    with pytest.raises(ExportDiffersError, match=r"scores of ONNX Runtime and PyTorch differ by \d\.\de-\d\d"):
        export(plain, GREY, NOISE)
