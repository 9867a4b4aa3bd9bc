"""Static quantisation of an exported classifier: convolutions in 8-bit integers, calibrated on images that it keeps.

What is before the first convolution (normalisation) and behind the last one (head and scorer) stays in single
precision: it takes hardly any time, and scores of many classes may differ by little.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx.helper import set_model_props
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from ssil.classifier.exported_model import INPUT, open_session, run_views
from ssil.classifier.final_fit import without_holdout
from ssil.classifier.image_file import ImageFile, ImagesByClass
from ssil.classifier.images import image_samples
from ssil.classifier.onnx_export import export_classifier
from ssil.classifier.prediction import Classifier
from ssil.core.errors import UserError, one_line
from ssil.data.decode import Pixels
from ssil.data.image_index import Labels

CALIBRATED = 256
"""Images at most on which the ranges of the maps are measured, spread over the classes."""
BATCH = 32
"""Images that are decoded at a time."""
QUANTISED = ("Conv", "Relu", "Clip", "Add")
"""Operators that may be quantised; a ReLU or a clip becomes a part of the quantisation of its convolution."""


class Comparison(NamedTuple):
    """What 8-bit integers change, on images by which neither the classifier nor the ranges of numbers were chosen."""

    images: int
    before: int
    """How many are classified correctly in single precision."""
    lost: int
    """How many are so only in single precision."""
    gained: int
    """How many are so only in 8-bit integers."""
    same: int
    """How many are given the same class by both."""

    @property
    def after(self) -> int:
        """How many are classified correctly in 8-bit integers."""
        return self.before - self.lost + self.gained


class Int8Export(NamedTuple):
    """An ONNX file in 8-bit integers, and what that changes on the hold-out set; None if that is too small."""

    content: bytes
    comparison: Comparison | None


def quantise(content: bytes, classifier: Classifier) -> Int8Export:
    """Return an exported classifier in 8-bit integers, calibrated on its exemplars, or else on its hold-out set.

    Args:
        content: The classifier as an ONNX file, in single precision.
        classifier: The same classifier, with the images that it keeps.

    Raises:
        UserError: The classifier keeps no image, has no convolution, or is nothing that ONNX Runtime can quantise.
    """
    kept = _members(classifier.exemplars) or _members(classifier.holdout)
    if not kept:
        raise UserError("int8: the model keeps no image to calibrate on; learn with a larger --memory")
    open_session(content, 1)  # refuses a stranger's unusual file
    small = _calibrated(content, kept, classifier)
    return Int8Export(small, _comparison(content, small, classifier))


def _members(groups: ImagesByClass) -> tuple[ImageFile, ...]:
    return tuple(chain.from_iterable(groups))


def _calibrated(content: bytes, images: Sequence[ImageFile], classifier: Classifier) -> bytes:
    chosen = images[:: -(-len(images) // CALIBRATED)]
    return _quantised(onnx.load_from_string(content), _views(chosen, classifier))


def _comparison(content: bytes, small: bytes, classifier: Classifier) -> Comparison | None:
    """Compare both precisions on the hold-out set; return None if it is empty or can't be divided.

    The classifier of a method that adds up features is judged as it was before it learnt these images. Where there
    are no exemplars to calibrate on, each half of the hold-out set is judged with ranges measured on the other half.
    """
    exemplars, holdout = _members(classifier.exemplars), _members(classifier.holdout)
    halves = [(holdout[::2], slice(1, None, 2)), (holdout[1::2], slice(0, None, 2))]
    parts = [(exemplars, slice(None))] if exemplars else halves
    if not holdout or not all(images for images, _ in parts):
        return None
    judged = without_holdout(classifier)
    unseen = content if judged is classifier else export_classifier(judged, 0)
    before, after = _predicted(unseen, holdout, classifier), np.full(len(holdout), -1)
    for images, tested in parts:
        own = small if exemplars and unseen is content else _calibrated(unseen, images, classifier)
        after[tested] = _predicted(own, holdout[tested], classifier)
    return _compared(before, after, np.array(_labels(classifier.holdout)))


def _compared(before: Labels, after: Labels, labels: Labels) -> Comparison:
    right, still = before == labels, after == labels
    counts = right, right & ~still, still & ~right, before == after
    return Comparison(len(labels), *(int(one.sum()) for one in counts))


def _labels(groups: ImagesByClass) -> list[int]:
    return [label for label, group in enumerate(groups) for _ in group]


def _views(images: Sequence[ImageFile], classifier: Classifier) -> Iterator[Pixels]:
    """Yield the test views of images (N, S, S, C), a batch at a time."""
    samples = image_samples(images, [0] * len(images), classifier.settings.preprocessing())
    for indices in torch.arange(len(images)).split(BATCH):
        yield samples.images.fetch(indices).numpy()


class _Reader(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
    """Gives ONNX Runtime the images, one at a time."""

    def __init__(self, batches: Iterable[Pixels]):
        self.images = (batch[at : at + 1] for batch in batches for at in range(len(batch)))

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        """Return the next input, or None behind the last."""
        image = next(self.images, None)
        return None if image is None else {INPUT: image}


def _quantised(model: onnx.ModelProto, images: Iterable[Pixels]) -> bytes:
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    origin = model.producer_name, model.producer_version
    nodes = _backbone_nodes(model)
    try:
        small = _quantised_graph(model, nodes, images)
    except UserError:
        raise
    except Exception as error:  # ONNX Runtime raises many types
        cure = "export it without --int8"
        raise UserError(f"int8: ONNX Runtime can't quantise this model ({one_line(error)}); {cure}") from error
    small.producer_name, small.producer_version = origin
    set_model_props(small, {**metadata, "precision": "int8"})
    content: bytes = small.SerializeToString()
    return content


def _quantised_graph(model: onnx.ModelProto, nodes: Sequence[str], images: Iterable[Pixels]) -> onnx.ModelProto:
    disabled = logging.root.manager.disable
    logging.disable()  # ONNX Runtime recommends a fusion that the export has done
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "int8.onnx"
            quantize_static(
                model,
                path,
                _Reader(images),
                QuantFormat.QDQ,
                [*QUANTISED],
                per_channel=True,
                reduce_range=True,  # of the weights: without VNNI, sums of 8-bit products would overflow 16 bits
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                nodes_to_quantize=[*nodes],
            )
            return onnx.load(path)
    finally:
        logging.disable(disabled)


def _backbone_nodes(model: onnx.ModelProto) -> list[str]:
    """Return the names of the operators from the first convolution to the last."""
    convolutions = [index for index, node in enumerate(model.graph.node) if node.op_type == "Conv"]
    if not convolutions:
        raise UserError("int8: the model has no convolution, and only those are quantised; export it without --int8")
    first, last = convolutions[0], convolutions[-1]
    return [node.name for node in model.graph.node[first : last + 1]]


def _predicted(content: bytes, images: Sequence[ImageFile], classifier: Classifier) -> Labels:
    """Return the labels of the classes that ONNX Runtime predicts for images."""
    session = open_session(content, torch.get_num_threads())
    return np.concatenate([run_views(session, views)[0].argmax(1) for views in _views(images, classifier)])
