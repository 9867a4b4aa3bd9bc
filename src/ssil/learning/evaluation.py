"""A snapshot looks at pictures: predictions for all classes seen, features, the old model's view of new data."""

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.core.samples import Samples
from ssil.learning.execution import ExecutionContext
from ssil.learning.metrics import Predictions
from ssil.learning.snapshot import Scorer, Snapshot


@torch.inference_mode()
def predict(snapshot: Snapshot, indices: Tensor, samples: Samples, context: ExecutionContext) -> dict[str, Predictions]:
    """What each scorer says of these samples, over all classes it knows. Labels are only copied, never used."""
    parts: dict[str, list[tuple[Tensor, ...]]] = {name: [] for name in snapshot.scorers}
    for part, output in context.looks(snapshot.network, context.share(indices), samples):
        for name, scorer in snapshot.scorers.items():
            summary = _summary(scorer, snapshot.scores(output, name), snapshot.classes.old)
            parts[name].append((samples.labels[part], *summary))
    return {
        name: Predictions(
            *(context.gathered(torch.cat(column), len(indices)).cpu() for column in zip(*rows, strict=True))
        )
        for name, rows in parts.items()
    }


def _summary(scorer: Scorer, scores: Tensor, old: int) -> tuple[Tensor, ...]:
    """Per image: the five best classes, the confidence, means of old and of new classes, and the spread."""
    probabilities = scorer.probabilities(scores)
    top = scores.topk(min(5, scores.shape[1])).indices
    means = [_mean(values) for both in (scores, probabilities) for values in (both[:, :old], both[:, old:])]
    return (top, probabilities.amax(1), *means, _spread(scores, old))


def _spread(scores: Tensor, old: int) -> Tensor:
    """How far an image's scores are from the mean of their group, old or new: the root mean square."""
    kept = scores != -torch.inf
    centred = torch.cat([part - _mean(part).unsqueeze(1) for part in (scores[:, :old], scores[:, old:])], 1)
    return (centred.masked_fill(~kept, 0.0).square().sum(1) / kept.sum(1)).sqrt()


def _mean(values: Tensor) -> Tensor:
    """The mean over the classes, without those that a scorer has ruled out (-inf)."""
    ruled_out = values == -torch.inf
    return values.masked_fill(ruled_out, 0.0).sum(1) / (~ruled_out).sum(1)


def features(snapshot: Snapshot, indices: Tensor, context: ExecutionContext) -> Tensor:
    """Feature vectors of training pictures, under the test transform."""
    return context.outputs(snapshot.network.headless(), indices).features.cpu()


@torch.inference_mode()
def teacher_ratios(snapshot: Snapshot, indices: Tensor, context: ExecutionContext) -> dict[str, list[float]]:
    """By scorer: the share of each old task in what is predicted of a task not learnt yet (Fig. 2, right)."""
    tops: dict[str, list[Tensor]] = {name: [] for name in snapshot.scorers}
    for _, output in context.looks(snapshot.network, context.share(indices)):
        for name in snapshot.scorers:
            tops[name].append(snapshot.scores(output, name).argmax(1))
    predicted = {name: context.gathered(torch.cat(parts), len(indices)).cpu() for name, parts in tops.items()}
    return {name: _shares(top, snapshot.classes) for name, top in predicted.items()}


def _shares(predicted: Tensor, classes: ClassTable) -> list[float]:
    """The share of each task among the predicted classes."""
    counts = torch.bincount(classes.task_of()[predicted], minlength=classes.task)
    return [float(share) for share in counts / counts.sum()]
