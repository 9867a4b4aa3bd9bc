"""One phase of one task: the only epoch loop; no disk."""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import SGD

from ssil.core.errors import UserError
from ssil.data.augmentation import Draws
from ssil.data.prefetch import ahead
from ssil.learning.batches import Batch
from ssil.learning.execution import ExecutionContext
from ssil.learning.loss_terms import checked, divisors, factors, foreseen, refuse_surprises
from ssil.learning.method import Moment, Phase
from ssil.learning.snapshot import MAIN, Snapshot, Step, Teacher, Work
from ssil.learning.task import Pace, Progress, Watch
from ssil.nn.network import Output


class Share(NamedTuple):
    """A process's share of a batch: pictures as they were fetched, what is drawn for them, their labels."""

    pixels: Tensor
    draws: Draws
    labels: Tensor

    def parts(self, count: int) -> list[Self]:
        """So many parts of nearly equal size, new and replayed images in each; fewer if there are fewer images."""
        if count == 1:
            return [self]
        rows = [torch.arange(len(self.labels))[first::count] for first in range(min(count, len(self.labels)))]
        return [type(self)(self.pixels[row], self.draws.take(row), self.labels[row]) for row in rows]


def load(batch: Batch, generator: torch.Generator, context: ExecutionContext, least: int) -> Share:
    """The slots of this process in each part of a global batch, with the draws that belong to them."""
    rank, world = context.fabric.global_rank, context.fabric.world_size
    indices = torch.cat(batch)
    if len(indices) < least or max(map(len, batch)) < world:
        few = f"{len(indices)} training image(s) for {world} process(es)"
        cure = "fewer --devices" if world > 1 else "fewer --tasks"
        raise UserError(f"batch: {few}, of which batch norm needs two each; give the task more images, or {cure}")
    main, replayed = (torch.arange(len(part))[rank::world] for part in batch)
    slots = torch.cat([main, len(batch.main) + replayed])
    draws = context.transform.draw(len(indices), generator).take(slots)
    mine = indices[slots]
    return Share(context.samples.images.fetch(mine, draws), draws, context.samples.labels[mine])


__all__ = ["Pace", "Progress", "Trainer", "Watch"]


