"""The last step of an update by a method that adds up features: its hold-out images are added too.

The hold-out set judges a classifier that has not seen it. Then the classifier that predicts is computed from all
images. The statistics that a model keeps stay without the hold-out set, so that the classifier to be judged can be
computed from them again, and the next update is judged honestly too.
"""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.prediction import Classifier
from ssil.learning.feature_statistics import ClosedForm
from ssil.learning.snapshot import MAIN, Scorer


@torch.no_grad()
def with_holdout(judged: Classifier) -> Classifier:
    """Return the classifier that predicts: as if the hold-out images had been added to its statistics.

    A classifier of a method that trains, or without hold-out images, is returned as it is.
    """
    scorer = judged.snapshot.scorers[MAIN]
    if not isinstance(scorer, ClosedForm) or not any(judged.holdout):
        return judged
    return _with_scorer(judged, scorer.solved_with(*_holdout_features(judged)))


@torch.no_grad()
def without_holdout(classifier: Classifier) -> Classifier:
    """Return the classifier to judge by its hold-out set: computed from its statistics, which are without that set."""
    scorer = classifier.snapshot.scorers[MAIN]
    if not isinstance(scorer, ClosedForm) or not any(classifier.holdout):
        return classifier
    own = deepcopy(scorer)
    own.solve()
    return _with_scorer(classifier, own)


def _with_scorer(classifier: Classifier, scorer: Scorer) -> Classifier:
    scorers = {**classifier.snapshot.scorers, MAIN: scorer}
    return replace(classifier, snapshot=replace(classifier.snapshot, scorers=scorers))


def _holdout_features(classifier: Classifier) -> tuple[Tensor, Tensor]:
    """Return the features and the labels of the hold-out images."""
    network = trained_network(classifier.settings, classifier.snapshot)
    labels = [label for label, group in enumerate(classifier.holdout) for _ in group]
    samples = network.samples([image for group in classifier.holdout for image in group], labels)
    trained, context = network.trained_part(classifier.snapshot).network, network.context(samples)
    outputs = context.batched_outputs(trained.headless(), torch.arange(len(samples)))
    return torch.cat([output.features for _, output in outputs]), samples.labels.to(context.device)
