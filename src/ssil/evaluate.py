"""A snapshot looks at pictures: predictions for all classes seen, features, the old model's view of new data."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ssil.engine import Bench
from ssil.metrics import Predictions
from ssil.snapshot import MAIN, Snapshot
from ssil.types import Output, Samples

BATCH = 512


def _outputs(snapshot: Snapshot, indices: Tensor, samples: Samples, bench: Bench) -> Iterator[tuple[Tensor, Output]]:
    """The network's outputs batch by batch, with the indices they belong to; the unfolded network, in eval mode."""
    for part in indices.split(BATCH):
        with torch.inference_mode(), bench.fabric.autocast():
            output = snapshot.network(bench.pictures(part, samples))
        yield part, output


@torch.inference_mode()
def predict(snapshot: Snapshot, indices: Tensor, samples: Samples, bench: Bench, scorer: str = MAIN) -> Predictions:
    """What the snapshot says of these samples, over all classes it knows. Labels are only copied, never used."""
    parts = []
    for part, output in _outputs(snapshot, indices, samples, bench):
        scores = snapshot.scores(output, scorer)
        parts.append((samples.labels[part], *_summary(scores, snapshot.classes.old)))
    return Predictions(*(torch.cat(column).cpu() for column in zip(*parts, strict=True)))


def _summary(scores: Tensor, old: int) -> tuple[Tensor, ...]:
    """Per image: the five best classes, the confidence, mean score and mean softmax of old and of new classes."""
    softmax = scores.softmax(1)
    top = scores.topk(min(5, scores.shape[1])).indices
    means = [values.mean(1) for both in (scores, softmax) for values in (both[:, :old], both[:, old:])]
    return (top, softmax.amax(1), *means)


@torch.inference_mode()
def features(snapshot: Snapshot, indices: Tensor, bench: Bench) -> Tensor:
    """Feature vectors of training pictures, under the test transform."""
    return torch.cat([output.features.cpu() for _, output in _outputs(snapshot, indices, bench.samples, bench)])


@torch.inference_mode()
def teacher_ratio(snapshot: Snapshot, indices: Tensor, bench: Bench) -> list[float]:
    """Share of each old task among the snapshot's predictions on a task it has not learnt yet (Fig. 2, right)."""
    task_of = snapshot.classes.task_of()
    tops = [snapshot.scores(output).argmax(1).cpu() for _, output in _outputs(snapshot, indices, bench.samples, bench)]
    counts = torch.bincount(task_of[torch.cat(tops)], minlength=snapshot.classes.task)
    return [float(share) for share in counts / counts.sum()]
