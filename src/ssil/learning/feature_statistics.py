"""Statistics of features that add up over images, and the scorers that are computed from them without training.

For each class the number of its images and the sum of their vectors, and over all images the sum of x x' (the Gram
matrix): whatever is computed from these does not depend on the order in which images and classes arrive, or on how
they are divided into tasks. A fifth of the images, chosen by their content, is counted apart, so that a penalty can be
chosen on images that were held back; the final result is computed from all images.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil.core.errors import UserError
from ssil.learning.method import Method
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, TaskState
from ssil.nn.heads import LinearHead

HELD_BACK = 5
"""One image in this number is held back."""
CHUNK = 2048
"""Images whose features are computed and added at a time."""

ROUNDING = 1e-12
"""A spread within the classes of less than this part of all squares is a rounding error."""


class Sums(NamedTuple):
    """The statistics of a set of images."""

    counts: Tensor
    """(classes,) float64"""
    sums: Tensor
    """(classes, width)"""
    gram: Tensor
    """(width, width)"""
    images: Tensor
    """() the images in the Gram matrix: those of the classes, and those of classes that were forgotten"""

    @property
    def means(self) -> Tensor:
        """(classes, width) the mean vector of each class; zero for a class without images."""
        return self.sums / self.counts.clamp(min=1)[:, None]

    def covariance(self) -> Tensor:
        """Return the covariance within the classes (width, width): their scatter, divided by the number of images.

        It is zero if no class has two different images; what rounding leaves in place of zero is removed.
        """
        scatter = self.scatter_about(self.means)
        spread = scatter.trace() > ROUNDING * self.gram.trace()
        return scatter / self.images.clamp(min=1) if spread else torch.zeros_like(scatter)

    def scatter_about(self, centres: Tensor) -> Tensor:
        """Return the sum of (x - centre)(x - centre)' over all images, with the `centres` of their classes."""
        cross = self.sums.T @ centres
        return self.gram - cross - cross.T + centres.T @ (self.counts[:, None] * centres)


