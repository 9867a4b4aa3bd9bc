"""RanPAC (McDonnell et al., NeurIPS 2023) as somebody outside the package writes it: nothing but `ssil` and torch."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ssil import MAIN, ClassTable, LinearHead, Method, Output, Scorer, TaskState, Training, register


class RidgeOnProjection(Scorer):
    """Ridge regression on a random projection of the features, from sums over all images."""

    per_class = ("products", "weight")
    float64 = ("gram", "products")
    projection: Tensor
    gram: Tensor
    products: Tensor
    weight: Tensor

    def __init__(self, width: int, ridge: float) -> None:
        super().__init__()
        self.width, self.ridge = width, ridge
        for name in ("projection", "gram", "products", "weight"):
            self.register_buffer(name, torch.zeros(0, 0))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """Scores (B, seen)."""
        hidden: Tensor = F.relu(output.features @ self.projection)
        return hidden @ self.weight.T

    @torch.no_grad()
    def fit(self, state: TaskState) -> None:
        """Add the task's images to the sums, and solve."""
        features = state.features(state.pool.new)
        if not len(self.projection):
            drawn = torch.randn(features.shape[1], self.width, generator=state.random.at("projection"))
            self.projection = drawn.to(features)
            self.gram = torch.zeros(self.width, self.width, dtype=torch.float64, device=features.device)
            self.products = torch.zeros(0, self.width, dtype=torch.float64, device=features.device)
        hidden = F.relu(features @ self.projection).double()
        labels = state.pool.labels[state.pool.new].to(hidden.device)
        targets = F.one_hot(labels, state.classes.seen).double()
        grown = F.pad(self.products, (0, 0, 0, state.classes.seen - len(self.products)))
        self.gram, self.products = self.gram + hidden.T @ hidden, grown + targets.T @ hidden
        ridge = self.ridge * torch.eye(self.width, dtype=torch.float64, device=hidden.device)
        self.weight = torch.linalg.solve(self.gram + ridge, self.products.T).T.to(features)


@register()
def random_projection(training: Training, *, width: int = 200, ridge: float = 1.0) -> Method:
    """RanPAC: ridge regression on a random projection of the features (McDonnell et al., NeurIPS 2023)."""
    scorers = {MAIN: lambda: RidgeOnProjection(width, ridge)}
    return Method(lambda classes: (), head=LinearHead, scorers=scorers, memory="none")
