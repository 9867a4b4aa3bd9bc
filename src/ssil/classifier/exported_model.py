"""Prediction by a version's `model.onnx` in ONNX Runtime. Nothing here imports torch, which takes most of a second.

The file may be a stranger's: only a graph of standard operators, all of whose numbers are in the file, is run.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, TensorProto
from onnxruntime import InferenceSession

from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.model_files import read_checked, read_checked_json, text
from ssil.classifier.unknown import Threshold, are_unknown, checked_threshold
from ssil.classifier.versions import ONNX, THRESHOLD, VersionedDirectory
from ssil.core.cpu import usable_cores
from ssil.core.errors import UserError, one_line
from ssil.core.model_layout import MODEL
from ssil.core.onnx_session import cpu_session, run_in_batches
from ssil.data.decode import Pixels
from ssil.data.image_index import Preprocessing

INPUT, SCORES, PROBABILITIES = "images", "scores", "probabilities"
"""The names of the input and the outputs."""
DOMAINS = ("", "ai.onnx")
"""Of ONNX's own operators."""
SUBGRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


class Prediction(NamedTuple):
    """The most likely classes of one image with their probabilities, the most likely first."""

    name: str
    """The image's name."""
    ranking: tuple[tuple[str, float], ...]
    unknown: bool = False
    """Whether the image is probably of no known class."""


class Predictor(NamedTuple):
    """What predicts, whether ONNX Runtime or PyTorch: the views that it needs, and a function of their names and them.

    The function's third argument is the number of classes to name.
    """

    preprocessing: Preprocessing
    predict: Callable[[Sequence[str], Pixels, int], Iterator[Prediction]]


class ExportedVersion(NamedTuple):
    """A version's `model.onnx`, whose checksum is right, and what is needed to use it."""

    number: int
    class_names: tuple[str, ...]
    preprocessing: Preprocessing
    path: Path
    content: bytes
    threshold: Threshold | None
    """Of unknown images, see `are_unknown`."""


def load_predictor(
    folder: Path, number: int | None = None, trusted: Collection[str] = (), threads: int | None = None
) -> Predictor:
    """Return what predicts by a version of a model directory, by default the current one.

    Args:
        folder: The model directory.
        number: The version.
        trusted: Methods and backbones from files that may be loaded, for a version without `model.onnx`.
        threads: The number of threads that compute; by default one per core that this process may use.
    """
    if not (exported := read_exported(folder, number)):
        return _torch_predictor(folder, number, trusted, threads)
    session = open_session(exported.content, threads or usable_cores(), str(exported.path))
    return Predictor(exported.preprocessing, partial(_predict, session, exported.class_names, exported.threshold))


def _torch_predictor(folder: Path, number: int | None, trusted: Collection[str], threads: int | None) -> Predictor:
    import torch

    from ssil.classifier.model_directory import ModelDirectory
    from ssil.classifier.prediction import predict_views

    if threads:
        torch.set_num_threads(threads)
    classifier = ModelDirectory(folder, trusted).load(number).classifier
    return Predictor(classifier.settings.preprocessing(), partial(predict_views, classifier))


def read_exported(folder: Path, number: int | None = None) -> ExportedVersion | None:
    """Return the `model.onnx` of a version, by default of the current one; None if the version has none."""
    return VersionedDirectory(folder).read(number, _read)


def _read(folder: Path, number: int) -> ExportedVersion | None:
    path = folder / MODEL
    description = read_checked_json(path)
    if (digest := description.get("onnx")) is None:
        return None
    try:
        preprocessing = make_settings(description["settings"]).preprocessing()
        names = tuple(map(text, description["classes"]["names"]))
        threshold = checked_threshold(description.get(THRESHOLD))
        content = read_checked(folder / ONNX, text(digest), "restore it, or roll back")
    except UserError:
        raise
    except Exception as error:  # of any type: the file may be made to cause it
        raise UserError(f"model: {path} is not what it should be ({one_line(error)})") from None
    return ExportedVersion(number, names, preprocessing, folder / ONNX, content, threshold)


def open_session(content: bytes, threads: int, name: str = ONNX) -> InferenceSession:
    """Return a session of a checked ONNX file; raise UserError if it is none, or not to be trusted."""
    try:
        refuse_unusual_graph(ModelProto.FromString(content))
        session = cpu_session(content, threads)
        _check_interface(session)
    except Exception as error:  # ONNX Runtime and protobuf raise many types
        raise UserError(
            f"model: {name} is not what it should be ({one_line(error)}); restore it, or roll back"
        ) from None
    return session


def refuse_unusual_graph(model: ModelProto) -> None:
    """Raise ValueError if a graph has functions, branches, operators of others, or numbers in other files."""
    graph = model.graph
    domains = {node.domain for node in graph.node} | {needed.domain for needed in model.opset_import}
    if other := sorted(domains - {*DOMAINS}):
        raise ValueError(f"operators of {other[0]!r}")
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    if model.functions or any(attribute.type in SUBGRAPHS for attribute in attributes):
        raise ValueError("functions or branches")
    tensors = [*graph.initializer, *(one for attribute in attributes for one in (attribute.t, *attribute.tensors))]
    outside = any(one.data_location == TensorProto.EXTERNAL or one.external_data for one in tensors)
    sparse = graph.sparse_initializer or any(one.sparse_tensors or one.HasField("sparse_tensor") for one in attributes)
    if outside or sparse:
        raise ValueError("numbers in other files, or sparse ones")


def _check_interface(session: InferenceSession) -> None:
    inputs = [(one.name, one.type) for one in session.get_inputs()]
    outputs = [one.name for one in session.get_outputs()]
    if inputs != [(INPUT, "tensor(uint8)")] or outputs != [SCORES, PROBABILITIES]:
        raise ValueError(f"it maps {inputs} to {outputs}")


def run_views(session: InferenceSession, views: Pixels) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the scores and the probabilities (N, classes) of images (N, S, S, C); there must be one image or more."""
    scores, probabilities = run_in_batches(session, [SCORES, PROBABILITIES], views, views.shape[1] * views.shape[2])
    return scores, probabilities


def _predict(
    session: InferenceSession,
    names: Sequence[str],
    threshold: Threshold | None,
    image_names: Sequence[str],
    views: Pixels,
    top: int,
) -> Iterator[Prediction]:
    if not len(views):
        return
    try:
        scores, probabilities = run_views(session, views)
        if not scores.shape == probabilities.shape == (len(views), len(names)):
            raise ValueError(f"{scores.shape} scores for {len(views)} images and {len(names)} classes")
    except Exception as error:  # ONNX Runtime raises many types
        raise UserError(f"model: its {ONNX} is not what it should be ({one_line(error)}); roll back") from None
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    unknown = are_unknown(scores, threshold).tolist()
    for image, labels, row, strange in zip(image_names, order.tolist(), probabilities, unknown, strict=True):
        yield Prediction(image, tuple((names[label], float(row[label])) for label in labels), strange)
