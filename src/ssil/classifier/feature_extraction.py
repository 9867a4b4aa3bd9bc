"""What an update trains: the whole network on images, or the head on features that a frozen backbone computes once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.classifier.image_file import ImageFile, ImagesByClass
from ssil.classifier.images import image_samples
from ssil.classifier.near_duplicates import feature_vectors, thumbnail_vectors
from ssil.classifier.prediction import execution_context
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.samples import Samples
from ssil.data.resident_images import Unchanged, vectors
from ssil.learning.execution import ExecutionContext
from ssil.learning.model_state import initial_network
from ssil.learning.snapshot import Snapshot
from ssil.learning.task import Observer, Progress, ProgressReport, ignore_progress
from ssil.nn.backbones import Identity
from ssil.nn.network import Network
from ssil.nn.pretrained import Pretrained
from ssil.nn.resnet import Backbone


def trained_network(
    settings: ClassifierSettings,
    snapshot: Snapshot | None,
    init: Pretrained | None = None,
    observer: Observer = ignore_progress,
) -> "WholeNetwork":
    """Return what an update under these settings trains.

    Args:
        settings: The classifier's settings.
        snapshot: The classifier's model; None before its first update.
        init: The first weights of a new backbone.
        observer: Called after every batch of images whose features are computed.

    Raises:
        UserError: The backbone is to be frozen, and has random weights; or is not, and to see several views; or the
            method needs old images, and none may be kept.
    """
    _check_memory(settings)
    if settings.views > 1 and not settings.freeze:
        raise UserError("views: only weights that stay as they are see several views; add --freeze, or --views 1")
    if not settings.freeze:
        return WholeNetwork(settings, init)
    if snapshot:
        return FrozenBackbone(settings, init, snapshot.network, observer)
    if not init:
        raise UserError("freeze: a backbone with random weights is not worth freezing; give --init too")
    network = initial_network(settings.configured().method, ClassTable(), execution_context(settings, init=init))
    return FrozenBackbone(settings, init, network.clone(), observer)


def _check_memory(settings: ClassifierSettings) -> None:
    needed, none = settings.configured().method.requirements().memory, settings.memory == 0 and not settings.memory_mb
    if none and needed != "none":
        cure = "give --memory 1 or more, or a method that keeps none, such as slda"
        raise UserError(f"memory: {settings.method} trains on old images again; {cure}")


@dataclass(frozen=True)
class WholeNetwork:
    """The whole network is trained, on the images themselves."""

    settings: ClassifierSettings
    init: Pretrained | None

    def with_features(self, groups: Iterable[Sequence[ImageFile]]) -> ImagesByClass:
        """Return the images with the features that training needs: none."""
        return tuple(map(tuple, groups))

    def samples(self, images: Sequence[ImageFile], labels: Sequence[int]) -> Samples:
        """Return the images as samples to train or evaluate the trained part on."""
        return image_samples(images, labels, self.settings.preprocessing())

    def vectors(self, images: Sequence[ImageFile]) -> Tensor:
        """Return vectors (N, width) of length 1 by which images are compared: here those of thumbnails."""
        return thumbnail_vectors(images, self.settings.preprocessing().channels)

    def context(self, samples: Samples) -> ExecutionContext:
        """Return the context in which the trained part is trained or evaluated on `samples`."""
        return execution_context(self.settings, samples, self.init)

    def trained_part(self, snapshot: Snapshot) -> Snapshot:
        """Return the part of a model that is trained: all of it."""
        return snapshot

    def whole(self, trained: Snapshot) -> Snapshot:
        """Return the model for images whose trained part is `trained`."""
        return trained


@dataclass(frozen=True)
class FrozenBackbone(WholeNetwork):
    """Only the head is trained, on the features of a frozen backbone."""

    network: Network
    observer: Observer

    def with_features(self, groups: Iterable[Sequence[ImageFile]]) -> ImagesByClass:
        """Return the images with their features, which are computed for those that have none."""
        groups = tuple(map(tuple, groups))
        computed = self._compute([image for group in groups for image in group if not image.features])
        return tuple(
            tuple(image if image.features else image.with_features(next(computed)) for image in group)
            for group in groups
        )

    def samples(self, images: Sequence[ImageFile], labels: Sequence[int]) -> Samples:
        """Return the images' features as samples."""
        return Samples(vectors(self.features(images).to(self.network.head.weight)), torch.tensor(labels))

    def vectors(self, images: Sequence[ImageFile]) -> Tensor:
        """Return vectors (N, width) of length 1 by which images are compared: those of features."""
        return feature_vectors(self.features(images))

    def features(self, images: Sequence[ImageFile]) -> Tensor:
        """Return the features (N, width) of images, which are computed for those that have none."""
        (members,) = self.with_features([images])
        return torch.stack([self._checked_features(image) for image in members])

    def context(self, samples: Samples) -> ExecutionContext:
        """Return a context for feature vectors: an identity backbone, and no transform."""
        features = execution_context(self.settings, samples)
        return replace(features, transform=Unchanged(), backbone="identity", views=1)

    def trained_part(self, snapshot: Snapshot) -> Snapshot:
        """Return the model's head, on an identity backbone."""
        return self._on(Identity(self._backbone.width, "batch"), snapshot)

    def whole(self, trained: Snapshot) -> Snapshot:
        """Return the trained head on the frozen backbone."""
        return self._on(self._backbone, trained)

    @property
    def _backbone(self) -> Backbone:
        return self.network.backbone

    def _on(self, backbone: Backbone, snapshot: Snapshot) -> Snapshot:
        fixed = tuple(name for name in snapshot.network.fixed if name.startswith("head."))
        return replace(snapshot, network=Network(backbone, snapshot.network.head, fixed).eval())

    def _checked_features(self, image: ImageFile) -> Tensor:
        assert image.features
        features = image.features()
        if features.shape != (self._backbone.width,) or not features.isfinite().all():
            raise UserError(f"model: the features of {image.name} are not of its backbone; delete their file")
        return features

    def _compute(self, images: Sequence[ImageFile]) -> Iterator[Tensor]:
        """Yield the features of each image, in tensors of their own, once all are computed.

        Small tensors that were made between the large ones of batches would keep the memory of these from being used
        again: 2 MB an image at 448 pixels.
        """
        count, context = len(images), execution_context(self.settings)
        samples = super().samples(images, [0] * count)
        network = context.feature_network(self.network, samples)
        features = torch.empty(count, self._backbone.width)
        for indices, output in context.batched_outputs(network, torch.arange(count), samples):
            features[indices] = output.features.to(features)
            done = int(indices[-1]) + 1
            self.observer(Progress(self.network, {}), ProgressReport("features", 0, 1, done, count, done))
        yield from map(torch.clone, features)
