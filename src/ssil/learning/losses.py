"""Loss terms by equation: pure functions of a network's output that return one value per sample, never a mean.

A method's file adds the terms up with its weights. Equation numbers are those of the paper named beside them.
"""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """CE: one softmax over all seen classes (SS-IL, Eq. 4)."""
    return F.cross_entropy(logits, labels, reduction="none")


def separated_cross_entropy(logits: Tensor, labels: Tensor, old: int) -> Tensor:
    """CE-SS, the separated softmax (SS-IL, Eq. 7): each sample's softmax is over old or over new classes alone.

    Args:
        logits: The student's, one column per class seen.
        labels: A label below `old` puts its sample among the old ones.
        old: The number of old classes. Without any, this is `cross_entropy`.

    >>> logits = torch.tensor([[0.0, 0.0, 9.0, 9.0, 9.0]]).expand(2, -1)
    >>> separated_cross_entropy(logits, torch.tensor([1, 4]), old=2).exp()
    tensor([2., 3.])
    """
    if old == 0:
        return cross_entropy(logits, labels)
    is_old = torch.arange(logits.shape[1], device=logits.device) < old
    other_group = is_old != (labels < old).unsqueeze(1)
    return cross_entropy(logits.masked_fill(other_group, -torch.inf), labels)


def logit_distance(logits: Tensor, stored: Tensor) -> Tensor:
    """Return the mean squared difference of logits and stored ones (B,), over the classes that existed then.

    DER++, Eq. 6, second term. The equation has the sum over classes; the authors' code has the mean, to which their
    weights belong.

    Args:
        logits: (B, seen).
        stored: (B, at most seen); NaN for classes that came later. A row without any number gives 0.
    """
    known = ~stored.isnan()
    differences = torch.where(known, logits[:, : stored.shape[1]] - stored, 0.0)
    return differences.square().sum(1) / known.sum(1).clamp(min=1)


def asymmetric_cross_entropy(logits: Tensor, labels: Tensor, old: int) -> Tensor:
    """ACE (ER-ACE, 2022): the softmax of a new class's sample is over new classes, that of an old one's over all.

    Args:
        logits: The student's, one column per class seen.
        labels: A label below `old` puts its sample among the old ones.
        old: The number of old classes. Without any, this is `cross_entropy`.

    >>> logits = torch.zeros(2, 5)
    >>> asymmetric_cross_entropy(logits, torch.tensor([1, 4]), old=2).exp()
    tensor([5., 3.])
    """
    is_old = torch.arange(logits.shape[1], device=logits.device) < old
    masked = is_old & (labels >= old).unsqueeze(1)
    return cross_entropy(logits.masked_fill(masked, -torch.inf), labels)


