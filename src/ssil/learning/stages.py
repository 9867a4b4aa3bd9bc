"""What several methods share beside loss terms and image selection: stages, hooks, the recipe of fine-tuning."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Literal

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.learning.batches import Mixed
from ssil.learning.method import Method, Phase, Stage, StepPosition, TaskPlan, cross_entropy
from ssil.learning.schedule import Training
from ssil.learning.snapshot import MAIN, Scorer, TaskState
from ssil.nn.heads import LinearHead

HeadStart = Literal["keep", "reset"]
"""What the head starts a later task from: old rows as they were learnt, or all rows initialised anew."""


def fine_tuning(training: Training, head_start: HeadStart, scorer: Callable[[], Scorer]) -> Method:
    """Cross-entropy on new images and exemplars in mixed batches: FT, and with other scorers IL2M and ScaIL.

    As their `training_key` is equal, methods that differ only in the scorer can share one training.
    """

    def plan(classes: ClassTable) -> TaskPlan:
        main = Phase("main", cross_entropy, Mixed(training.batch), training.schedule(classes.task))
        return (Stage("reset", reset_head), main) if head_start == "reset" and classes.old else (main,)

    head = partial(LinearHead, init=training.new_head_init)
    return Method(plan, head, {MAIN: scorer}, training_key=("ft", training, head_start))


@torch.no_grad()
def reset_head(state: TaskState) -> None:
    """Initialise the whole head anew, rows of old classes included (the code of IL2M's and WA's authors)."""
    head = state.network.head
    empty = deepcopy(head)
    empty.weight.data = head.weight[:0]  # the first rows of a head never start at zero
    for name, rows in empty.new_rows(head.classes, state.random.at("head")).items():
        getattr(head, name).copy_(rows)


@torch.no_grad()
def align_new_rows(state: TaskState) -> None:
    """Weight alignment (WA): multiply the rows of new classes by gamma: old and new ones then have one mean norm."""
    weight, old = state.network.head.weight, state.classes.old
    weight[old:] *= alignment(weight, old)


def alignment(weight: Tensor, old: int, order: int = 2) -> Tensor:
    """Gamma of WA (CVPR 2020, Fig. 3): the mean norm of old rows over that of new rows (also DER and MEMO).

    >>> alignment(torch.tensor([[3.0, 4.0], [0.0, 10.0]]), old=1), alignment(torch.eye(2), old=1, order=1)
    (tensor(0.5000), tensor(1.))
    """
    norms: Tensor = torch.linalg.vector_norm(weight, order, dim=1)
    return norms[:old].mean() / norms[old:].mean().clamp(min=1e-12)


def keep_old_rows(state: TaskState, _: StepPosition) -> None:
    """Set the head's rows of old classes back to what they were before the task (LUCIR, PODNet, UW's teacher C)."""
    if state.previous:
        for name, before in state.previous.network.head.named_parameters():
            if before.dim():  # a scale has no rows, and is trained on
                getattr(state.network.head, name)[: len(before)] = before


def unit_features(state: TaskState, indices: Tensor) -> Tensor:
    """The features of training images, brought to length 1 (LUCIR, PODNet)."""
    return F.normalize(state.features(indices))


def k_means_centres(features: Tensor, count: int, seed: int) -> Tensor:
    """`count` k-means centres; of fewer distinct features, all of them repeated (PODNet's proxies)."""
    from sklearn.cluster import KMeans  # takes a second to import

    distinct = min(count, len(features.unique(dim=0)))
    clusters = KMeans(distinct, n_init=10, random_state=seed)
    with threadpool_limits(1):  # several threads would add in any order
        means = clusters.fit(features.cpu().double().numpy()).cluster_centers_
    return torch.from_numpy(means).to(features)[torch.arange(count) % distinct]


def updated_rows(before: Tensor, found: Mapping[int, Tensor]) -> Tensor:
    """A scorer's rows, one per class: those in `found`, and `before` for a class without images (iCaRL, IL2M).

    >>> updated_rows(torch.tensor([1.0, 2.0]), {1: torch.tensor(3.0), 2: torch.tensor(4.0)})
    tensor([1., 3., 4.])
    """
    return torch.stack([row for _, row in sorted((dict(enumerate(before)) | dict(found)).items())])


def nonzero(values: Tensor, least: float = 1e-12) -> Tensor:
    """The values as divisors: `least` in place of those nearer to zero (IL2M, ScaIL)."""
    return values.where(values.abs() > least, least)
