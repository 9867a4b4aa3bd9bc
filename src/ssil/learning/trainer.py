"""One phase of one task: the only epoch loop. Nothing is read from or written to disk.

From top to bottom: the set-up of a phase, its epochs and steps, the gradients of one step, the end of an epoch; at last
the terms of a loss, whose divisors count the whole batch, although a process may see only a part of its images.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer

from ssil.core.errors import UserError
from ssil.data.prefetch import prefetch
from ssil.learning import distributed
from ssil.learning.batches import Batch, LocalBatch, load
from ssil.learning.execution import ExecutionContext
from ssil.learning.exemplar_values import KeptValues
from ssil.learning.method import Loss, Phase, StepPosition, Term
from ssil.learning.optimizer import make_optimizer, optimizer_state, restore_optimizer_state, set_rate
from ssil.learning.snapshot import MAIN, Snapshot, Step, TaskState, Teacher, TeacherOutput
from ssil.learning.task import Observer, Progress, ProgressReport
from ssil.nn.network import Output


class Trainer:
    """Trains one phase of one task, from its start or from the epoch and step of `progress`."""

    def __init__(
        self,
        phase: Phase,
        progress: Progress,
        state: TaskState,
        teachers: Mapping[str, Snapshot],
        context: ExecutionContext,
    ) -> None:
        self.phase, self.progress, self.state, self.context = phase, progress, state, context
        self.classes, self.random = state.classes, state.random
        if missing := [name for name in phase.teachers if name not in teachers]:
            task = self.classes.task
            raise UserError(f"method: phase {phase.name!r} asks for the teacher {missing[0]!r}; task {task} has none")
        self.teachers = {name: Teacher(teachers[name]) for name in phase.teachers}
        self.pool = phase.images(state.pool, self.classes, context.random) if phase.images else state.pool
        labels = context.samples.labels[self.pool.all]
        self.counts = torch.bincount(labels, minlength=self.classes.seen).to(context.device)
        self.kept = KeptValues(state.memory, len(context.samples), context.device)
        self.steps_per_epoch = phase.batches.steps(self.pool) if len(self.pool.all) else 0
        self.trains_scorer = phase.trained == "scorer"
        self.trained = self._trained_part()
        self.optimizer = self._optimizer()
        if self.trains_scorer:
            self._set_up_scorer()
        else:
            self._set_up_network()

    def _trained_part(self) -> nn.Module:
        """Freeze the model and put it in eval mode, except for the part that the phase trains; return that part."""
        network, scorer = self.progress.network, self.progress.scorers[MAIN]
        network.requires_grad_(False).train(self.phase.trained == "network")
        for other in self.progress.scorers.values():
            other.requires_grad_(False)
        if self.trains_scorer:
            return scorer.requires_grad_(True)
        trained = network if self.phase.trained == "network" else network.head
        network.trainable(trained)
        for name in self.phase.frozen:
            self._submodule(name).requires_grad_(False).eval()
        return trained

    def _submodule(self, name: str) -> nn.Module:
        try:
            return self.progress.network.get_submodule(name)
        except AttributeError:
            parts = ", ".join(name for name, _ in self.progress.network.named_modules() if name.count(".") == 1)
            known = f"its network has {parts}"
            raise UserError(f"method: phase {self.phase.name!r} names {name!r}, which is no part; {known}") from None

    def _optimizer(self) -> Optimizer:
        """Return the optimiser, with the state of an interrupted phase."""
        rates = sorted(self.phase.rates.items(), key=lambda rate: rate[0].count("."))
        factors = {parameter: rate for name, rate in rates for parameter in self._submodule(name).parameters()}
        optimizer = make_optimizer(self.trained.parameters(), self.phase.schedule, factors)
        restore_optimizer_state(optimizer, self.trained, self.progress.momentum)
        return optimizer

    def _set_up_scorer(self) -> None:
        """Compute the features of all images once. Every process trains the small scorer on whole batches."""
        self.stepper: Optimizer = self.optimizer
        self.features = self.state.features(self.pool.all)
        self.feature_row = torch.empty(len(self.context.samples), dtype=torch.long)
        self.feature_row[self.pool.all] = torch.arange(len(self.pool.all))

    def _set_up_network(self) -> None:
        """Compile the backbones if asked to, and let Fabric prepare network and optimiser for several processes."""
        network, context = self.progress.network, self.context
        self.fabric = distributed.training_fabric(context.fabric)
        if context.compiler is not None:
            # Without the head, whose growth would mean to compile again for every task.
            for one in (network, *(teacher.network for teacher in self.teachers.values())):
                one.backbone.compile(backend=context.compiler)
        precision = distributed.precision_plugin(self.fabric)
        if getattr(precision, "scaler", None):  # fp16: every phase starts with a scaler of its own
            precision.scaler = self.progress.scaler = self.progress.scaler or GradScaler(context.device.type)
        several_gpus = context.fabric.world_size > 1 and context.device.type == "cuda"
        if several_gpus and self.phase.trained == "network":  # on CPUs PyTorch has no synchronised batch norm
            nn.SyncBatchNorm.convert_sync_batchnorm(network)
        self.network: Any
        self.network, self.stepper = self.fabric.setup(network, self.optimizer)

    def run(self, observer: Observer) -> None:
        """Train for all epochs that are left."""
        self.clock = time.perf_counter()
        if not self.steps_per_epoch:
            return
        for epoch in range(self.progress.epoch, self.phase.schedule.epochs):
            for _ in self.steps(epoch):
                self._report(observer)
            self._close_epoch(epoch)
            self._report(observer)

    def steps(self, epoch: int) -> Iterator[None]:
        """Do the steps of an epoch that are left; yield after each."""
        set_rate(self.optimizer, self.phase.schedule.lr_at(epoch))
        for step, (batch, local) in self._batches(epoch):
            self._update(batch, local, epoch, step)
            self.progress.step = step + 1
            if not self.trains_scorer:  # which sees features, not images
                self.progress.count_step(len(batch.main) + len(batch.replayed))
            yield

    def _batches(self, epoch: int) -> Iterator[tuple[int, tuple[Batch, LocalBatch | None]]]:
        """Yield the steps of an epoch that are left, with their batches, prefetched if fetching images takes time."""
        batch_at = self.phase.batches.epoch(self.pool, self.random, epoch)
        least = 2 if self.phase.trained == "network" else 1

        def loaded(step: int) -> tuple[Batch, LocalBatch | None]:
            batch, generator = batch_at(step), self.random.at("augment", epoch, step)
            return batch, None if self.trains_scorer else load(batch, generator, self.context, least)

        steps = range(self.progress.step, self.steps_per_epoch)
        return zip(steps, prefetch(loaded, steps, self.context.samples.images.prefetch_depth, threads=2), strict=True)

    def _update(self, batch: Batch, local: LocalBatch | None, epoch: int, step: int) -> None:
        """Do one optimiser step, with the phase's hooks before and after it, and add up the loss terms."""
        position = StepPosition(epoch, step, sum(map(len, batch)))
        self.stepper.zero_grad()
        values = self._backward(local) if local else self._backward_scorer(batch)
        if self.phase.gradients:
            if self.progress.scaler:
                self.progress.scaler.unscale_(self.optimizer)
            self.phase.gradients(self.state, position)
        self.stepper.step()
        if self.phase.project:
            with torch.no_grad():
                self.phase.project(self.state, position)
        self.progress.momentum = optimizer_state(self.optimizer, self.trained)
        for name, value in values.items():
            self.progress.sums[name] = self.progress.sums.get(name, 0.0) + value

    def _backward(self, local: LocalBatch) -> dict[str, Tensor]:
        """Compute the gradients of this process's share, part by part, and return the value of each loss term."""
        parts = local.split(self.context.accumulate)
        left, weights, values = dict[str, int](), dict[str, float](), dict[str, Tensor]()
        for number, part in enumerate(parts, 1):
            with self._no_gradient_exchange(number < len(parts)):
                step = self._step(part)
                terms = _checked(self.phase.loss(step))
                if number == 1:
                    whole = part is local
                    left = _divisors(terms) if whole else _whole_divisors(self.phase.loss, step, local, self.kept)
                    weights = _weights(left, self.context)
                weighted = {name: term.values.sum() * weights[name] for name, term in terms.items()}
                self.fabric.backward(torch.stack([*weighted.values()]).sum())
            for name, value in weighted.items():
                values[name] = values.get(name, 0.0) + value.detach().double()
            left = {name: left[name] - term.divisor for name, term in terms.items() if term.values.requires_grad}
        _refuse_remainder(left)
        return values

    def _no_gradient_exchange(self, wanted: bool) -> AbstractContextManager[None]:
        """Return a context in which, if `wanted`, gradients are not yet averaged over the processes."""
        if isinstance(self.fabric, distributed.SingleDevice) or self.fabric.world_size == 1:
            return nullcontext()
        return self.fabric.no_backward_sync(self.network, wanted)

    def _step(self, part: LocalBatch) -> Step:
        """Return the input of the loss for some images: labels, and the outputs of teachers and student."""
        images = self.context.transform.train(part.pixels, part.draws, self.context.dtype)
        labels = part.labels.to(images.device)
        with self.fabric.autocast():
            outputs = {name: teacher(images) for name, teacher in self.teachers.items()}
        head, scorer = self.progress.network.head, self.progress.scorers[MAIN]
        kept = self.kept.of(part.indices, part.replayed)
        return Step(labels, self.network(images), self.classes, outputs, self.counts, head, scorer, *kept)

    def _backward_scorer(self, batch: Batch) -> dict[str, Tensor]:
        """Compute the gradients of the scorer for a global batch, and return the value of each loss term."""
        indices = torch.cat(batch)
        labels, features = self.context.samples.labels[indices], self.features[self.feature_row[indices]]
        head, scorer = self.progress.network.head, self.progress.scorers[MAIN]
        output = Output(head(features), features)
        kept = self.kept.of(indices, torch.arange(len(indices)) >= len(batch.main))
        step = Step(labels.to(self.counts.device), output, self.classes, {}, self.counts, head, scorer, *kept)
        terms = _checked(self.phase.loss(step))
        values = {name: term.values.sum() * (1 / max(term.divisor, 1)) for name, term in terms.items()}
        torch.stack([*values.values()]).sum().backward()
        return {name: value.detach().double() for name, value in values.items()}

    def _close_epoch(self, epoch: int) -> None:
        """Record the mean of each loss term over the epoch; stop if one is not finite."""
        progress = self.progress
        progress.average_sums(self.context)
        progress.check_finite(self.classes.task)
        means = progress.losses.setdefault(self.phase.name, {})
        for name, value in progress.sums.items():
            means.setdefault(name, []).append(float(value / self.steps_per_epoch))
        progress.sums = {}
        progress.epoch, progress.step = epoch + 1, 0

    def _report(self, observer: Observer) -> None:
        """Add the time since the last report to the phase's, and call the observer."""
        progress, phase, now = self.progress, self.phase, time.perf_counter()
        progress.seconds[phase.name] = progress.seconds.get(phase.name, 0.0) + now - self.clock
        self.clock = now
        epochs, steps = phase.schedule.epochs, self.steps_per_epoch
        position = progress.epoch, epochs, progress.step, steps, progress.images
        observer(progress, ProgressReport(phase.name, *position, progress.phase, progress.parts))


