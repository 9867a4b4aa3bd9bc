"""Evaluating a snapshot: predictions for test images, features, and the old model's predictions for new data."""

from collections.abc import Callable

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.core.samples import Samples
from ssil.learning.distributed import gather, local_share
from ssil.learning.execution import ExecutionContext
from ssil.learning.feature_cache import FeatureCache
from ssil.learning.metrics import Predictions
from ssil.learning.snapshot import Scorer, Snapshot

TOP = 5
"""The number of best classes that are kept of each prediction."""


@torch.inference_mode()
def predict(snapshot: Snapshot, indices: Tensor, samples: Samples, context: ExecutionContext) -> dict[str, Predictions]:
    """Return the predictions of each scorer for some of the samples, over all seen classes.

    The samples' labels are copied into the result, and tell which task an image belongs to for `within_task`; nothing
    else depends on them.
    """
    parts: dict[str, list[tuple[Tensor, ...]]] = {name: [] for name in snapshot.scorers}
    for batch, output in context.batched_outputs(snapshot.network, local_share(context.fabric, indices), samples):
        for name, scorer in snapshot.scorers.items():
            scores, labels = snapshot.scores(output, name), samples.labels[batch]
            within = best_within_task(scores, labels, snapshot.classes)
            parts[name].append((labels, *_summary(scorer, scores, snapshot.classes.old), within))
    return {
        name: Predictions(
            *(gather(context.fabric, torch.cat(column), len(indices)).cpu() for column in zip(*rows, strict=True))
        )
        for name, rows in parts.items()
    }


def best_within_task(scores: Tensor, labels: Tensor, classes: ClassTable) -> Tensor:
    """Return for each image the class of the highest score among those of its own task, as if the task were known.

    It is -1 for an image of a class that is not in the table.

    >>> table = ClassTable(("ant", "bee", "cat", "dog"), (0, 2, 4))
    >>> best_within_task(torch.tensor([[1.0, 2.0, 9.0, 8.0]] * 2), torch.tensor([0, 3]), table)
    tensor([1, 2])
    """
    task_of, labels = classes.task_of().to(scores.device), labels.to(scores.device)
    other_task = task_of[labels.clamp(max=classes.seen - 1)].unsqueeze(1) != task_of
    finite = scores.clamp(min=torch.finfo(scores.dtype).min)  # a class that a scorer has ruled out is of the task still
    best = finite.masked_fill(other_task, -torch.inf).argmax(1)
    return torch.where(labels < classes.seen, best, -1)


def summarise(scorer: Scorer, scores: Tensor, labels: Tensor, old: int) -> Predictions:
    """Return the predictions that scores (n, seen) stand for; the first `old` classes are old ones."""
    return Predictions(labels, *_summary(scorer, scores, old))


def _summary(scorer: Scorer, scores: Tensor, old: int) -> tuple[Tensor, ...]:
    """Return the fields of `Predictions` after the labels, in their order, for a batch of scores."""
    probabilities = scorer.probabilities(scores)
    top = scores.topk(min(TOP, scores.shape[1])).indices
    means = [_mean(values) for both in (scores, probabilities) for values in (both[:, :old], both[:, old:])]
    return (top, probabilities.amax(1), *means, _spread(scores, old))


def _spread(scores: Tensor, old: int) -> Tensor:
    """Return the root mean square over the classes of (score - mean score of the class's group, old or new)."""
    kept = scores != -torch.inf
    centred = torch.cat([part - _mean(part).unsqueeze(1) for part in (scores[:, :old], scores[:, old:])], 1)
    return (centred.masked_fill(~kept, 0.0).square().sum(1) / kept.sum(1)).sqrt()


def _mean(values: Tensor) -> Tensor:
    """Return the mean over the classes, without those that a scorer has ruled out with -inf."""
    ruled_out = values == -torch.inf
    return values.masked_fill(ruled_out, 0.0).sum(1) / (~ruled_out).sum(1)


def feature_lookup(snapshot: Snapshot, indices: Tensor, context: ExecutionContext) -> Callable[[Tensor], Tensor]:
    """Return a function that gives the features of training images under the test transform, on the CPU.

    Those of `indices` are computed at once, those of other images whenever they are asked for.
    """
    known = FeatureCache()
    known.put("", indices, context.features(snapshot.network, indices).cpu())

    def features(some: Tensor) -> Tensor:
        return known.get(some) if known.has("", some) else context.features(snapshot.network, some).cpu()

    return features


@torch.inference_mode()
def teacher_ratios(snapshot: Snapshot, indices: Tensor, context: ExecutionContext) -> dict[str, list[float]]:
    """Return, for each scorer, the share of each old task in the predictions for images of a task not yet learnt.

    This is the right half of Fig. 2 of the SS-IL paper.
    """
    tops: dict[str, list[Tensor]] = {name: [] for name in snapshot.scorers}
    for _, output in context.batched_outputs(snapshot.network, local_share(context.fabric, indices)):
        for name in snapshot.scorers:
            tops[name].append(snapshot.scores(output, name).argmax(1))
    predicted = {name: gather(context.fabric, torch.cat(parts), len(indices)).cpu() for name, parts in tops.items()}
    return {name: _task_shares(top, snapshot.classes) for name, top in predicted.items()}


def _task_shares(predicted: Tensor, classes: ClassTable) -> list[float]:
    """Return the share of each task among the predicted classes."""
    counts = torch.bincount(classes.task_of()[predicted], minlength=classes.task)
    return [float(share) for share in counts / counts.sum()]
