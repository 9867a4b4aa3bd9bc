"""Export in 8-bit integers: what is quantised, on which images, and what it costs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import numpy_helper

from frozen_classifiers import backbone, frozen
from ssil.classifier import int8_export as module
from ssil.classifier.exported_model import open_session, run_views
from ssil.classifier.holdout import evaluate
from ssil.classifier.image_file import ImageFile, ImagesByClass
from ssil.classifier.images import image_samples
from ssil.classifier.int8_export import Comparison, quantise
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.onnx_export import export_classifier
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from ssil.cli import main
from ssil.core.errors import UserError
from ssil.data.image_index import Labels
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


def test_the_comparison_is_that_of_the_two_files() -> None:
    made = quantise(exported(), classifier())
    labels = [label for label, group in enumerate(classifier().holdout) for _ in group]
    before, after = (
        run_views(open_session(one, 1), holdout_views())[0].argmax(1).tolist() for one in (exported(), made.content)
    )
    assert made.comparison == counted(before, after, labels)


def counted(before: Sequence[int], after: Sequence[int], labels: Sequence[int]) -> Comparison:
    """The comparison, image by image."""
    right = lost = gained = same = 0
    for old, new, label in zip(before, after, labels, strict=True):
        right += int(old == label)
        lost += int(old == label != new)
        gained += int(old != label == new)
        same += int(old == new)
    return Comparison(len(labels), right, lost, gained, same)


def test_counts_of_a_comparison() -> None:
    before, after, labels = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 2, 2, 1, 0, 2]), np.array([0, 1, 2, 1, 2, 0])
    found = module._compared(before, after, labels)
    assert found == counted(before.tolist(), after.tolist(), labels.tolist()) == Comparison(6, 3, 1, 1, 3)
    assert found.after == 3


def closed_form() -> Classifier:
    return update(None, frozen(method="slda"), labelled_images(NAMES), init=backbone()).classifier


def test_a_closed_form_is_compared_as_it_was_before_it_learnt_the_images() -> None:
    own = closed_form()
    comparison = quantise(export_classifier(own, 1), own).comparison
    judged = evaluate(own, own.holdout)
    assert comparison is not None
    assert judged is not None
    assert (comparison.before, comparison.images) == judged.result(NAMES)


def test_each_half_is_tested_with_ranges_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """And with a classifier that has learnt neither."""
    own, calibrated, tested = closed_form(), list[tuple[bytes, set[str]]](), list[tuple[bytes, set[str]]]()
    content, predicted = export_classifier(own, 1), module._predicted

    def calibrating(content: bytes, images: Sequence[ImageFile], _: Classifier) -> bytes:
        calibrated.append((content, {image.digest for image in images}))
        return content

    def predicting(content: bytes, images: Sequence[ImageFile], given: Classifier) -> Labels:
        tested.append((content, {image.digest for image in images}))
        return predicted(content, images, given)

    monkeypatch.setattr(module, "_calibrated", calibrating)
    monkeypatch.setattr(module, "_predicted", predicting)
    quantise(content, own)
    everything = {image.digest for group in own.holdout for image in group}
    assert (calibrated[0], tested[0][1]) == ((content, everything), everything)
    assert len(calibrated) == len(tested) == 3
    for (file, ranges), (_, images) in zip(calibrated[1:], tested[1:], strict=True):
        assert file == tested[0][0] != content
        assert (ranges | images, ranges & images) == (everything, set())
        assert ranges
        assert images


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
    assert np.array_equal(np.concatenate(seen)[: len(wanted)], wanted)
    assert (made.comparison is None) == (kept == "exemplars")


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
    images, before, lost, gained, same = made.comparison or (0, 0, 0, 0, 0)
    accuracies = 100 * before / images, 100 * (before - lost + gained) / images
    assert "hold-out accuracy: {:.1f} % before, {:.1f} % in 8-bit integers".format(*accuracies) in said
    assert f"same class for {same} of {images} images" in said
    assert f"; {lost} now wrong, {gained} now right" in said
    scores = run_views(open_session(out.read_bytes(), 1), holdout_views())[0]
    assert np.array_equal(scores, run_views(open_session(made.content, 1), holdout_views())[0])
    assert torch.from_numpy(scores).isfinite().all()
    assert json.loads({entry.key: entry.value for entry in onnx.load(out).metadata_props}["class_names"]) == NAMES
