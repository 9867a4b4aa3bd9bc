"""How well images of unknown classes are recognised.

python benchmarks/unknown.py --rules TRAIN.npz [--seeds 0,1,2]
python benchmarks/unknown.py TRAIN.npz TEST.npz [--methods slda,eeil] [--seeds 0,1,2]

The files are made by `frozen_updates.py --extract`, of training and of test images. Half of the classes, drawn by the
seed, are known, the others unknown. `--rules` compares rules on training images alone: linear discriminants learn 70 %
of the known classes' images and score the others. Without it, a classifier learns the known classes' training images
through the update of `ssil learn`, which fits the threshold to its hold-out set, and all test images judge. Printed are
Markdown tables, as means over seeds: the AUROC of known against unknown images, the unknown images that are accepted,
and the known images that are lost, in percent.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional as F

from frozen_updates import WEIGHTS, images_of, settings
from growing import numbers
from ssil.classifier.holdout import image_scores
from ssil.classifier.image_file import ImageFile
from ssil.classifier.unknown import are_unknown, leads
from ssil.classifier.update import update
from ssil.core.classes import ClassTable
from ssil.learning.shrinkage import likeliest_shrinkage, shrunk
from ssil.methods.slda import LinearDiscriminants
from ssil.nn.first_weights import read_first_weights
from ssil.nn.network import Output

Values = NDArray[np.floating]
Groups = Mapping[str, Sequence[ImageFile]]


class Result(NamedTuple):
    """Of one seed, in percent."""

    auroc: float
    accepted: float
    lost: float


def result(known: Values, unknown: Values, threshold: float) -> Result:
    """Judge values that are higher the more known an image seems, and a threshold."""
    auroc = roc_auc_score([1] * len(known) + [0] * len(unknown), np.concatenate([known, unknown]))
    return Result(
        100 * float(auroc), 100 * float((unknown >= threshold).mean()), 100 * float((known < threshold).mean())
    )


def split(names: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Known and unknown classes."""
    drawn = Random(seed).sample(sorted(names), len(names))
    return drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]


def rules(groups: Groups, seed: int) -> Iterator[tuple[str, Result]]:
    """Judge rules by a threshold that loses 5 % of the known images on which it is judged."""
    names, others = split([*groups], seed)
    parts = {name: len(groups[name]) * 7 // 10 for name in names}
    learnt, labels = features_of({name: groups[name][: parts[name]] for name in names})
    known, _ = features_of({name: groups[name][parts[name] :] for name in names})
    unknown, _ = features_of({name: groups[name] for name in others})
    scorer = LinearDiscriminants()
    scorer.add(scorer.embed(learnt.double()), labels, len(names))
    scorer.solve()
    for rule, value in scoring_rules(scorer).items():
        values, strange = value(known).numpy(), value(unknown).numpy()
        yield rule, result(values, strange, float(np.quantile(values, 0.05)))


def features_of(groups: Groups) -> tuple[Tensor, Tensor]:
    """The features of images, and their labels in the order of the classes."""
    features = [image.features() for group in groups.values() for image in group if image.features]
    return torch.stack(features), torch.tensor([label for label, group in enumerate(groups.values()) for _ in group])


def scoring_rules(scorer: LinearDiscriminants) -> dict[str, Callable[[Tensor], Tensor]]:
    """The rules, each from features to one value per image."""
    sums, scale = scorer.sums_of(), 64 / 1280
    shrinkage = likeliest_shrinkage(scorer.sums_of(0), scorer.sums_of(1))
    inverse, mean = torch.linalg.inv(shrunk(sums.covariance(), shrinkage)), sums.sums.sum(0) / sums.images
    whole = torch.linalg.inv(shrunk(sums.gram / sums.images - torch.outer(mean, mean), shrinkage))

    def scores(features: Tensor) -> Tensor:
        found: Tensor = scorer(Output(features[:, :0], features), ClassTable())
        return found.double()

    def squared(features: Tensor) -> Tensor:
        vectors = scorer.embed(features.double())
        lengths: Tensor = ((vectors @ inverse) * vectors).sum(1)
        return scale / 2 * lengths

    def background(features: Tensor) -> Tensor:
        vectors = scorer.embed(features.double()) - mean
        lengths: Tensor = ((vectors @ whole) * vectors).sum(1)
        return scale / 2 * lengths

    def cosine(features: Tensor) -> Tensor:
        return (scorer.embed(features.double()) @ F.normalize(sums.means).T).amax(1)

    return {
        "highest score above the next five": lambda x: torch.from_numpy(leads(scores(x).numpy())),
        "highest score above the second": lambda x: torch.from_numpy(leads(scores(x).numpy(), 1)),
        "highest score above the mean": lambda x: torch.from_numpy(leads(scores(x).numpy(), None)),
        "highest score": lambda x: scores(x).amax(1),
        "highest probability": lambda x: scores(x).softmax(1).amax(1),
        "energy (log sum of exponentials)": lambda x: scores(x).logsumexp(1),
        "Mahalanobis distance to the nearest class": lambda x: scores(x).amax(1) - squared(x),
        "the same, relative to the distance to all images": lambda x: scores(x).amax(1) - squared(x) + background(x),
        "cosine to the nearest class mean": cosine,
    }


def judged(train: Groups, test: Groups, method: str, seed: int) -> Result:
    """Learn half of the classes as `ssil learn` does, and judge by all test images."""
    names, others = split([*train], seed)
    arrived = [(image, name) for name in names for image in train[name]]
    classifier = update(None, settings(method=method, seed=seed), arrived, init=read_first_weights(WEIGHTS)).classifier
    assert classifier.threshold is not None
    known, unknown = (
        image_scores(classifier, (tuple(image for name in group for image in test[name]),))[0].numpy()
        for group in (names, others)
    )
    found = result(leads(known), leads(unknown), classifier.threshold.lead)
    assert found.lost == 100 * float(are_unknown(known, classifier.threshold).mean())
    return found


def row(name: str, results: Sequence[Result]) -> str:
    """A line of a Markdown table."""
    return f"| {name} | " + " | ".join(f"{value:.1f}" for value in np.mean(results, 0)) + " |"


def main() -> None:
    """Compare rules, or judge methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", nargs="?", type=Path)
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--methods", default="slda,fecam,ranpac,ncm,eeil")
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    asked = parser.parse_args()
    print(f"| {asked.train.stem} | AUROC | unknown accepted | known lost |\n|---|---|---|---|")
    train = images_of(asked.train)
    if asked.rules:
        found: dict[str, list[Result]] = {}
        for name, one in (pair for seed in asked.seeds for pair in rules(train, seed)):
            found.setdefault(name, []).append(one)
        print(*(row(name, results) for name, results in found.items()), sep="\n")
        return
    test = images_of(asked.test)
    for method in asked.methods.split(","):
        print(row(method, [judged(train, test, method, seed) for seed in asked.seeds]), flush=True)


if __name__ == "__main__":
    main()
