"""Export of a classifier to ONNX: images in, scores and probabilities out, compared with PyTorch's outputs."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import NamedTuple

import onnx
import torch
from onnx.checker import check_model
from onnx.helper import set_model_props
from torch import Tensor, nn

from ssil.classifier.exported_model import INPUT, PROBABILITIES, SCORES, open_session, refuse_unusual_graph
from ssil.classifier.images import image_samples
from ssil.classifier.prediction import Classifier
from ssil.classifier.unknown import stated_threshold
from ssil.core import __version__
from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.data.assemble import make_transform
from ssil.data.augmentation import Transform
from ssil.data.image_index import Preprocessing
from ssil.learning.snapshot import MAIN, Snapshot
from ssil.nn.network import folded
from ssil.nn.onnx_tracing import TOLERANCE, difference, first_line, traced

TRACED, COMPARED = 3, 32
"""Random images on which the export is made, and images at most on which it is compared with PyTorch."""


class OnnxOutputs(NamedTuple):
    """The outputs for a batch; the fields' names are those in the file."""

    scores: Tensor
    probabilities: Tensor


class ExportDiffersError(RuntimeError):
    """The exported file does not compute what PyTorch computes."""


def try_export(classifier: Classifier, version: int) -> tuple[bytes | None, str | None]:
    """Return the content of `model.onnx`, or None and the reason if the classifier can't be exported."""
    try:
        return export_classifier(classifier, version), None
    except (UserError, ExportDiffersError) as error:
        return None, str(error)


def export_classifier(classifier: Classifier, version: int) -> bytes:
    """Return a classifier as the content of an ONNX file, after a comparison on images that it keeps.

    Raises:
        UserError: A user's own backbone, head or scorer can't be exported.
        ExportDiffersError: ONNX Runtime's outputs differ from PyTorch's.
    """
    preprocessing = classifier.settings.preprocessing()
    metadata = {
        "method": classifier.settings.method,
        "version": str(version),
        "size": str(preprocessing.size),
        "centre": json.dumps(preprocessing.centre),
        "interpolation": preprocessing.interpolation,
        "unknown_below": json.dumps(stated_threshold(classifier.threshold)),
    }
    images, transform = comparison_images(classifier), make_transform(preprocessing)
    return export(classifier.snapshot, transform, images, classifier.temperature, metadata)


