"""Resizing of decoded images, antialiased, in numpy: the same pixels, to the bit, as PyTorch's function gives.

PyTorch resizes columns, then rows. An output pixel is the mean of the input pixels around its centre, with weights that
fall with the distance and are rounded to 16-bit integers; sums are exact, and rounded to whole grey levels after each
direction. Here the same integers are multiplied as floating-point matrices, in which they are exact too. Prediction
without PyTorch needs this; where PyTorch is loaded anyway, its function is several times as fast.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssil.core.network_input import Interpolation

Pixels = NDArray[np.uint8]
Numbers = NDArray[np.floating]

RADIUS = {"bilinear": 1.0, "bicubic": 2.0}
"""The distance in pixels from which on the weight is zero."""
SHARPNESS = -0.5
"""The parameter of the cubic kernel (Keys, 1981)."""
MAX_PRECISION, MAX_WEIGHT = 22, 1 << 15
"""Weights are multiplied by the largest power of two, up to the first one, that keeps them below the second."""
EXACT_IN_FLOAT32 = 1 << 24
"""Integers up to this size are exact in single precision."""
BLOCK_INPUTS = 32
"""About how many input pixels the outputs of a block have; others have the weight zero."""


class Block(NamedTuple):
    """Some neighbouring outputs, the inputs that they depend on, and the weights (inputs, outputs)."""

    outputs: slice
    inputs: slice
    weights: Numbers


class Weights(NamedTuple):
    """The weights of one direction, block by block; they are integers, 2 ** precision times the true ones."""

    blocks: tuple[Block, ...]
    precision: int
    exact_in_float32: bool


def resize_pixels(image: Pixels, out: Pixels, interpolation: Interpolation = "bilinear") -> None:
    """Write an image (H, W, C), resized, into `out` (h, w, C)."""
    height, width, channels = image.shape
    new_height, new_width, _ = out.shape
    across = _weights(width, new_width, channels, interpolation)
    down = _weights(height, new_height, 1, interpolation)
    kind = np.float32 if across.exact_in_float32 and down.exact_in_float32 else np.float64
    rows = image.reshape(height, width * channels).astype(kind)
    columns = np.empty((height, new_width * channels), kind)
    for outputs, inputs, weights in across.blocks:
        np.matmul(rows[:, inputs], weights, out=columns[:, outputs], casting="same_kind")
    _to_grey_levels(columns, across.precision)
    resized = np.empty((new_height, new_width * channels), kind)
    for outputs, inputs, weights in down.blocks:
        np.matmul(weights.T, columns[inputs], out=resized[outputs], casting="same_kind")
    out[:] = _to_grey_levels(resized, down.precision).reshape(out.shape)


def _to_grey_levels(sums: Numbers, precision: int) -> Numbers:
    """Divide by 2 ** precision, round half up and clip, in place."""
    sums += 1 << precision - 1
    sums *= 2.0**-precision
    return np.clip(np.floor(sums, out=sums), 0, 255, out=sums)


class Taps(NamedTuple):
    """The input pixels of each output pixel: the first, the end, and their weights (outputs, most inputs)."""

    first: NDArray[np.int64]
    end: NDArray[np.int64]
    weights: NDArray[np.float64]


@lru_cache(64)
def _weights(size: int, new: int, channels: int, interpolation: Interpolation) -> Weights:
    """Return the weights from `size` to `new` pixels, each of which has its channels side by side."""
    taps = _taps(size, new, interpolation)
    precision = _precision(float(taps.weights.max()))
    integers = np.trunc(taps.weights * (1 << precision) + np.copysign(0.5, taps.weights))
    largest_sum = 255 * float(np.abs(integers).sum(1).max()) + (1 << precision - 1)
    exact = largest_sum <= EXACT_IN_FLOAT32
    kind, step = np.float32 if exact else np.float64, max(1, round(BLOCK_INPUTS * new / size))
    rounded = taps._replace(weights=integers)
    parts = [range(start, min(start + step, new)) for start in range(0, new, step)]
    return Weights(tuple(_block(rounded, part, channels, kind) for part in parts), precision, exact)


def _taps(size: int, new: int, interpolation: Interpolation) -> Taps:
    """Return the true weights; every step rounds as PyTorch's does, in double precision."""
    scale = size / new
    stretch = max(scale, 1.0)
    radius = RADIUS[interpolation] * stretch
    centres = scale * (np.arange(new) + 0.5)
    first = np.maximum((centres - radius + 0.5).astype(np.int64), 0)
    end = np.minimum((centres + radius + 0.5).astype(np.int64), size)
    inputs = first[:, None] + np.arange(int(np.ceil(radius)) * 2 + 1)
    weights = _kernel(np.abs(inputs - centres[:, None] + 0.5) * (1 / stretch), interpolation)
    weights[inputs >= end[:, None]] = 0.0
    totals = np.add.accumulate(weights, axis=1)[:, -1:]  # from left to right, unlike np.sum
    return Taps(first, end, weights / totals)


def _kernel(distance: NDArray[np.float64], interpolation: Interpolation) -> NDArray[np.float64]:
    """Return the weight at a distance, in units of the kernel's width."""
    x, a = distance, SHARPNESS
    if interpolation == "bilinear":
        return np.where(x < 1, 1 - x, 0.0)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _precision(largest: float) -> int:
    """Return the power of two by which weights are multiplied before they are rounded."""
    return next(
        (bits for bits in range(MAX_PRECISION) if int(0.5 + largest * (1 << bits + 1)) >= MAX_WEIGHT), MAX_PRECISION
    )


def _block(taps: Taps, outputs: range, channels: int, kind: type[np.floating]) -> Block:
    """Return the weights of some outputs as a dense matrix, in which every channel has rows and columns of its own."""
    start, end = int(taps.first[outputs[0]]), int(taps.end[outputs[-1]])
    dense = np.zeros((end - start, len(outputs)), kind)
    for column, output in enumerate(outputs):
        first, last = int(taps.first[output]), int(taps.end[output])
        dense[first - start : last - start, column] = taps.weights[output, : last - first]
    return Block(
        slice(outputs[0] * channels, (outputs[-1] + 1) * channels),
        slice(start * channels, end * channels),
        np.kron(dense, np.eye(channels)).astype(kind),
    )