def _checked(terms: Mapping[str, Term]) -> Mapping[str, Term]:
    """Return `terms`; raise UserError if one of them is not a `Term`."""
    if wrong := [name for name, term in terms.items() if not isinstance(term, Term)]:
        raise UserError(
            f"method: loss part {wrong[0]!r} is no Term; return ssil.mean(values), with one value per sample"
        )
    return terms


def _divisors(terms: Mapping[str, Term]) -> dict[str, int]:
    return {name: term.divisor for name, term in terms.items()}


@torch.no_grad()
def _whole_divisors(loss: Loss, step: Step, local: LocalBatch, kept: KeptValues) -> dict[str, int]:
    """Return the divisors for a process's whole share of a batch, of which `step` is the first part.

    The loss is called with the whole share's labels, indices and stored values, and a placeholder for the outputs, on
    which divisors don't depend.
    """
    labels = local.labels.to(step.labels.device)
    teachers = {
        name: TeacherOutput(_placeholder(given.output, labels), _first_row(given.scores, labels))
        for name, given in step.teachers.items()
    }
    indices, exemplars, replayed, stored = kept.of(local.indices, local.replayed)
    known = replace(step, labels=labels, indices=indices, exemplars=exemplars, replayed=replayed, stored=stored)
    return _divisors(loss(replace(known, output=_placeholder(step.output, labels), teachers=teachers)))


