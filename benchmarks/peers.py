"""`ssil run` against a bare loop as a user would write it, on the same stream: a stand-in for what other code does.

python benchmarks/peers.py --cifar DIR [--threads 2] [--rounds 3]

CIFAR-100, SS-IL, 2 tasks of 20 classes, 100 training images a class, all test images, 1 epoch, resnet32. Both sides
have the same images, batches, network, first weights, loss and schedule. The bare loop has torch's DataLoader with two
worker processes, which crop, mirror and normalise one tensor after the other (no Pillow, no files to decode), networks
in torch's usual memory format, a teacher with its batch norms, torch's own SGD, and test batches of 128.

Each run is a fresh process; the two sides take turns. The median over the rounds counts: images per second in training
(with the start of the workers, which every epoch needs), and wall clock and CPU time of the whole process. DIR is the
folder that holds `cifar-100-binary`.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ssil.benchmark.config import RunConfig
from ssil.benchmark.run_setup import RunSetup, set_up
from ssil.benchmark.runner import run
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.learning.batches import Pool
from ssil.learning.engine import start
from ssil.learning.execution import keep_freed_memory
from ssil.learning.memory import Memory, by_class, random_selection, update
from ssil.learning.method import Phase
from ssil.learning.snapshot import Scorer, Snapshot, Step, TeacherOutput
from ssil.learning.task import Task
from ssil.nn.network import Network

WORKERS, TEST_BATCH = 2, 128


class Result(NamedTuple):
    """What a run tells of itself."""

    images: int
    seconds: float
    """Of training."""
    top1: float
    """After the last task."""


class Measured(NamedTuple):
    """A run as a process of its own."""

    images_per_second: float
    wall: float
    cpu: float
    top1: float


def config(threads: int) -> RunConfig:
    stream = {"dataset": "cifar100", "classes": 40, "tasks": 2, "train_per_class": 100, "device": "cpu"}
    return RunConfig.model_validate({**stream, "backbone": "resnet32", "epochs": 1, "threads": threads})


def ours(threads: int) -> Result:
    """`ssil run`."""
    keep_freed_memory()  # as the command does
    record = run(config(threads))
    seconds = [sum(task.seconds_by_phase.values()) for task in record.tasks]
    images = sum(task.images_per_second * took for task, took in zip(record.tasks, seconds, strict=True))
    return Result(round(images), sum(seconds), record.tasks[-1].top1)


class Tensors(Dataset[tuple[Tensor, int]]):
    """Images as tensors, augmented one by one."""

    def __init__(self, samples: Samples, transform: Transform, train: bool) -> None:
        self.images = samples.images.fetch(torch.arange(len(samples))).permute(0, 3, 1, 2).contiguous()
        self.labels, self.train, self.pad = samples.labels.tolist(), train, transform.pad
        self.mean, self.std = (torch.tensor(values).view(3, 1, 1) for values in (transform.mean, transform.std))

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index]
        if self.train:
            padded = torch.nn.functional.pad(image, (self.pad,) * 4)
            top, left = torch.randint(2 * self.pad + 1, (2,)).tolist()
            image = padded[:, top : top + image.shape[1], left : left + image.shape[2]]
            image = image.flip(2) if torch.rand(()) < 0.5 else image
        return (image.float() / 255 - self.mean) / self.std, self.labels[index]


class BareLoop:
    """SS-IL in a plain loop over tasks, batches and steps."""

    def __init__(self, setup: RunSetup) -> None:
        self.setup, self.memory = setup, Memory()
        stream, transform = setup.stream, setup.context.transform
        self.train, self.test = Tensors(stream.train, transform, train=True), Tensors(stream.test, transform, False)
        self.old: Snapshot | None = None
        self.images, self.seconds, self.top1 = 0, 0.0, 0.0

    def learn(self, task: Task) -> None:
        """Train on a task, test, and choose exemplars."""
        setup = self.setup
        network = start(setup.configured.method, self.old, task, setup.context).network
        network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        began = time.perf_counter()
        self._train(network, task)
        self.seconds += time.perf_counter() - began
        network.eval()
        self.top1 = self._tested(network, task)
        self.old = Snapshot(deepcopy(network).requires_grad_(False), task.classes, {"main": Scorer()})
        arrived = by_class(task.indices, setup.stream.train.labels)
        select = random_selection(setup.context.random)
        self.memory = update(self.memory, arrived, task.classes, setup.budget, select)

    def _train(self, network: Network, task: Task) -> None:
        (phase,) = self.setup.configured.method.plan(task.classes)
        assert isinstance(phase, Phase)
        labels = self.setup.stream.train.labels
        pool = Pool(task.indices, self.memory.indices, labels)
        counts = torch.bincount(labels[pool.all], minlength=task.classes.seen)
        rates = phase.schedule
        optimizer = torch.optim.SGD(
            network.parameters(), rates.lr_at(0), momentum=rates.momentum, weight_decay=rates.weight_decay
        )
        for images, targets in self._batches(phase, pool, task):
            teachers = self._teachers(images)
            step = Step(targets, network(images), task.classes, teachers, counts, network.head, Scorer())
            terms = phase.loss(step).values()
            optimizer.zero_grad()
            torch.stack([term.values.sum() / max(term.divisor, 1) for term in terms]).sum().backward()
            optimizer.step()
            self.images += len(images)

    def _batches(self, phase: Phase, pool: Pool, task: Task) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches that the engine would train on."""
        batch_at = phase.batches.epoch(pool, self.setup.context.random.within(task.number, phase.name), 0)
        batches = [torch.cat(batch_at(step)).tolist() for step in range(phase.batches.steps(pool))]
        return iter(DataLoader(self.train, batch_sampler=batches, num_workers=WORKERS))

    def _teachers(self, images: Tensor) -> dict[str, TeacherOutput]:
        if not self.old:
            return {}
        with torch.no_grad():
            output = self.old.network(images)
        return {"old": TeacherOutput(output, output.logits)}

    @torch.no_grad()
    def _tested(self, network: Network, task: Task) -> float:
        """Return the top-1 accuracy on the test images of all classes seen."""
        seen = self.setup.stream.seen(task).tolist()
        loader = DataLoader(self.test, TEST_BATCH, sampler=seen, num_workers=WORKERS)
        correct = sum(int((network(images).logits.argmax(1) == labels).sum()) for images, labels in loader)
        return 100 * correct / len(seen)


