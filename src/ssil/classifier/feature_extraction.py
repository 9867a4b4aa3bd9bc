"""How a classifier sees its pictures: as they are, or by the features of a frozen backbone, which are computed once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ssil.classifier.classifier_settings import ModelSettings
from ssil.classifier.images import Groups, Picture, Pictures
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.assemble import transform
from ssil.data.resident_images import Resident, Unchanged, vectors
from ssil.learning.engine import fresh
from ssil.learning.execution import ExecutionContext, alone
from ssil.learning.snapshot import Snapshot
from ssil.learning.task import Pace, Progress, Watch
from ssil.nn.backbones import find_backbone
from ssil.nn.network import Network
from ssil.nn.pretrained import Pretrained
from ssil.nn.resnet import Backbone


def unwatched(progress: Progress, pace: Pace) -> None:
    """For those who need not know how far it is."""


def bench_for(
    settings: ModelSettings, samples: Samples | None = None, init: Pretrained | None = None
) -> ExecutionContext:
    """Where the classifier works; without samples it can only look at others."""
    look = settings.look()
    nothing = Samples(Resident(torch.empty(0, look.size, look.size, look.channels, dtype=torch.uint8)), torch.empty(0))
    random = Randomness(settings.seed)
    return ExecutionContext(alone(), samples or nothing, transform(look), random, settings.backbone, init=init)


def sight_of(
    settings: ModelSettings, snapshot: Snapshot | None, init: Pretrained | None = None, watch: Watch = unwatched
) -> "Sight":
    """How a classifier with these settings sees; the first time, without a snapshot, it may begin with weights."""
    if not settings.freeze:
        return Sight(settings, init)
    if snapshot:
        return Frozen(settings, init, snapshot.network, watch)
    if not init:
        raise UserError("freeze: a backbone with random weights is not worth freezing; give --init too")
    first = fresh(settings.configured().method, ClassTable(), bench_for(settings, init=init))
    return Frozen(settings, init, first.clone(), watch)


@dataclass(frozen=True)
class Sight:
    """Pictures are seen as they are, and the whole network learns."""

    settings: ModelSettings
    init: Pretrained | None

    def seen(self, groups: Iterable[Sequence[Picture]]) -> Groups:
        """The pictures, ready to be learnt from and to be kept."""
        return tuple(map(tuple, groups))

    def samples(self, pictures: Sequence[Picture], labels: Sequence[int]) -> Samples:
        """What is learnt from, and judged by."""
        return Pictures(tuple(pictures)).samples(labels, self.settings.look())

    def context(self, samples: Samples) -> ExecutionContext:
        """Where samples are learnt from, and judged by."""
        return bench_for(self.settings, samples, self.init)

    def inner(self, snapshot: Snapshot) -> Snapshot:
        """The part of a classifier's snapshot that looks at samples."""
        return snapshot

    def whole(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, for pictures, that this is the inner part of."""
        return snapshot


@dataclass(frozen=True)
class Frozen(Sight):
    """Pictures are seen by their features, and only the head learns."""

    network: Network
    watch: Watch

    def seen(self, groups: Iterable[Sequence[Picture]]) -> Groups:
        """The pictures with their features, which are computed for those that have none."""
        groups = tuple(map(tuple, groups))
        found = self._features([picture for group in groups for picture in group if not picture.features])
        return tuple(
            tuple(picture if picture.features else picture.with_features(next(found)) for picture in group)
            for group in groups
        )

    def samples(self, pictures: Sequence[Picture], labels: Sequence[int]) -> Samples:
        """Features in place of pictures."""
        (members,) = self.seen([pictures])
        features = torch.stack([self._known(picture) for picture in members])
        return Samples(vectors(features.to(self.network.head.weight)), torch.tensor(labels))

    def context(self, samples: Samples) -> ExecutionContext:
        """One for vectors."""
        return replace(bench_for(self.settings, samples), transform=Unchanged(), backbone="identity")

    def inner(self, snapshot: Snapshot) -> Snapshot:
        """The head alone."""
        return self._on(find_backbone("identity")(self._backbone.width, "batch"), snapshot)

    def whole(self, snapshot: Snapshot) -> Snapshot:
        """The head on the backbone."""
        return self._on(self._backbone, snapshot)

    @property
    def _backbone(self) -> Backbone:
        return self.network.backbone

    def _on(self, backbone: Backbone, snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, network=Network(backbone, snapshot.network.head).eval())

    def _known(self, picture: Picture) -> Tensor:
        assert picture.features
        features = picture.features()
        if features.shape != (self._backbone.width,) or not features.isfinite().all():
            raise UserError(f"model: the features of {picture.name} are not of its backbone; delete their file")
        return features

    def _features(self, pictures: Sequence[Picture]) -> Iterator[Tensor]:
        """One pass over these pictures."""
        samples = super().samples(pictures, [0] * len(pictures))
        count = len(pictures)
        for part, output in bench_for(self.settings).looks(self.network, torch.arange(count), samples):
            done = int(part[-1]) + 1
            self.watch(Progress(self.network, {}), Pace("features", 0, 1, done, count, done))
            yield from map(torch.clone, output.features.cpu())  # each by itself: few of them are kept