def _placeholder(output: Output, labels: Tensor) -> Output:
    """Return the first image's output once per label; of stage maps one pixel only, to save memory."""
    stages = tuple(_first_row(stage[..., :1, :1], labels) for stage in output.stages)
    auxiliary = None if output.auxiliary is None else _first_row(output.auxiliary, labels)
    return Output(_first_row(output.logits, labels), _first_row(output.features, labels), stages, auxiliary)


def _first_row(values: Tensor, labels: Tensor) -> Tensor:
    return values[:1].expand(len(labels), *values.shape[1:])


def _refuse_remainder(left: Mapping[str, int]) -> None:
    """Raise UserError unless the divisors of all parts have added up to those of the whole batch."""
    if odd := [name for name, count in left.items() if count]:
        what = f"the divisor of loss part {odd[0]!r} depends on the outputs"
        raise UserError(f"method: {what}, which can't be known of a batch in parts; leave --accumulate out")


def _weights(divisors: Mapping[str, int], context: ExecutionContext) -> dict[str, float]:
    """Return processes / (sum of a term's divisor over all processes): DDP takes the mean of their gradients."""
    totals = distributed.total(context.fabric, divisors.values())
    return {name: context.fabric.world_size / max(total, 1) for name, total in zip(divisors, totals, strict=True)}