def export(
    snapshot: Snapshot,
    transform: Transform,
    images: Tensor,
    temperature: float = 1.0,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Return normalisation, network and main scorer as the content of one ONNX file, for batches of any size.

    The input `images` is uint8 (N, size, size, channels), the outputs `scores` and `probabilities` are (N, classes).
    The names of the classes are added to `metadata` as `class_names`, a JSON list. Of a classifier, `unknown_below`
    is the lead of the highest score over the next ones (`rivals`) below which an image is unknown, or null.

    Args:
        snapshot: The model.
        transform: From images to the network's input.
        images: On which ONNX Runtime's outputs are compared with PyTorch's, one by one and all at once.
        temperature: Scores are divided by it before they become probabilities.
        metadata: What else the file says.

    Raises:
        UserError: A user's own backbone, head or scorer can't be exported.
        ExportDiffersError: ONNX Runtime's outputs differ from PyTorch's.
    """
    noise = torch.randint(256, (TRACED, *images.shape[1:]), dtype=torch.uint8, generator=Randomness(0).at("export"))
    graph = _graph(_Exported(snapshot, transform, temperature), noise)
    content = _content(graph, {**(metadata or {}), "class_names": json.dumps(snapshot.classes.names)})
    _compare(content, images, _expected(snapshot, transform, temperature, images))
    return content


@torch.inference_mode()
def comparison_images(classifier: Classifier) -> Tensor:
    """Return images (N, S, S, C) of the hold-out set, spread over the classes; else exemplars, else noise."""
    preprocessing = classifier.settings.preprocessing()
    for groups in (classifier.holdout, classifier.exemplars):
        if kept := [image for group in groups for image in group]:
            chosen = kept[:: -(-len(kept) // COMPARED)]
            return image_samples(chosen, [0] * len(chosen), preprocessing).images.fetch(torch.arange(len(chosen)))
    return _noise(preprocessing)


def _noise(preprocessing: Preprocessing) -> Tensor:
    size, channels = preprocessing.size, preprocessing.channels
    generator = Randomness(0).at("export", "comparison")
    return torch.randint(256, (COMPARED, size, size, channels), dtype=torch.uint8, generator=generator)


class _Exported(nn.Module):
    """A snapshot in single precision, with folded batch norms, in operations that ONNX has."""

    scale: Tensor
    shift: Tensor

    def __init__(self, snapshot: Snapshot, transform: Transform, temperature: float) -> None:
        super().__init__()
        self.network = folded(snapshot.network).cpu().float()
        self.scorer = deepcopy(snapshot.scorers[MAIN]).cpu().float()
        self.classes = snapshot.classes
        self.temperature = temperature
        # The transform's loop over images can't be exported. It is affine in each channel: black and white define it.
        black, white = transform.test(_black_and_white(len(transform.mean)), torch.float64).split(1)
        self.register_buffer("scale", ((white - black) / 255).float())
        self.register_buffer("shift", black.float())

    def forward(self, images: Tensor) -> OnnxOutputs:
        pixels = images.float().permute(0, 3, 1, 2)
        scores = self.scorer(self.network(pixels * self.scale + self.shift), self.classes)
        return OnnxOutputs(scores, self.scorer.probabilities(scores / self.temperature))


def _black_and_white(channels: int) -> Tensor:
    """Return two images of one pixel."""
    return torch.tensor([0, 255], dtype=torch.uint8).repeat_interleave(channels).view(2, 1, 1, channels)


def _graph(exported: _Exported, images: Tensor) -> onnx.ModelProto:
    """Return the model as a graph; a UserError blames the user's code, as all parts of ssil can be exported."""
    try:
        model = traced(exported, images, INPUT, (SCORES, PROBABILITIES))
        refuse_unusual_graph(model)
    except Exception as error:  # torch raises many types
        cure = "use operations that ONNX has in backbone, head and scorer, the same ones for all images"
        raise UserError(f"export: PyTorch can't turn this model into ONNX ({first_line(error)}); {cure}") from error
    return model


def _content(model: onnx.ModelProto, metadata: Mapping[str, str]) -> bytes:
    """Return the file's content, checked, with `metadata`, and without PyTorch's notes on local files."""
    for node in model.graph.node:
        node.ClearField("doc_string")
    model.producer_name, model.producer_version = "ssil", __version__
    set_model_props(model, dict(metadata))
    content: bytes = model.SerializeToString()
    check_model(content, full_check=True)
    return content


@torch.inference_mode()
def _expected(snapshot: Snapshot, transform: Transform, temperature: float, images: Tensor) -> OnnxOutputs:
    """Return PyTorch's outputs, computed on the CPU, as a GPU may round more coarsely."""
    network, scorer = snapshot.network.clone().cpu(), deepcopy(snapshot.scorers[MAIN]).cpu()
    scores = scorer(network(transform.test(images, network.head.weight.dtype)), snapshot.classes)
    return OnnxOutputs(scores, scorer.probabilities(scores / temperature))


def _compare(content: bytes, images: Tensor, expected: OnnxOutputs) -> None:
    """Raise ExportDiffersError if ONNX Runtime's outputs differ, for all images at once, or for the first alone."""
    session = open_session(content, torch.get_num_threads())
    for batch in (1, len(images)):
        outputs = session.run(OnnxOutputs._fields, {INPUT: images[:batch].numpy()})
        for name, found, whole in zip(OnnxOutputs._fields, outputs, expected, strict=True):
            if not (gap := difference(torch.from_numpy(found), whole[:batch])) <= TOLERANCE:
                raise ExportDiffersError(f"{name} of ONNX Runtime and PyTorch differ by {gap:.1e}")
