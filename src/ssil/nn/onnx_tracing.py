"""Networks as ONNX graphs, by PyTorch's older exporter, which follows the operations of one evaluation.

What tracing can't see is refused: a value of a tensor that leaves PyTorch, for example to choose a branch
(`_NoPythonValues`). A batch size that became a constant is found by comparison at other sizes. docs/adr/0008 says why
the older exporter is used.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from io import BytesIO, StringIO
from typing import Any

import onnx
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

OPSET = 18
"""The version of ONNX's operators."""
CONVERSIONS = (
    Tensor.__bool__,
    Tensor.__int__,
    Tensor.__float__,
    Tensor.__index__,
    Tensor.item,
    Tensor.tolist,
    Tensor.numpy,
    Tensor.__array__,
)
"""By these a value leaves PyTorch."""
TOLERANCE = 1e-4
"""The largest `difference` between the outputs of ONNX Runtime and PyTorch that is allowed."""


def traced(module: nn.Module, images: Tensor, name: str, outputs: Sequence[str]) -> onnx.ModelProto:
    """Return a module in eval mode as a graph for batches of any size; PyTorch raises errors of many types.

    Args:
        module: A function of images.
        images: On which it is followed.
        name: The input's name in the graph.
        outputs: The outputs' names.
    """
    file = BytesIO()
    with _NoPythonValues(), torch.inference_mode():
        module.eval()(images)
    with _quiet():
        torch.onnx.export(
            module,
            (images,),
            file,  # type: ignore[arg-type]  # the older exporter takes files, unlike the newer one
            input_names=[name],
            output_names=[*outputs],
            dynamic_axes={axis: {0: "batch"} for axis in (name, *outputs)},
            opset_version=OPSET,
            dynamo=False,
        )
    return onnx.load_from_string(file.getvalue())


class _NoPythonValues(TorchFunctionMode):
    """Raises ValueError where a tensor becomes a number, a truth value or an array, which would be a constant."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in CONVERSIONS:
            raise ValueError("the value of a tensor decides what is computed")
        return func(*args, **(kwargs or {}))


def first_line(error: BaseException) -> str:
    """Return the first line of the original error; PyTorch wraps it in advice to its own developers."""
    return first_line(error.__cause__) if error.__cause__ else str(error).strip().partition("\n")[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress logs, warnings, and the graph that PyTorch prints before an error."""
    disabled = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest value if that is above 1; infinities and NaN must agree.

    >>> difference(torch.tensor([-torch.inf, 3.0]), torch.tensor([-torch.inf, 4.0]))
    0.25
    >>> difference(torch.tensor([0.0, 3.0]), torch.tensor([-torch.inf, 3.0]))
    inf
    """
    if found.shape != expected.shape:
        return torch.inf
    same = (found == expected) | (found.isnan() & expected.isnan())
    largest = expected.where(expected.isfinite(), 0).abs().amax().clamp(min=1)
    return float(((found - expected).abs().masked_fill(same, 0) / largest).amax())