class Trainer:
    """One phase of one task."""

    def __init__(
        self, phase: Phase, progress: Progress, work: Work, teachers: Mapping[str, Snapshot], context: ExecutionContext
    ) -> None:
        self.phase, self.progress, self.work, self.context = phase, progress, work, context
        self.classes, self.random = work.classes, work.random
        if missing := [name for name in phase.teachers if name not in teachers]:
            task = self.classes.task
            raise UserError(f"method: phase {phase.name!r} asks for the teacher {missing[0]!r}; task {task} has none")
        self.teachers = {name: Teacher(teachers[name]) for name in phase.teachers}
        self.pool = phase.images(work.pool, self.classes, context.random) if phase.images else work.pool
        labels = context.samples.labels[self.pool.all]
        self.counts = torch.bincount(labels, minlength=self.classes.seen).to(context.fabric.device)
        self.steps_per_epoch = phase.batches.steps(self.pool) if len(self.pool.all) else 0
        self.of_outputs = phase.trained == "scorer"
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
        network, context = self.progress.network, self.context
        if self.of_outputs:
            self.stepper = self.optimizer
            self.features = self.work.features(self.pool.all)
            self.row = torch.empty(len(context.samples), dtype=torch.long)
            self.row[self.pool.all] = torch.arange(len(self.pool.all))
            return
        self._compile()
        self._scale()
        if context.synchronised and self.phase.trained == "network":
            nn.SyncBatchNorm.convert_sync_batchnorm(network)
        self.network, self.stepper = context.fabric.setup(network, self.optimizer)

    def _compile(self) -> None:
        """Compile the backbones alone: with the head, which grows, they would be compiled for every task."""
        if self.context.compiler is not None:
            for network in (self.progress.network, *(teacher.network for teacher in self.teachers.values())):
                network.backbone.compile(backend=self.context.compiler)

    def _scale(self) -> None:
        """In fp16: scale losses as the phase has so far, from its start."""
        from lightning_fabric.plugins.precision.amp import MixedPrecision  # takes seconds to import

        precision, device = self.context.fabric.strategy.precision, self.context.fabric.device
        if isinstance(precision, MixedPrecision) and precision.scaler:
            precision.scaler = self.progress.scaler = self.progress.scaler or GradScaler(device.type)

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
        for step, (batch, share) in self._batches(epoch):
            self._train(batch, share, epoch, step)
            self.progress.step = step + 1
            if not self.of_outputs:  # which are no images
                self.progress.images += len(batch.main) + len(batch.replayed)
            yield

    def _batches(self, epoch: int) -> Iterator[tuple[int, tuple[Batch, Share | None]]]:
        """The steps of an epoch that are left, with their batches; pictures are loaded before they are needed."""
        batch_at = self.phase.batches.epoch(self.pool, self.random, epoch)
        least = 2 if self.phase.trained == "network" else 1

        def loaded(step: int) -> tuple[Batch, Share | None]:
            batch, draws = batch_at(step), self.random.at("augment", epoch, step)
            return batch, None if self.of_outputs else load(batch, draws, self.context, least)

        steps = range(self.progress.step, self.steps_per_epoch)
        return zip(steps, ahead(loaded, steps, self.context.samples.images.ahead, workers=2), strict=True)

    def _train(self, batch: Batch, share: Share | None, epoch: int, step: int) -> None:
        moment = Moment(epoch, step, sum(map(len, batch)))
        self.stepper.zero_grad()
        parts = self._backward(share) if share else self._backward_of_outputs(batch)
        if self.phase.gradients:
            if self.progress.scaler:
                self.progress.scaler.unscale_(self.optimizer)
            self.phase.gradients(self.work, moment)
        self.stepper.step()
        if self.phase.project:
            with torch.no_grad():
                self.phase.project(self.work, moment)
        self.progress.momentum = self._momentum()
        for name, part in parts.items():
            self.progress.sums[name] = self.progress.sums.get(name, 0.0) + part

    def _backward_of_outputs(self, batch: Batch) -> dict[str, Tensor]:
        """The gradients of a scorer, in every process those of the whole batch."""
        terms = checked(self.phase.loss(self._step_of_outputs(batch)))
        parts = {name: term.values.sum() * (1 / max(term.divisor, 1)) for name, term in terms.items()}
        torch.stack([*parts.values()]).sum().backward()
        return {name: part.detach().double() for name, part in parts.items()}

    def _backward(self, share: Share) -> dict[str, Tensor]:
        """The gradients of a share, summed over its parts, and what each term of the loss comes to."""
        portions = share.parts(self.context.accumulate)
        whole, weights, sums = dict[str, int](), dict[str, float](), dict[str, Tensor]()
        for number, portion in enumerate(portions, 1):
            with self._unshared(number < len(portions)):
                step = self._step(portion)
                terms = checked(self.phase.loss(step))
                if number == 1:
                    whole = divisors(terms) if portion is share else foreseen(self.phase.loss, step, share.labels)
                    weights = factors(whole, self.context)
                parts = {name: term.values.sum() * weights[name] for name, term in terms.items()}
                self.context.fabric.backward(torch.stack([*parts.values()]).sum())
            for name, part in parts.items():
                sums[name] = sums.get(name, 0.0) + part.detach().double()
            whole = {name: whole[name] - term.divisor for name, term in terms.items() if term.values.requires_grad}
        refuse_surprises(whole)
        return sums

    def _unshared(self, wanted: bool) -> AbstractContextManager[None]:
        """Gradients stay in this process, if so wished."""
        several = self.context.fabric.world_size > 1
        return self.context.fabric.no_backward_sync(self.network, wanted) if several else nullcontext()

    def _step(self, share: Share) -> Step:
        """What the loss sees of a share."""
        images = self.context.transform.train(share.pixels, share.draws, self.context.dtype)
        labels = share.labels.to(images.device)
        with self.context.fabric.autocast():
            views = {name: teacher(images) for name, teacher in self.teachers.items()}
        head, scorer = self.progress.network.head, self.progress.scorers[MAIN]
        return Step(labels, self.network(images), self.classes, views, self.counts, head, scorer)

    def _step_of_outputs(self, batch: Batch) -> Step:
        """What the loss of a scorer sees of a batch."""
        indices = torch.cat(batch)
        labels, features = self.context.samples.labels[indices].to(self.counts.device), self.features[self.row[indices]]
        head, scorer = self.progress.network.head, self.progress.scorers[MAIN]
        return Step(labels, Output(head(features), features), self.classes, {}, self.counts, head, scorer)

    def _close_epoch(self, epoch: int) -> None:
        progress = self.progress
        progress.agree(self.context)
        progress.check_finite(self.classes.task)
        parts = progress.losses.setdefault(self.phase.name, {})
        for name, value in progress.sums.items():
            parts.setdefault(name, []).append(float(value / self.steps_per_epoch))
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