def bare(threads: int) -> Result:
    """The bare loop."""
    setup = set_up(config(threads))
    loop = BareLoop(setup)
    for task in setup.stream.tasks:
        loop.learn(task)
    return Result(loop.images, loop.seconds, loop.top1)


SIDES = {"ssil": ours, "bare": bare}


def measured(side: str, threads: int, data: Path) -> Measured:
    """Return the measures of a fresh process."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "SSIL_DATA": str(data.resolve())}
    command = [sys.executable, __file__, "--child", side, str(threads)]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    result = Result(*json.loads(done.stdout.splitlines()[-1]))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(result.images / result.seconds, wall, cpu, result.top1)


def report(rounds: list[dict[str, Measured]]) -> None:
    """Print a Markdown table, and the ratios round by round."""
    print("| | images/s in training | whole run: seconds | CPU seconds | top-1 |")
    print("|---|---|---|---|---|")
    for side in SIDES:
        speed, wall, cpu, top1 = (median(column) for column in zip(*(one[side] for one in rounds), strict=True))
        print(f"| {side} | {speed:.0f} | {wall:.1f} | {cpu:.1f} | {top1:.1f} |")
    ratios = [
        (one["ssil"].images_per_second / one["bare"].images_per_second, one["bare"].wall / one["ssil"].wall)
        for one in rounds
    ]
    for name, values in zip(("training", "whole run"), zip(*ratios, strict=True), strict=True):
        print(f"{name}: {median(values):.2f} times as fast ({', '.join(f'{value:.2f}' for value in values)})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    rounds = [
        {side: measured(side, arguments.threads, arguments.cifar) for side in SIDES} for _ in range(arguments.rounds)
    ]
    print(f"{arguments.threads} threads, {arguments.rounds} rounds; load before: {load:.1f}\n")
    report(rounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(SIDES[sys.argv[2]](int(sys.argv[3]))))
    else:
        main()