def gkd(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """GKD, general distillation (SS-IL, Eq. 2): KL(teacher || student) of one softmax over all old classes.

    The old classes are all of the teacher's, and the first ones of the student's.
    """
    return tkd(student, teacher, (0, teacher.shape[1]), temperature)


def tkd(student: Tensor, teacher: Tensor, bounds: Sequence[int], temperature: float) -> Tensor:
    """TKD, task-wise distillation (SS-IL, Eq. 3): the sum over old tasks of KL(teacher || student), a softmax for each.

    Args:
        student: Logits, of which the first `bounds[-1]` columns are used.
        teacher: Logits of the old classes.
        bounds: Where the tasks' blocks of classes begin and end: 0, C_1, C_2, ...
        temperature: The tau by which logits are divided. The loss is not multiplied by its square.

    >>> teacher, student = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([[6.0, 7.0, 3.0, 4.0, 5.0]])
    >>> bool(tkd(student, teacher, bounds=(0, 2, 4), temperature=2.0) < 1e-6 < gkd(student, teacher, temperature=2.0))
    True
    """
    loss: Tensor = _BlockKL.apply(student[:, : bounds[-1]], teacher.to(student.dtype), tuple(bounds), temperature)  # type: ignore[no-untyped-call]
    return loss


def balanced_kd(student: Tensor, teacher: Tensor, weights: Tensor, temperature: float) -> Tensor:
    """Balanced distillation (FOSTER): KL of the teacher's probabilities, each times its class's weight and normalised.

    Args:
        student: Logits.
        teacher: Logits of the same classes.
        weights: One positive number per class.
        temperature: The tau by which logits are divided. The loss is not multiplied by its square.

    >>> even, weights = torch.zeros(1, 2), torch.tensor([1.0, 3.0])
    >>> balanced_kd(torch.log(torch.tensor([[0.25, 0.75]])), even, weights, temperature=1.0).item() < 1e-6
    True
    """
    return gkd(student, teacher + temperature * weights.log(), temperature)


class _BlockKL(torch.autograd.Function):
    """TKD with its gradient in closed form, (p - p') / temperature.

    The gradient is exactly 0 for equal models, and the softmax's intermediate results need not be kept.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, student: Tensor, teacher: Tensor, bounds: tuple[int, ...], temperature: float
    ) -> Tensor:
        log_p = _block_log_softmax(student / temperature, bounds)
        log_target = _block_log_softmax(teacher / temperature, bounds)
        target = log_target.exp()
        ctx.save_for_backward((log_p.exp() - target) / temperature)
        return (target * (log_target - log_p)).sum(1)

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (slope,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return slope * grads[0].unsqueeze(1), None, None, None


def _block_log_softmax(x: Tensor, bounds: tuple[int, ...]) -> Tensor:
    """Log-softmax within each block, shifted by the block's own maximum: the blocks' logits may differ by hundreds."""
    if len(bounds) == 2:
        return x.log_softmax(1)
    block_of, shape = _block_of(bounds, x.device), (len(x), len(bounds) - 1)
    top = x.new_full(shape, -torch.inf).scatter_reduce(1, block_of.expand_as(x), x, "amax")
    x = x - top.index_select(1, block_of)
    mass = x.new_zeros(shape).scatter_add(1, block_of.expand_as(x), x.exp())
    return x - mass.log().index_select(1, block_of)


@lru_cache(maxsize=64)
def _block_of(bounds: tuple[int, ...], device: torch.device) -> Tensor:
    """The number of each class's block."""
    return torch.bucketize(torch.arange(bounds[-1]), torch.tensor(bounds[1:]), right=True).to(device)


def cosine_distance(student: Tensor, teacher: Tensor) -> Tensor:
    """1 - cos of the angle between features: the less-forget constraint (LUCIR, Eq. 6), POD-flat (PODNet).

    Computed as half the squared distance of the unit vectors, which is exactly 0 for equal features. SS-IL's authors
    use the whole squared distance in POD-flat.
    """
    return (F.normalize(student) - F.normalize(teacher)).square().sum(1) / 2


def margin_ranking(cosines: Tensor, labels: Tensor, old: int, margin: float, top: int) -> Tensor:
    """The margin ranking loss (LUCIR, Eq. 8), one value for each sample of an old class; other samples have none.

    The mean of max(0, margin - cos_y + n_k) over the `top` largest cosines n_k to new classes (Sec. 3.4), or over all
    if there are fewer; 0 if there is none.

    Args:
        cosines: Between features and the rows of all classes, before they are scaled.
        labels: The class y of each sample.
        old: The number of old classes.
        margin: m.
        top: K.
    """
    is_old = labels < old
    cosines, labels = cosines[is_old], labels[is_old]
    rivals = cosines[:, old:]
    hardest = rivals.topk(min(top, rivals.shape[1])).values
    leads = F.relu(margin - cosines.gather(1, labels.unsqueeze(1)) + hardest)
    return leads.mean(1) if leads.shape[1] else leads.sum(1)


def pod_spatial(student: Sequence[Tensor], teacher: Sequence[Tensor], separate: bool = False) -> Tensor:
    """POD-spatial (PODNet): the distance between pooled maps, as a mean over the stages.

    Args:
        student: The maps (B, C, H, W) of each stage.
        teacher: The same of the old model.
        separate: Give the maps pooled over width and over height a norm and a distance each, and add the distances,
            as SS-IL's authors do; the original normalises both as one vector.

    Returns:
        One value per sample; for a backbone without stages a single 0, whatever the batch.
    """
    if not student:
        return torch.zeros(1)
    distances = [
        torch.linalg.vector_norm(mine - theirs, dim=1)
        for a, b in zip(student, teacher, strict=True)
        for mine, theirs in zip(_pooled(a, separate), _pooled(b.to(a.dtype), separate), strict=True)
    ]
    return torch.stack(distances).sum(0) / len(student)


def _pooled(stage: Tensor, separate: bool) -> list[Tensor]:
    """Sum the squared map over its width and over its height; return two unit vectors, or one of both together."""
    energy = stage.square()
    sums = [energy.sum(3).flatten(1), energy.sum(2).flatten(1)]
    return [F.normalize(values) for values in (sums if separate else [torch.cat(sums, 1)])]


def nca(similarities: Tensor, labels: Tensor) -> Tensor:
    """The NCA loss of PODNet's code, of scaled similarities s: -(s_y - max) + log(1 + sum_{c != y} exp(s_c - max)).

    Departs from the paper as the code does: the margin, subtracted from every similarity, cancels; there is no hinge;
    and in the denominator the row's maximum takes the target's place. So it is softmax cross-entropy if the target
    has the largest similarity, else the largest counts twice.
    """
    target = labels.unsqueeze(1)
    rivals = similarities.scatter(1, target, similarities.max(1, keepdim=True).values)
    return rivals.logsumexp(1) - similarities.gather(1, target).squeeze(1)


def nca_hinged(similarities: Tensor, labels: Tensor, scale: Tensor | float, margin: float) -> Tensor:
    """The NCA loss of PODNet's paper: [-log(exp(scale * (s_y - margin)) / sum_{c != y} exp(scale * s_c))]_+."""
    target = labels.unsqueeze(1)
    rivals = (scale * similarities).scatter(1, target, -torch.inf)
    return F.relu(rivals.logsumexp(1) - scale * (similarities.gather(1, target).squeeze(1) - margin))
