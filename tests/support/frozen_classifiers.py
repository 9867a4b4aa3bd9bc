"""Classifiers on a frozen backbone, made in no time."""

from functools import cache
from typing import Any

from torch import Tensor

from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.classifier.image_file import ImageFile
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from ssil.nn.pretrained import Pretrained
from tiny_classifiers import labelled_images, settings


@cache
def backbone() -> Pretrained:
    """That of a classifier of other images."""
    made = update(None, settings(), labelled_images(["hen", "ibis", "jay", "kite", "lark"])).classifier
    return Pretrained("mine", made.snapshot.network.backbone.state_dict())


def frozen(**given: Any) -> ClassifierSettings:
    return settings(freeze=True, **given)


@cache
def classifiers(method: str = "ssil") -> tuple[Classifier, Classifier]:
    own = frozen(method=method)
    one = update(None, own, labelled_images(["ant", "bee", "cat"]), init=backbone()).classifier
    return one, update(one, own, labelled_images(["dog", "eel"])).classifier


def members(classifier: Classifier) -> list[ImageFile]:
    return [image for group in (*classifier.exemplars, *classifier.holdout) for image in group]


def features(image: ImageFile) -> Tensor:
    assert image.features
    return image.features()
