"""Export in 8-bit integers: what is quantised, on which images, and what it costs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import numpy_helper

from ssil.classifier import int8_export as module
from ssil.classifier.exported_model import open_session, run_views
from ssil.classifier.image_file import ImagesByClass
from ssil.classifier.images import image_samples
from ssil.classifier.int8_export import quantise
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.onnx_export import export_classifier
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from ssil.cli import main
from ssil.core.errors import UserError
from tiny_classifiers import labelled_images, settings

NAMES = ["ant", "bee", "cat"]


@cache
def classifier() -> Classifier:
    return update(None, settings(backbone="resnet14"), labelled_images(NAMES)).classifier


@cache
def exported() -> bytes:
    return export_classifier(classifier(), 1)


def views(groups: ImagesByClass) -> NDArray[np.uint8]:
    images = [image for group in groups for image in group]
    return (
        image_samples(images, [0] * len(images), classifier().settings.preprocessing())
        .images.fetch(torch.arange(len(images)))
        .numpy()
    )


def holdout_views() -> NDArray[np.uint8]:
    return views(classifier().holdout)


def test_convolutions_have_8_bit_weights_and_scores_stay_close() -> None:
    small = quantise(exported(), classifier()).content
    graph = onnx.load_from_string(small).graph
    convolutions = sum(node.op_type == "Conv" for node in graph.node)
    large = [tensor for tensor in graph.initializer if np.prod(tensor.dims) >= 3 * 3 * 16]
    eights = [tensor for tensor in large if tensor.data_type == onnx.TensorProto.INT8]
    assert len(eights) == convolutions == 15
    assert len(small) < 0.6 * len(exported())
    before, after = (run_views(open_session(content, 1), holdout_views())[0] for content in (exported(), small))
    assert not np.array_equal(before, after)
    assert np.abs(before - after).max() < 0.2 * np.abs(before).max()


def test_head_and_metadata_are_the_exports() -> None:
    before, after = (onnx.load_from_string(one) for one in (exported(), quantise(exported(), classifier()).content))
    known = {entry.key: entry.value for entry in after.metadata_props}
    assert {entry.key: entry.value for entry in before.metadata_props}.items() <= known.items()
    assert (known["precision"], after.producer_name) == ("int8", "ssil")
    head = classifier().snapshot.network.head.weight
    kept = [numpy_helper.to_array(tensor) for tensor in after.graph.initializer]
    assert any(tensor.dtype == np.float32 and np.isin(head, tensor).all() for tensor in kept)


def test_accuracies_are_those_of_the_two_files() -> None:
    made = quantise(exported(), classifier())
    labels = [label for label, group in enumerate(classifier().holdout) for _ in group]
    for content, said in ((exported(), made.before), (made.content, made.after)):
        scores = run_views(open_session(content, 1), holdout_views())[0]
        assert said == 100 * sum(map(int, scores.argmax(1) == labels)) / len(labels)


@pytest.mark.parametrize("kept", ["exemplars", "holdout", "both"])
def test_images_of_calibration(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exemplars if there are any, else the hold-out set."""
    own, seen = classifier(), list[NDArray[np.uint8]]()
    empty: dict[str, ImagesByClass] = {"exemplars": ((),) * 3, "holdout": ((),) * 3}
    given = own if kept == "both" else replace(own, **{**empty, kept: getattr(own, kept)})

    def quantised(model: onnx.ModelProto, images: Iterator[NDArray[np.uint8]]) -> bytes:
        seen.extend(images)
        return exported()

    monkeypatch.setattr(module, "_quantised", quantised)
    made = quantise(exported(), given)
    wanted = views(own.holdout if kept == "holdout" else own.exemplars)
    assert np.array_equal(np.concatenate(seen), wanted)
    assert (made.before is None) == (made.after is None) == (kept == "exemplars")


def test_without_images_or_convolutions_it_is_refused() -> None:
    nothing = replace(classifier(), exemplars=((),) * 3, holdout=((),) * 3)
    with pytest.raises(UserError, match=r"^int8: the model keeps no image to calibrate on; .*--memory$"):
        quantise(exported(), nothing)
    model = onnx.load_from_string(exported())
    for node in model.graph.node:
        node.op_type = "Relu"
    with pytest.raises(UserError, match=r"^int8: the model has no convolution.*; export it without --int8$"):
        module._quantised(model, [])


def test_a_strangers_unusual_file_is_refused_before_it_is_run() -> None:
    model = onnx.load_from_string(exported())
    model.graph.node[0].domain = "com.microsoft"
    with pytest.raises(UserError, match=r"operators of 'com.microsoft'"):
        quantise(model.SerializeToString(), classifier())


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, out = ModelDirectory(tmp_path / "model"), tmp_path / "small.onnx"
    with directory.locked():
        directory.publish(classifier(), [{}])
    assert main(["export", str(directory.folder), str(out), "--int8"]) == 0
    said = capsys.readouterr().out
    made = quantise(exported(), classifier())
    assert f"hold-out accuracy: {made.before:.1f} % before, {made.after:.1f} % in 8-bit integers" in said
    scores = run_views(open_session(out.read_bytes(), 1), holdout_views())[0]
    assert np.array_equal(scores, run_views(open_session(made.content, 1), holdout_views())[0])
    assert torch.from_numpy(scores).isfinite().all()
    assert json.loads({entry.key: entry.value for entry in onnx.load(out).metadata_props}["class_names"]) == NAMES
