"""One phase of one task: the only epoch loop; no disk."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.optim import SGD

from ssil.batches import Batch
from ssil.bench import Bench
from ssil.data import Draws, ahead
from ssil.errors import UserError
from ssil.method import Moment, Phase, Term
from ssil.nn import Network
from ssil.snapshot import MAIN, Scorer, Snapshot, Step, Teacher, Work
from ssil.types import Output


@dataclass
class Progress:
    """A task in progress: where it is, and all that must be kept to go on from there."""

    network: Network
    scorers: Mapping[str, Scorer]
    kept: dict[str, Snapshot] = field(default_factory=dict)
    """What the phases so far have kept as teachers."""
    parts: int = 1
    """Of the plan."""
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
        modules = (self.network, *self.scorers.values())
        tensors = [tensor for module in modules for tensor in module.state_dict().values()]
        weights = [tensor.double().sum() for tensor in tensors if tensor.is_floating_point()]
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
    part: int = 0
    parts: int = 1
    """Of the plan: which one is at work, from 0, and how many there are."""

    @property
    def done(self) -> float:
        """How much of a task is done, all parts of the plan being alike.

        >>> Pace("main", epoch=1, epochs=2, step=2, steps=4, images=96, part=0, parts=2).done
        0.375
        """
        return (self.part + (self.epoch + self.step / self.steps) / self.epochs) / self.parts


Watch = Callable[[Progress, Pace], None]
"""Called after every step, and after every epoch with the next epoch's step 0."""