class ClosedForm(Scorer):
    """A scorer computed from additive statistics of the vectors that `embed` makes of the features.

    Only images that arrive are added: exemplars were counted in an earlier task.
    """

    float64: ClassVar[tuple[str, ...]] = ("sums", "grams")
    has_gram: ClassVar[bool] = True
    """Whether the Gram matrix is kept."""
    statistics: ClassVar[tuple[str, ...]] = ("counts", "sums", "grams", "images")
    """The buffers that add up; the others are computed from these by `solve`."""
    trace = "the spread of its images stays in the matrix that all classes share"
    counts: Tensor
    sums: Tensor
    grams: Tensor
    images: Tensor
    settled: float | None = None
    """The penalty (or shrinkage) of a copy that `emptied` has made."""
    _chosen: float | None = None
    """The penalty that `solve` has used last, if the scorer has one; not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(2, 0, dtype=torch.long))
        self.register_buffer("sums", torch.zeros(2, 0, 0, dtype=torch.float64))
        self.register_buffer("grams", torch.zeros(2, 0, dtype=torch.float64))
        self.register_buffer("images", torch.zeros(2, dtype=torch.long))

    def shapes(self, classes: int, width: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of buffers by name, for vectors of a width; both numbers are 0 before the first task."""
        size = width * (width + 1) // 2 if self.has_gram else 0
        return {"counts": (2, classes), "sums": (2, classes, width), "grams": (2, size), "images": (2,)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Set the buffers to a saved state; raise ValueError if they contradict each other."""
        super().restore(tensors)
        for name, shape in self.shapes(self.counts.shape[-1] if self.counts.dim() else 0, self.sums.shape[-1]).items():
            if self.get_buffer(name).shape != shape:
                raise ValueError(f"statistics: {name} of shape {(*self.get_buffer(name).shape,)} instead of {shape}")
        if (self.counts < 0).any() or (self.images < self.counts.double().sum(1)).any():
            raise ValueError("statistics: counts that can't be")

    def embed(self, features: Tensor) -> Tensor:
        """Return the vectors (B, width) that are summed."""
        return F.normalize(features)

    @abstractmethod
    def solve(self) -> None:
        """Compute from the statistics what `forward` needs."""

    def emptied(self) -> Self:
        """Return a copy without statistics, whose penalty is the one that `solve` has chosen for these."""
        copy = deepcopy(self)
        copy.counts, copy.sums, copy.grams = (rows[:, :0] for rows in (copy.counts, copy.sums, copy.grams))
        copy.images, copy.settled = torch.zeros_like(copy.images), self._chosen
        return copy

    def less(self, other: "ClosedForm") -> Self:
        """Return a copy without the statistics of another one, which were added to these."""
        copy = deepcopy(self)
        for name in self.statistics:
            setattr(copy, name, self.get_buffer(name) - other.get_buffer(name))
        return copy

    def start(self, state: TaskState) -> None:
        """Prepare the first call of `embed`."""

    @torch.no_grad()
    def fit(self, state: TaskState) -> None:
        """Add the images that have arrived, and solve."""
        self.start(state)
        for indices in state.pool.new.split(CHUNK):
            vectors = self.embed(state.features(indices).double())
            self.add(vectors, state.pool.labels[indices].to(vectors.device), state.classes.seen)
        self.solve_or_refuse()

    def solve_or_refuse(self) -> None:
        """Solve; raise UserError if the statistics have no solution, or numbers that are too large."""
        try:
            self.solve()
            solved = all(buffer.isfinite().all() for buffer in self.buffers())
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            solved = False
        if not solved:
            raise UserError("model: its sums of features have no solution; restore it, or roll back")

    def add(self, vectors: Tensor, labels: Tensor, classes: int) -> None:
        """Add vectors (N, width) of some of the first `classes` classes."""
        self._grow(classes, vectors.shape[1])
        held = is_held_back(vectors)
        for part, chosen in enumerate((~held, held)):
            rows, groups = vectors[chosen], labels[chosen]
            self.counts[part] += torch.bincount(groups, minlength=classes)
            self.sums[part].index_add_(0, groups, rows)
            self.images[part] += len(rows)
            if self.has_gram:
                self.grams[part] += packed(rows.T @ rows)

    def _grow(self, classes: int, width: int) -> None:
        """Add rows of zeros for new classes; raise UserError if the statistics are of vectors of another width."""
        known, size = self.counts.shape[1], width * (width + 1) // 2 if self.has_gram else 0
        fits = self.sums.shape == (2, known, width) and self.grams.shape == (2, size) and known <= classes
        if known and not fits:
            raise UserError("model: its statistics are not of this backbone and these classes; restore it or roll back")
        new = classes - known
        self.counts = F.pad(self.counts, (0, new))
        self.sums = torch.cat([self.sums.view(2, known, width), self.sums.new_zeros(2, new, width)], 1)
        self.grams = self.grams if known else self.grams.new_zeros(2, size)

    @torch.no_grad()
    def solved_with(self, features: Tensor, labels: Tensor) -> Self:
        """Return a copy that scores as if images of known classes had been added; its statistics are without them."""
        copy = deepcopy(self)
        copy.add(copy.embed(features.double()), labels, self.counts.shape[1])
        copy.solve()
        for name in self.statistics:
            setattr(copy, name, getattr(self, name))
        return copy

    def sums_of(self, part: int | None = None) -> Sums:
        """Return the statistics of the images that were not held back (0), that were (1), or of all (None)."""
        one = [tensor.sum(0) if part is None else tensor[part] for tensor in (self.counts, self.sums, self.grams)]
        images = self.images.sum() if part is None else self.images[part]
        gram = unpacked(one[2]) if self.has_gram else one[2]
        return Sums(one[0].double(), one[1], gram, images)

    @torch.no_grad()
    def forget(self, label: int) -> None:
        """Remove a class's count and sum, and its mean from the Gram matrices; then solve without the class."""
        for part in range(2):
            count, total = self.counts[part, label], self.sums[part, label]
            if self.has_gram and count:
                self.grams[part] -= packed(torch.outer(total, total)) / count
        self.counts, self.sums = (without_row(rows, label, dim=1) for rows in (self.counts, self.sums))
        self.solve_or_refuse()


class LinearClosedForm(ClosedForm):
    """Linear scores of the features to a power, brought to length 1: `weight` and `bias` follow from class means."""

    weight: Tensor
    bias: Tensor

    def __init__(self, shrinkage: float | None, power: float) -> None:
        super().__init__()
        self.shrinkage, self.power = shrinkage, power
        self.register_buffer("weight", torch.empty(0, 0))
        self.register_buffer("bias", torch.empty(0))

    def shapes(self, classes: int, width: int) -> dict[str, tuple[int, ...]]:
        """As of all sums, and that of the weight."""
        return {**super().shapes(classes, width), "weight": (classes, width)}

    def embed(self, features: Tensor) -> Tensor:
        """The features to a power, of length 1."""
        return tukey(features, self.power)

    def linear(self, features: Tensor) -> Tensor:
        """Return m' S^-1 x - m' S^-1 m / 2 for the embedded features x and each class mean m."""
        return self.embed(features) @ self.weight.T + self.bias

    def set_linear(self, means: Tensor, factor: Tensor) -> None:
        """Set weight and bias for class means (classes, width) and the Cholesky factor of the matrix S."""
        weight = torch.cholesky_solve(means.T, factor).T
        self.weight, self.bias = weight.to(self.weight), -(weight * means).sum(1).to(self.bias) / 2


def closed_form(training: Training, scorer: Callable[[], Scorer]) -> Method:
    """Return a method that trains nothing and keeps no image: its scorer is computed from statistics of features.

    The network stays as it started: a backbone of known weights (`--init`, best with `--freeze`), or a random one.
    """
    head = partial(LinearHead, init=training.new_head_init)  # which no score depends on
    return Method(lambda _: (), head, {MAIN: scorer}, memory="none", training_key=("closed form",))


def tukey(features: Tensor, power: float) -> Tensor:
    """Return each feature to a power below 1, with its sign, and the vector brought to length 1 (Tukey's ladder).

    >>> tukey(torch.tensor([[9.0, -16.0]]), power=0.5)
    tensor([[ 0.6000, -0.8000]])
    """
    return F.normalize(features if power == 1 else features.sign() * features.abs().pow(power))


def is_held_back(vectors: Tensor) -> Tensor:
    """Return for each vector whether its image is held back: one in `HELD_BACK`, by the vector's own values.

    A fixed combination of the values of the unit-length vector, in steps of 0.001, falls into the first fifth of a
    step. So the choice depends neither on the order of arrival nor, but for one image in thousands, on rounding.
    """
    factors = torch.arange(1, vectors.shape[1] + 1, dtype=torch.float64, device=vectors.device).sin()
    return (1000 * F.normalize(vectors.double()) @ factors).remainder(1) < 1 / HELD_BACK


def without_row(rows: Tensor, index: int, dim: int = 0) -> Tensor:
    """Return a copy without the row at `index`.

    >>> without_row(torch.tensor([1, 2, 3]), 1)
    tensor([1, 3])
    """
    return torch.cat([rows.narrow(dim, 0, index), rows.narrow(dim, index + 1, rows.shape[dim] - index - 1)], dim)


def packed(matrix: Tensor) -> Tensor:
    """Return the upper triangle of a symmetric matrix (W, W), row by row: W (W + 1) / 2 numbers.

    >>> packed(torch.tensor([[1.0, 2.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    row, column = torch.triu_indices(*matrix.shape, device=matrix.device)
    return matrix[row, column]


def unpacked(triangle: Tensor) -> Tensor:
    """Return the symmetric matrix whose upper triangle is given.

    >>> unpacked(torch.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 2.],
            [2., 3.]])
    """
    width = int((2 * len(triangle)) ** 0.5)
    row, column = torch.triu_indices(width, width, device=triangle.device)
    matrix = triangle.new_empty(width, width)
    matrix[row, column] = matrix[column, row] = triangle
    return matrix
