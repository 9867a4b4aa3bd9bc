"""Compare rules that choose the shrinkage of a covariance from training images, by the accuracy that each costs.

`python benchmarks/shrinkage.py FEATURES.npz` with arrays `features` (N, L) and `labels` (N,) of training images alone.
A part of each class is held out; each rule sees the rest. Printed are, for each rule, the points of accuracy on the
held-out images below the best shrinkage, and that best accuracy, as means over splits.
"""

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
GRID = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)


class Fit:
    """Class means and covariance of images, in the axes of the covariance."""

    def __init__(self, x: Array, y: Labels, classes: int) -> None:
        self.counts = np.bincount(y, minlength=classes).astype(np.float64)
        sums = np.zeros((classes, x.shape[1]))
        np.add.at(sums, y, x)
        means = sums / np.maximum(self.counts, 1)[:, None]
        covariance = (x.T @ x - means.T @ (self.counts[:, None] * means)) / len(x)
        values, self.axes = np.linalg.eigh(covariance)
        self.values, self.means, self.images = values.clip(0), means @ self.axes, len(x)

    def shrunk(self, e: float) -> Array:
        """The eigenvalues of the shrunk covariance."""
        return np.asarray((1 - e) * self.values + e * self.values.mean())

    def scores(self, x: Array, e: float) -> Array:
        """Linear discriminants."""
        lam = self.shrunk(e)
        return np.asarray(x @ self.axes @ (self.means / lam).T - (self.means**2 / lam).sum(1) / 2)


def accuracy(fit: Fit, x: Array, y: Labels, e: float) -> float:
    """The share of correct predictions."""
    return float((fit.scores(x, e).argmax(1) == y).mean())


def likelihood(fit: Fit, x: Array, y: Labels, e: float) -> float:
    """The mean log-likelihood of images, up to a constant."""
    residuals, lam = x @ fit.axes - fit.means[y], fit.shrunk(e)
    return float(-(np.log(lam).sum() + (residuals**2 / lam).sum(1).mean()) / 2)


def squared_error(fit: Fit, x: Array, y: Labels, e: float) -> float:
    """Minus the squared error of one-hot labels, by the best multiple of the centred scores."""
    scores, classes = fit.scores(x, e), len(fit.counts)
    centred, wanted = scores - scores.mean(1, keepdims=True), np.eye(classes)[y] - 1 / classes
    factor = (centred * wanted).sum() / (centred**2).sum()
    return float(-((wanted - factor * centred) ** 2).sum())


def left_out_accuracy(fit: Fit, x: Array, y: Labels, e: float) -> float:
    """Exact leave-one-out accuracy, by the inverse of a matrix that a rank-one change makes (Sherman & Morrison)."""
    lam, own, rows = fit.shrunk(e), fit.counts[y], x @ fit.axes
    residuals = rows - fit.means[y]
    factor = own / np.maximum(own - 1, 1) * (1 - e) / fit.images
    divisor = 1 - factor * (residuals**2 / lam).sum(1)
    distances = (rows**2 / lam).sum(1)[:, None] - 2 * fit.scores(x, e)
    crossed = (rows / lam * residuals).sum(1)[:, None] - (residuals / lam) @ fit.means.T
    distances += (factor / divisor)[:, None] * crossed**2
    gap = residuals * (1 + 1 / np.maximum(own - 1, 1))[:, None]
    mine = (gap**2 / lam).sum(1) + factor / divisor * (gap / lam * residuals).sum(1) ** 2
    distances[np.arange(len(y)), y] = mine
    usable = (own > 1) & (divisor > 0)
    return float((distances.argmin(1) == y)[usable].mean()) if usable.any() else 0.0


def approximate_left_out(fit: Fit, _: Array, __: Labels, e: float) -> float:
    """Leave-one-out likelihood, with the mean Mahalanobis distance in place of each image's (after Theiler, 2012)."""
    several = fit.counts[fit.counts > 1]
    growth = (several**2 / (several - 1)).sum() / several.sum()
    lam = (1 - e) * fit.images / (fit.images - 1) * fit.values + e * fit.values.mean()
    distance = (fit.values / lam).sum() * fit.images / (fit.images - len(several))
    part = (1 - e) * distance / (fit.images - 1)
    return float(-(np.log(lam).sum() + np.log(1 - part) + distance * growth / (1 - part))) if part < 1 else -np.inf


def oas(fit: Fit) -> float:
    """Oracle approximating shrinkage (Chen et al., 2010)."""
    width, mean = len(fit.values), fit.values.mean()
    square = (fit.values**2).mean() / width
    return float(min(1.0, (square + mean**2) / ((fit.images + 1) * (square - mean**2 / width))))


def split(y: Labels, fraction: float, seed: int) -> NDArray[np.bool_]:
    """A part of each class."""
    random, held = np.random.default_rng(seed), np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        members = random.permutation(np.flatnonzero(y == label))
        held[members[: max(1, round(fraction * len(members)))]] = True
    return held


Rule = Callable[[Fit, Array, Labels, float], float]
HELD_BACK: dict[str, Rule] = {"likelihood": likelihood, "accuracy": accuracy, "squared error": squared_error}
LEFT_OUT: dict[str, Rule] = {"left-out accuracy": left_out_accuracy, "approximate left-out": approximate_left_out}


def costs(x: Array, y: Labels, held: NDArray[np.bool_]) -> dict[str, float]:
    """The points that each rule loses against the best shrinkage, and the best accuracy."""
    classes, train, labels = int(y.max()) + 1, x[~held], y[~held]
    whole, back = Fit(train, labels, classes), split(labels, 0.2, 7)
    part = Fit(train[~back], labels[~back], classes)
    found = np.array([100 * accuracy(whole, x[held], y[held], e) for e in GRID])
    chosen = {
        name: np.argmax([rule(part, train[back], labels[back], e) for e in GRID]) for name, rule in HELD_BACK.items()
    }
    chosen |= {name: np.argmax([rule(whole, train, labels, e) for e in GRID]) for name, rule in LEFT_OUT.items()}
    chosen["OAS"] = np.argmin(np.abs(np.array(GRID) - oas(whole)))
    return {name: float(found.max() - found[index]) for name, index in chosen.items()} | {"best": float(found.max())}


def main() -> None:
    """Print the costs for features to the power 0.5 and 1, with 30 % and 70 % of each class held out."""
    data = np.load(sys.argv[1])
    for fraction in (0.3, 0.7):
        for power in (0.5, 1.0):
            x = data["features"].astype(np.float64) ** power
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            runs = [costs(x, data["labels"], split(data["labels"], fraction, seed)) for seed in range(3)]
            means = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
            print(f"{fraction:.0%} held out, power {power}:", {name: f"{mean:.1f}" for name, mean in means.items()})


if __name__ == "__main__":
    main()
