"""The trained classifier as a value, and its predictions. Nothing here imports what only training needs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.classifier.exported_model import Prediction
from ssil.classifier.image_file import ImageFile, ImagesByClass
from ssil.classifier.images import image_samples
from ssil.classifier.temperature_scaling import TemperatureScaled
from ssil.classifier.unknown import Threshold, are_unknown
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.assemble import make_transform
from ssil.data.decode import Pixels
from ssil.data.resident_images import Resident
from ssil.learning.distributed import SingleDevice
from ssil.learning.execution import ExecutionContext
from ssil.learning.snapshot import MAIN, Snapshot
from ssil.nn.pretrained import Pretrained

if TYPE_CHECKING:
    from ssil.classifier.cross_validation import ValidatedImages


@dataclass(frozen=True)
class Classifier:
    """A trained classifier: its model, its settings, and the images it keeps."""

    settings: ClassifierSettings
    snapshot: Snapshot
    exemplars: ImagesByClass
    """Images that every later update is trained on again."""
    holdout: ImagesByClass
    """Images on which accuracy is measured, by a classifier that has not learnt them (see `final_fit`)."""
    counted: tuple[tuple[str, ...], ...] = ()
    """For each class the checksums of the images in its statistics, if the method keeps no images but adds them up."""
    temperature: float = 1.0
    """Scores are divided by it before they become probabilities."""
    threshold: Threshold | None = None
    """An image whose highest score leads the next ones by less is unknown; None if no image ever is."""
    validated: "ValidatedImages | None" = None
    """Learnt images by which a closed form on frozen features is cross-validated; None where a hold-out set is used."""

    @property
    def calibrated(self) -> Snapshot:
        """The snapshot, with probabilities at the temperature."""
        main = TemperatureScaled(self.snapshot.scorers[MAIN], self.temperature)
        return replace(self.snapshot, scorers={**self.snapshot.scorers, MAIN: main})

    @property
    def classes(self) -> ClassTable:
        """The class table."""
        return self.snapshot.classes

    def image_counts(self) -> dict[str, int]:
        """Return how many images of each class it has learnt or holds out; nothing if it does not count them."""
        groups = zip(self.classes.names, self.counted, self.holdout, strict=False)
        return {name: len({*own, *(one.original_digest for one in held)}) for name, own, held in groups}


def predict(classifier: Classifier, images: Sequence[ImageFile], top: int = 5) -> Iterator[Prediction]:
    """Yield the `top` most likely classes of each image, in order."""
    samples = image_samples(images, [0] * len(images), classifier.settings.preprocessing())
    return _predict(classifier, samples, [image.name for image in images], top)


def predict_views(classifier: Classifier, names: Sequence[str], views: Pixels, top: int = 5) -> Iterator[Prediction]:
    """Yield the `top` most likely classes of images whose test views (N, S, S, C) are decoded already."""
    return _predict(classifier, Samples(Resident(torch.from_numpy(views)), torch.zeros(len(views))), names, top)


@torch.inference_mode()
def _predict(classifier: Classifier, samples: Samples, image_names: Sequence[str], top: int) -> Iterator[Prediction]:
    snapshot, context = classifier.calibrated, execution_context(classifier.settings)
    scorer, names = snapshot.scorers[MAIN], classifier.classes.names
    for part, output in context.batched_outputs(snapshot.network, torch.arange(len(samples)), samples):
        scores = snapshot.scores(output)
        order = scores.topk(min(top, len(names))).indices
        probabilities = scorer.probabilities(scores).gather(1, order)
        unknown = are_unknown(scores.cpu().numpy(), classifier.threshold)
        found = zip(part.tolist(), probabilities.tolist(), order.tolist(), unknown.tolist(), strict=True)
        for index, row, labels, strange in found:
            ranking = tuple((names[c], p) for c, p in zip(labels, row, strict=True))
            yield Prediction(image_names[index], ranking, strange)


def execution_context(
    settings: ClassifierSettings, samples: Samples | None = None, init: Pretrained | None = None
) -> ExecutionContext:
    """Return the context in which a classifier with these settings is trained on `samples`, or only predicts."""
    preprocessing = settings.preprocessing()
    size, channels = preprocessing.size, preprocessing.channels
    nothing = Samples(Resident(torch.empty(0, size, size, channels, dtype=torch.uint8)), torch.empty(0))
    random = Randomness(settings.seed)
    fixed = SingleDevice(), samples or nothing, make_transform(preprocessing), random, settings.backbone
    return ExecutionContext(*fixed, init=init, views=settings.views)
