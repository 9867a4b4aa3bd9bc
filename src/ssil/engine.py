"""The fold's step: (snapshot, memory) + task -> snapshot. The only epoch loop; no disk."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from lightning_fabric import Fabric
from torch import Tensor
from torch.optim import SGD

from ssil.batches import Batch, Pool
from ssil.data import Transform
from ssil.errors import UserError
from ssil.memory import Memory
from ssil.method import Method, Phase, Term
from ssil.nn import Network, Norm, build
from ssil.randomness import Randomness
from ssil.scenario import Task
from ssil.snapshot import Snapshot, Step, Teacher
from ssil.types import Classes, Samples


@dataclass(frozen=True)
class Bench:
    """Where a method works: devices, training pictures (labels by order of arrival), randomness, the network's kind."""

    fabric: Fabric
    samples: Samples
    transform: Transform
    random: Randomness
    backbone: str
    norm: Norm = "batch"
    dtype: torch.dtype = torch.float32

    def pictures(self, indices: Tensor, samples: Samples | None = None) -> Tensor:
        """Pictures (the training ones, if not said otherwise) under the test transform, ready for a network."""
        source = self.samples if samples is None else samples
        return self.transform.test(source.images.fetch(indices), self.dtype)


@dataclass
class Progress:
    """A task in progress: where it is, and all that must be kept to go on from there."""

    network: Network
    phase: int = 0
    epoch: int = 0
    step: int = 0
    images: int = 0
    losses: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    sums: dict[str, Tensor] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    momentum: dict[str, Tensor] = field(default_factory=dict)
    """The optimiser's own buffers, by parameter name: they change in place with every step."""

    def check_finite(self, task: int) -> None:
        """Refuse to go on after a loss or a weight that is not a number (waits for the device)."""
        totals = {f"loss: {part}": value for part, value in self.sums.items()}
        weights = [value.sum() for value in self.network.state_dict().values() if value.is_floating_point()]
        for name, total in (totals | {"weights: their sum": torch.stack(weights).sum()}).items():
            if not math.isfinite(total.item()):
                where = f"task {task}, epoch {self.epoch + 1}"
                raise UserError(f"{name} became {total.item()} in {where}; try a smaller --lr")


@dataclass(frozen=True)
class Pace:
    """How far a task is, for those who watch."""

    phase: str
    epoch: int
    epochs: int
    step: int
    steps: int
    images: int


Watch = Callable[[Progress, Pace], None]
"""Called after every step, and after every epoch with the next epoch's step 0."""


def _unwatched(progress: Progress, pace: Pace) -> None:
    pass


def start(method: Method, snapshot: Snapshot | None, task: Task, bench: Bench) -> Progress:
    """A task's first position: the previous network with room for the new classes."""
    if snapshot is None:
        return Progress(fresh(method, task.classes, bench))
    grown = snapshot.network.grow(task.classes.new, bench.random.at("head", task.number))
    return Progress(_placed(grown, bench))


def learn(
    method: Method,
    snapshot: Snapshot | None,
    memory: Memory,
    task: Task,
    bench: Bench,
    progress: Progress | None = None,
    watch: Watch = _unwatched,
) -> Snapshot:
    """Learn one task, from its start or from where `progress` stands; `progress` moves along."""
    progress = progress or start(method, snapshot, task, bench)
    teachers = {"old": snapshot} if snapshot else {}
    pool = Pool(task.indices, memory.indices, bench.samples.labels)
    phases = method.plan(task.classes)
    while progress.phase < len(phases):
        phase = phases[progress.phase]
        if phase.start == "fresh" and (progress.epoch, progress.step) == (0, 0):
            progress.network = fresh(method, task.classes, bench)
        Trainer(phase, progress, pool, task.classes, teachers, bench).run(watch)
        progress.phase, progress.epoch, progress.step = progress.phase + 1, 0, 0
        progress.momentum = {}
    _agree(progress.network, bench.fabric)
    scorers = {name: make().to(bench.fabric.device) for name, make in method.scorers.items()}
    return Snapshot(progress.network.clone(), task.classes, scorers)


def _placed(network: Network, bench: Bench) -> Network:
    return network.to(device=bench.fabric.device, dtype=bench.dtype)


def fresh(method: Method, classes: Classes, bench: Bench) -> Network:
    """A network with its first weights, and a head for these classes."""
    generator = bench.random.at("backbone", classes.task)
    network = build(bench.backbone, method.head, bench.samples.images.shape[2], bench.norm, generator)
    for task, size in enumerate(classes.sizes, 1):
        network = network.grow(size, bench.random.at("head", task))
    return _placed(network, bench)


def _agree(network: Network, fabric: Fabric) -> None:
    """Let all processes have the first one's batch-norm statistics: each has seen its own share of the images."""
    if fabric.world_size > 1:
        network.load_state_dict(fabric.broadcast(network.state_dict()))


def _reduced(fabric: Fabric, value: Tensor, how: str) -> Tensor:
    """A value over all processes."""
    if fabric.world_size == 1:
        return value
    total = fabric.all_reduce(value, reduce_op=how)
    assert isinstance(total, Tensor)
    return total