class Loaded(NamedTuple):
    """A process's share of a batch: pictures as they were fetched, what is drawn for them, their labels."""

    pixels: Tensor
    draws: Draws
    labels: Tensor


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
        self, phase: Phase, progress: Progress, work: Work, teachers: Mapping[str, Snapshot], bench: Bench
    ) -> None:
        self.phase, self.progress, self.work, self.bench = phase, progress, work, bench
        self.classes, self.random = work.classes, work.random
        if missing := [name for name in phase.teachers if name not in teachers]:
            task = self.classes.task
            raise UserError(f"method: phase {phase.name!r} asks for the teacher {missing[0]!r}; task {task} has none")
        self.teachers = {name: Teacher(teachers[name]) for name in phase.teachers}
        self.pool = phase.images(work.pool, self.classes, bench.random) if phase.images else work.pool
        labels = bench.samples.labels[self.pool.all]
        self.counts = torch.bincount(labels, minlength=self.classes.seen).to(bench.fabric.device)
        self.steps_per_epoch = phase.batches.steps(self.pool) if len(self.pool.all) else 0
        self.trained = self._trained()
        self.optimizer = self._optimizer()
        self._set_up()

    def _trained(self) -> nn.Module:
        """The part of the model that moves; all else is frozen and in eval mode."""
        network, scorer = self.progress.network, self.progress.scorers[MAIN]
        network.requires_grad_(False).train(self.phase.trained == "network")
        for other in self.progress.scorers.values():
            other.requires_grad_(False)
        parts: dict[str, nn.Module] = {"network": network, "head": network.head, "scorer": scorer}
        return parts[self.phase.trained].requires_grad_(True)

    def _set_up(self) -> None:
        """Share the network among the processes; a scorer is so small that each trains it whole."""
        network = self.progress.network
        if self.phase.trained == "scorer":
            self.network, self.stepper = network, self.optimizer
            self.outputs = self.bench.outputs(network, self.pool.all)
            self.row = torch.empty(len(self.bench.samples), dtype=torch.long)
            self.row[self.pool.all] = torch.arange(len(self.pool.all))
        else:
            self.network, self.stepper = self.bench.fabric.setup(network, self.optimizer)

    def run(self, watch: Watch) -> None:
        """All epochs that are left."""
        self.clock = time.perf_counter()
        if not self.steps_per_epoch:
            return
        for epoch in range(self.progress.epoch, self.phase.schedule.epochs):
            for _ in self.steps(epoch):
                self._tell(watch)
            self._close_epoch(epoch)
            self._tell(watch)

    def steps(self, epoch: int) -> Iterator[None]:
        """The steps of an epoch that are left, from indices to updated weights."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.phase.schedule.lr_at(epoch)
        for step, (batch, loaded) in self._batches(epoch):
            self._train(batch, loaded, epoch, step)
            self.progress.step = step + 1
            if self.phase.trained != "scorer":  # which looks at none
                self.progress.images += len(batch.main) + len(batch.replayed)
            yield

    def _batches(self, epoch: int) -> Iterator[tuple[int, tuple[Batch, Loaded | None]]]:
        """The steps of an epoch that are left, with their batches; pictures are loaded before they are needed."""
        batch_at = self.phase.batches.epoch(self.pool, self.random, epoch)

        def load(step: int) -> tuple[Batch, Loaded | None]:
            batch = batch_at(step)
            of_outputs = self.phase.trained == "scorer"
            return batch, None if of_outputs else self._load(batch, self.random.at("augment", epoch, step))

        steps = range(self.progress.step, self.steps_per_epoch)
        return zip(steps, ahead(load, steps, self.bench.samples.images.ahead, workers=2), strict=True)

    def _train(self, batch: Batch, loaded: Loaded | None, epoch: int, step: int) -> None:
        moment = Moment(epoch, step, sum(map(len, batch)))
        parts = self._divided(self.phase.loss(self._step(batch, loaded)))
        self.stepper.zero_grad()
        self.bench.fabric.backward(torch.stack([*parts.values()]).sum())
        if self.phase.gradients:
            self.phase.gradients(self.work, moment)
        self.stepper.step()
        if self.phase.project:
            with torch.no_grad():
                self.phase.project(self.work, moment)
        self.progress.momentum = self._momentum()
        for name, part in parts.items():
            self.progress.sums[name] = self.progress.sums.get(name, 0.0) + part.detach().double()

    def _step(self, batch: Batch, loaded: Loaded | None) -> Step:
        """What the loss sees of a batch."""
        head, scorer = self.progress.network.head, self.progress.scorers[MAIN]
        if loaded is None:
            indices = torch.cat(batch)
            labels = self.bench.samples.labels[indices].to(self.counts.device)
            rows = self.row[indices]
            output = Output(self.outputs.logits[rows], self.outputs.features[rows])
            return Step(labels, output, self.classes, {}, self.counts, head, scorer)
        images = self.bench.transform.train(loaded.pixels, loaded.draws, self.bench.dtype)
        labels = loaded.labels.to(images.device)
        with self.bench.fabric.autocast():
            views = {name: teacher(images) for name, teacher in self.teachers.items()}
        return Step(labels, self.network(images), self.classes, views, self.counts, head, scorer)

    def _load(self, batch: Batch, generator: torch.Generator) -> Loaded:
        """One process's share of a global batch: its slots of each part, with the draws that belong to them."""
        rank, world = self.bench.fabric.global_rank, self.bench.fabric.world_size
        alone = len(torch.cat(batch)) == 1 and self.phase.trained == "network"
        if alone or max(map(len, batch)) < world:
            few = f"{len(torch.cat(batch))} training image(s) for {world} process(es)"
            cure = "fewer --devices" if world > 1 else "fewer --tasks"
            raise UserError(f"batch: {few}, of which batch norm needs two each; give the task more images, or {cure}")
        main, replayed = (torch.arange(len(part))[rank::world] for part in batch)
        slots = torch.cat([main, len(batch.main) + replayed])
        indices = torch.cat(batch)
        draws = self.bench.transform.draw(len(indices), generator).take(slots)
        mine, samples = indices[slots], self.bench.samples
        return Loaded(samples.images.fetch(mine, draws), draws, samples.labels[mine])

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
        schedule = self.phase.schedule
        optimizer = SGD(
            self.trained.parameters(), lr=schedule.lr[0], momentum=schedule.momentum, weight_decay=schedule.weight_decay
        )
        for name, parameter in self.trained.named_parameters():
            if name in self.progress.momentum:  # in the parameter's own memory layout: a bit-equal step depends on it
                buffer = torch.empty_like(parameter.detach()).copy_(self.progress.momentum[name])
                optimizer.state[parameter]["momentum_buffer"] = buffer
        return optimizer

    def _momentum(self) -> dict[str, Tensor]:
        state = self.optimizer.state
        buffers = {name: state[p].get("momentum_buffer") for name, p in self.trained.named_parameters()}
        return {name: buffer for name, buffer in buffers.items() if buffer is not None}

    def _tell(self, watch: Watch) -> None:
        progress, phase, now = self.progress, self.phase, time.perf_counter()
        progress.seconds[phase.name] = progress.seconds.get(phase.name, 0.0) + now - self.clock
        self.clock = now
        epochs, steps = phase.schedule.epochs, self.steps_per_epoch
        where = progress.epoch, epochs, progress.step, steps, progress.images
        watch(progress, Pace(phase.name, *where, progress.phase, progress.parts))
