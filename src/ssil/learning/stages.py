"""What methods share beside loss terms: choices of images, computations without gradient steps, a loss of terms."""

from copy import deepcopy

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning import losses
from ssil.learning.batches import Pool
from ssil.learning.memory import by_class, random_selection
from ssil.learning.method import Loss, Moment, Term, mean
from ssil.learning.snapshot import Step, Work


def balanced(pool: Pool, classes: ClassTable, random: Randomness) -> Pool:
    """As many images of each class as the smallest has, be it an old one's exemplars or a new one (EEIL, PODNet).

    Old classes give their most valuable exemplars, new ones the images that a random memory would keep.
    """
    old, new, select = by_class(pool.old, pool.labels), pool.of_new_classes(classes.old), random_selection(random)
    each = min(map(len, [*old.values(), *new.values()]))
    chosen = [select(label, group, each) for label, group in new.items()]
    nothing = pool.labels[:0]  # a task may bring no new class
    return Pool(
        torch.cat([nothing, *chosen]), torch.cat([nothing, *(group[:each] for group in old.values())]), pool.labels
    )


def unit_features(work: Work, indices: Tensor) -> Tensor:
    """Features of length 1."""
    return F.normalize(work.features(indices))


@torch.no_grad()
def imprint(work: Work) -> None:
    """Let a cosine head's new rows start at their classes' mean directions, as long as old rows are (LUCIR)."""
    weight, old = work.network.head.weight, work.classes.old
    length = weight[:old].norm(dim=1).mean()
    for label, group in work.pool.of_new_classes(old).items():
        weight[label] = length * F.normalize(unit_features(work, group).mean(0), dim=0)


@torch.no_grad()
def imprint_proxies(work: Work) -> None:
    """Let a class's proxies start at the k-means centres of its features, as long as old proxies are (PODNet)."""
    weight, old = work.network.head.weight, work.classes.old
    length = weight[:old].norm(dim=2).mean()
    for label, group in work.pool.of_new_classes(old).items():
        seed = work.random.at("centres", label).initial_seed() % 2**32
        weight[label] = length * _centres(unit_features(work, group), weight.shape[1], seed)


def _centres(features: Tensor, count: int, seed: int) -> Tensor:
    """So many k-means centres; a class of fewer images uses its images over again."""
    from sklearn.cluster import KMeans  # takes a second to import

    distinct = min(count, len(features.unique(dim=0)))
    clusters = KMeans(distinct, n_init=10, random_state=seed)
    with threadpool_limits(1):  # several threads would add in any order
        means = clusters.fit(features.cpu().double().numpy()).cluster_centers_
    return torch.from_numpy(means).to(features)[torch.arange(count) % distinct]


def keep_old_rows(work: Work, _: Moment) -> None:
    """Put the head's rows of old classes back to what they were before the task."""
    if work.previous:
        for name, before in work.previous.network.head.named_parameters():
            if before.dim():  # a scale has no rows, and learns on
                getattr(work.network.head, name)[: len(before)] = before


@torch.no_grad()
def reset_head(work: Work) -> None:
    """Draw the whole head anew, old classes' rows too (the original FT, WA)."""
    head = work.network.head
    empty = deepcopy(head)
    empty.weight.data = head.weight[:0]  # the first rows of a head are never zero
    for name, rows in empty.new_rows(head.classes, work.random.at("head")).items():
        getattr(head, name).copy_(rows)


def alignment(weight: Tensor, old: int, order: int = 2) -> Tensor:
    """WA's gamma: the mean norm of the first `old` rows over that of the others (Zhao et al., CVPR 2020).

    >>> alignment(torch.tensor([[3.0, 4.0], [0.0, 10.0]]), old=1), alignment(torch.eye(2), old=1, order=1)
    (tensor(0.5000), tensor(1.))
    """
    norms: Tensor = torch.linalg.vector_norm(weight, order, dim=1)
    return norms[:old].mean() / norms[old:].mean().clamp(min=1e-12)


def weighed_by_classes(temperature: float) -> Loss:
    """Cross-entropy and distillation from the teacher's scores, weighed by the shares of new and of old classes.

    The loss of BiC and WA, with lambda = old / all classes: (1 - lambda) CE + lambda GKD, and no temperature**2. Images
    of known classes alone weigh as a new class would, for else their labels would count for nothing.
    """

    def loss(step: Step) -> dict[str, Term]:
        logits, old = step.output.logits, step.classes.old
        share = old / (old + max(step.classes.new, 1))
        terms = {"ce": mean((1 - share) * losses.cross_entropy(logits, step.labels))}
        if step.teachers:
            terms["kd"] = mean(share * losses.gkd(logits, step.teachers["old"].scores, temperature))
        return terms

    return loss