class Trainer:
    """One phase of one task."""

    def __init__(
        self,
        phase: Phase,
        progress: Progress,
        pool: Pool,
        classes: Classes,
        teachers: Mapping[str, Snapshot],
        bench: Bench,
    ) -> None:
        self.phase, self.progress, self.pool, self.classes, self.bench = phase, progress, pool, classes, bench
        self.random = bench.random.within(classes.task, phase.name)
        self.teachers = {name: Teacher(teachers[name]) for name in phase.teachers}
        labels = bench.samples.labels[pool.all]
        self.counts = torch.bincount(labels, minlength=classes.seen).to(bench.fabric.device)
        self.steps_per_epoch = phase.batches.steps(pool)
        self.optimizer = self._optimizer()
        self.network, self.stepper = bench.fabric.setup(progress.network.train(), self.optimizer)

    def run(self, watch: Watch) -> None:
        """All epochs that are left."""
        self.clock = time.perf_counter()
        for epoch in range(self.progress.epoch, self.phase.schedule.epochs):
            for _ in self.steps(epoch):
                self._tell(watch)
            self._close_epoch(epoch)
            self._tell(watch)

    def steps(self, epoch: int) -> Iterator[None]:
        """The steps of an epoch that are left, from indices to updated weights."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.phase.schedule.lr_at(epoch)
        batch_at = self.phase.batches.epoch(self.pool, self.random, epoch)
        for step in range(self.progress.step, self.steps_per_epoch):
            batch = batch_at(step)
            self._train(batch, epoch, step)
            self.progress.step = step + 1
            self.progress.images += len(batch.main) + len(batch.replayed)
            yield

    def _train(self, batch: Batch, epoch: int, step: int) -> None:
        images, labels = self._load(batch, self.random.at("augment", epoch, step))
        with self.bench.fabric.autocast():
            views = {name: teacher(images) for name, teacher in self.teachers.items()}
        terms = self.phase.loss(Step(labels, self.network(images), self.classes, views, self.counts))
        parts = self._divided(terms)
        self.stepper.zero_grad()
        self.bench.fabric.backward(torch.stack([*parts.values()]).sum())
        self.stepper.step()
        self.progress.momentum = self._momentum()
        for name, part in parts.items():
            self.progress.sums[name] = self.progress.sums.get(name, 0.0) + part.detach().double()

    def _load(self, batch: Batch, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """One process's share of a global batch: its slots of each part, with the draws that belong to them."""
        rank, world = self.bench.fabric.global_rank, self.bench.fabric.world_size
        if len(torch.cat(batch)) == 1 or max(map(len, batch)) < world:
            raise UserError(
                f"batch: {len(torch.cat(batch))} image(s) for {world} process(es) can't be normalised; "
                f"give the task more images, or fewer --devices"
            )
        main, replayed = (torch.arange(len(part))[rank::world] for part in batch)
        slots = torch.cat([main, len(batch.main) + replayed])
        indices = torch.cat(batch)
        draws = self.bench.transform.draw(len(indices), generator).take(slots)
        samples = self.bench.samples
        pixels = samples.images.fetch(indices[slots])
        images = self.bench.transform.train(pixels, draws, self.bench.dtype)
        return images, samples.labels[indices[slots]].to(images.device)

    def _divided(self, terms: Mapping[str, Term]) -> dict[str, Tensor]:
        """The terms over their divisors in all processes; DDP then takes the mean of gradients, hence the factor."""
        fabric = self.bench.fabric
        if strange := [name for name, term in terms.items() if not isinstance(term, Term)]:
            raise UserError(
                f"method: loss part {strange[0]!r} is no Term; return ssil.method.mean(values, one a sample)"
            )
        divisors = torch.tensor([term.divisor for term in terms.values()], dtype=self.bench.dtype)
        total = _reduced(fabric, divisors.to(fabric.device), "sum").clamp(min=1)
        sums = {name: term.values.sum() for name, term in terms.items()}
        return {name: value * (fabric.world_size / n) for (name, value), n in zip(sums.items(), total, strict=True)}

    def _close_epoch(self, epoch: int) -> None:
        progress = self.progress
        progress.check_finite(self.classes.task)
        parts = progress.losses.setdefault(self.phase.name, {})
        for name, value in progress.sums.items():
            mean = _reduced(self.bench.fabric, value, "mean") / self.steps_per_epoch
            parts.setdefault(name, []).append(float(mean))
        progress.sums = {}
        progress.epoch, progress.step = epoch + 1, 0

    def _optimizer(self) -> SGD:
        schedule, network = self.phase.schedule, self.progress.network
        optimizer = SGD(
            network.parameters(), lr=schedule.lr[0], momentum=schedule.momentum, weight_decay=schedule.weight_decay
        )
        for name, parameter in network.named_parameters():
            if name in self.progress.momentum:  # in the parameter's own memory layout: a bit-equal step depends on it
                buffer = torch.empty_like(parameter.detach()).copy_(self.progress.momentum[name])
                optimizer.state[parameter]["momentum_buffer"] = buffer
        return optimizer

    def _momentum(self) -> dict[str, Tensor]:
        state = self.optimizer.state
        buffers = {name: state[p].get("momentum_buffer") for name, p in self.progress.network.named_parameters()}
        return {name: buffer for name, buffer in buffers.items() if buffer is not None}

    def _tell(self, watch: Watch) -> None:
        progress, phase, now = self.progress, self.phase, time.perf_counter()
        progress.seconds[phase.name] = progress.seconds.get(phase.name, 0.0) + now - self.clock
        self.clock = now
        epochs, steps = phase.schedule.epochs, self.steps_per_epoch
        watch(progress, Pace(phase.name, progress.epoch, epochs, progress.step, steps, progress.images))
