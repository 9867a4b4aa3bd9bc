"""ScaIL: Classifier Weights Scaling for Class Incremental Learning (Belouadah & Popescu, WACV 2020)."""

from functools import partial
from itertools import pairwise
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.learning.method import Method
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Scorer, TaskState
from ssil.learning.stages import HeadStart, fine_tuning, nonzero
from ssil.nn.network import Output

FiveOrMore = Annotated[int, Field(ge=5)]


class Rescaled(Scorer):
    """Score old classes by the weights with which they were first learnt, rescaled to the newest classes' magnitudes.

    Only the `top` old classes that the network itself scores highest are candidates; the others score -inf.
    """

    per_class = ("initial_weight", "initial_bias", "weight", "bias")
    initial_weight: Tensor
    initial_bias: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, top: int | None = 10) -> None:
        super().__init__()
        self.top = top
        for name in self.per_class:
            self.register_buffer(name, torch.empty(0))

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """The current features times the rescaled weights."""
        scores = F.linear(output.features, self.weight, self.bias)
        if self.top is None or classes.old <= self.top:
            return scores
        best = output.logits[:, : classes.old].topk(self.top).indices
        excluded = torch.ones_like(scores).scatter(1, best, 0.0)  # not of truth values, for the sake of the ONNX export
        excluded[:, classes.old :] = 0.0
        return scores.masked_fill(excluded.bool(), -torch.inf)

    @torch.no_grad()
    def fit(self, state: TaskState) -> None:
        """Store the new classes' rows of the head, and rescale the stored rows of old classes."""
        head, old = state.network.head, state.classes.old
        self.initial_weight = torch.cat([self.initial_weight, head.weight[old:]])
        self.initial_bias = torch.cat([self.initial_bias, head.get_parameter("bias")[old:]])
        self.weight = _rescaled(self.initial_weight, state.classes)
        self.bias = _rescaled(self.initial_bias.unsqueeze(1), state.classes).squeeze(1)


def _rescaled(initial: Tensor, classes: ClassTable) -> Tensor:
    """The paper's scaling: a weight of rank r, first learnt in state s, times mu_r(now) / mu_r(s).

    A departure from the authors' code, which ranks by signed value and takes the factor of another rank.
    """
    *before, now = (initial[start:end] for start, end in pairwise(classes.bounds) if end > start)
    return torch.cat([*(rows * _ranked(_mu(now) / nonzero(_mu(rows)), rows) for rows in before), now])


def _mu(rows: Tensor) -> Tensor:
    """For each rank r (d,): the mean over a state's new classes of their r-th largest magnitude."""
    return rows.abs().sort(1, descending=True).values.mean(0)


def _ranked(values: Tensor, rows: Tensor) -> Tensor:
    """For each entry of the rows (n, d): the value (d,) at the rank of its magnitude within its row."""
    order = rows.abs().argsort(dim=1, descending=True, stable=True)
    return values[order.argsort(1)]


# FT's schedule: SS-IL's paper has no ScaIL.
@register(paper={"later_epochs": 25}, official={"lr_by_task": True})
def scail(training: Training, *, top_rewound: FiveOrMore | None = 10, ft_head: HeadStart = "keep") -> Method:
    """ScaIL: classifier weights scaling (Belouadah & Popescu, WACV 2020): FT, with old classes' first weights rescaled.

    The training is FT's. Departures: the paper's formula is followed where its code ranks weights in another way, and
    biases are rescaled as weights are (the code's factor for them depends on the numbers of classes alone).

    Args:
        top_rewound: How many old classes can be predicted for an image: those that FT scores highest, at least five,
            so that there are five best classes; None for all.
        ft_head: "keep" trains old rows of the head on, as SS-IL's authors' code does; "reset"
            initialises the whole head anew for every task, as IL2M's authors' code does.
    """
    return fine_tuning(training, ft_head, partial(Rescaled, top_rewound))
