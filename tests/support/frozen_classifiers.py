"""Classifiers on a frozen backbone, made in no time."""

from functools import cache
from typing import Any

from torch import Tensor

from ssil.classifier.classifier import Classifier, update
from ssil.classifier.classifier_settings import ModelSettings
from ssil.classifier.images import Picture
from ssil.nn.pretrained import Pretrained
from tiny_classifiers import pictures, settings


@cache
def backbone() -> Pretrained:
    """That of a classifier of other pictures."""
    made = update(None, settings(), pictures(["hen", "ibis", "jay", "kite", "lark"])).classifier
    return Pretrained("mine", made.snapshot.network.backbone.state_dict())


def frozen(**given: Any) -> ModelSettings:
    return settings(freeze=True, **given)


@cache
def classifiers(method: str = "ssil") -> tuple[Classifier, Classifier]:
    own = frozen(method=method)
    one = update(None, own, pictures(["ant", "bee", "cat"]), init=backbone()).classifier
    return one, update(one, own, pictures(["dog", "eel"])).classifier


def members(classifier: Classifier) -> list[Picture]:
    return [picture for group in (*classifier.exemplars, *classifier.quiz) for picture in group]


def features(picture: Picture) -> Tensor:
    assert picture.features
    return picture.features()
