"""Export of a snapshot to ONNX: images in, scores and probabilities out, compared with PyTorch's outputs."""

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from copy import deepcopy
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from ssil.core import __version__
from ssil.core.errors import UserError
from ssil.core.files import replacing
from ssil.core.randomness import Randomness
from ssil.data.augmentation import Transform
from ssil.learning.snapshot import MAIN, Snapshot
from ssil.nn.network import folded

if TYPE_CHECKING:
    from onnx import ModelProto

BATCHES = (1, 7)
"""The batch sizes at which the outputs are compared with PyTorch's."""
TOLERANCE = 1e-4
"""The largest difference allowed, see `_difference`."""


class OnnxOutputs(NamedTuple):
    """The outputs for a batch; the fields' names are those in the file."""

    scores: Tensor
    probabilities: Tensor


def export(
    snapshot: Snapshot,
    transform: Transform,
    size: int,
    channels: int,
    path: Path,
    temperature: float = 1.0,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write normalisation, network and main scorer as one ONNX file, for batches of any size.

    The input `images` is uint8 (N, size, size, channels), the outputs `scores` and `probabilities` are (N, classes).
    The names of the classes are added to `metadata` as `class_names`, a JSON list. Where ONNX Runtime is installed,
    its outputs are compared with PyTorch's before the file is written.

    Raises:
        UserError: A library is missing, or a user's own backbone, head or scorer can't be exported.
        RuntimeError: ONNX Runtime's outputs differ from PyTorch's.
    """
    if not (find_spec("onnx") and find_spec("onnxscript")):
        raise UserError("export: onnx or onnxscript is missing; install them with pip install 'ssil[onnx]'")
    shape = (max(BATCHES), size, size, channels)
    images = torch.randint(256, shape, dtype=torch.uint8, generator=Randomness(0).at("export"))
    model = _onnx(_Exported(snapshot, transform, temperature), images)
    content = _content(model, {**(metadata or {}), "class_names": json.dumps(snapshot.classes.names)})
    if find_spec("onnxruntime"):
        _compare(content, images, _expected(snapshot, transform, temperature, images))
    with replacing(path) as file:
        file.write(content)


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


def _onnx(exported: _Exported, images: Tensor) -> "ModelProto":
    """Return the model as a graph; a UserError blames the user's code, as all parts of ssil can be exported."""
    shapes = {"images": {0: torch.export.Dim("batch")}}
    try:
        with _quiet():
            # Without strict, len(tensor) in the model would silently fix the batch size.
            program = torch.export.export(exported.eval(), (images,), dynamic_shapes=shapes, strict=True)
            outputs = OnnxOutputs._fields
            result = torch.onnx.export(
                program, input_names=["images"], output_names=outputs, dynamic_shapes=shapes, dynamo=True, verbose=False
            )
    except Exception as error:  # torch and onnxscript raise many types
        cure = "use operations that ONNX has in backbone, head and scorer, the same ones for all images"
        raise UserError(f"export: PyTorch can't turn this model into ONNX ({_reason(error)}); {cure}") from error
    assert result
    return result.model_proto


def _reason(error: BaseException) -> str:
    """Return the first line of the original error; PyTorch wraps it in advice to its own developers."""
    return _reason(error.__cause__) if error.__cause__ else str(error).strip().partition("\n")[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress PyTorch's warning about its own code, its logs, and the graph that it prints before an error."""
    disabled = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
            yield
    finally:
        logging.disable(disabled)


def _content(model: "ModelProto", metadata: Mapping[str, str]) -> bytes:
    """Return the file's content, checked, with `metadata` in place of PyTorch's, which has local stack traces."""
    from onnx.checker import check_model
    from onnx.helper import set_model_props

    graph = model.graph
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info):
        del part.metadata_props[:]
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
    """Raise RuntimeError if ONNX Runtime's outputs differ from the expected ones, at any of the batch sizes."""
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = InferenceSession(content, options, providers=["CPUExecutionProvider"])
    for batch in BATCHES:
        outputs = session.run(OnnxOutputs._fields, {"images": images[:batch].numpy()})
        for name, found, whole in zip(OnnxOutputs._fields, outputs, expected, strict=True):
            if not (gap := _difference(torch.from_numpy(found), whole[:batch])) <= TOLERANCE:
                raise RuntimeError(f"export: {name} of ONNX Runtime and PyTorch differ by {gap:.1e}")


def _difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest value if that is above 1; infinities and NaN must agree.

    >>> _difference(torch.tensor([-torch.inf, 3.0]), torch.tensor([-torch.inf, 4.0]))
    0.25
    >>> _difference(torch.tensor([0.0, 3.0]), torch.tensor([-torch.inf, 3.0]))
    inf
    """
    same = (found == expected) | (found.isnan() & expected.isnan())
    largest = expected.where(expected.isfinite(), 0).abs().amax().clamp(min=1)
    return float(((found - expected).abs().masked_fill(same, 0) / largest).amax())
