"""The cost of an SS-IL training step, as two ratios, each measured side by side in one run.

python benchmarks/step.py [--rounds 20] [--threads 2]

1. A step through the engine, from indices to updated weights, over the bare cost of the same work: student forward,
   backward and SGD on a batch that is ready, plus the teacher's forward.
2. A step with 20 tasks and 10,000 classes over one with 2 tasks and 10,000 classes.

resnet32, 32 pixels, 128 new and 32 replayed images. The two sides take turns; the median of
the rounds' ratios counts.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from statistics import median

import torch
from lightning_fabric import Fabric
from torch.nn import functional as F

from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.resident_images import Resident
from ssil.learning.batches import Pool
from ssil.learning.execution import ExecutionContext
from ssil.learning.method import Phase
from ssil.learning.model_state import initial_network
from ssil.learning.registry import configure
from ssil.learning.snapshot import MAIN, Scorer, Snapshot, TaskState
from ssil.learning.task import Progress
from ssil.learning.trainer import Trainer

NEW, REPLAYED, SIZE = 128, 32, 32
TRANSFORM = Transform((0.5, 0.5, 0.5), (0.25, 0.25, 0.25), pad=4, flip=True)


def trainer(tasks: int, classes: int) -> Trainer:
    """SS-IL about to learn the last of `tasks` tasks, on random pictures."""
    random = Randomness(0)
    size = classes // tasks
    table = ClassTable(("?",) * classes, tuple(range(0, classes + 1, size)))
    before = ClassTable(("?",) * (classes - size), table.bounds[:-1])
    pixels = torch.randint(256, (8192, SIZE, SIZE, 3), dtype=torch.uint8, generator=random.at("pixels"))
    old = torch.randint(table.old, (4096,), generator=random.at("old"))
    new = torch.randint(table.old, table.seen, (4096,), generator=random.at("new"))
    samples = Samples(Resident(pixels), torch.cat([old, new]))
    context = ExecutionContext(Fabric(accelerator="cpu", devices=1), samples, TRANSFORM, random, "resnet32")
    method = configure("ssil", options={"replay_batch": REPLAYED}, training={"batch": NEW}).method
    teacher = Snapshot(initial_network(method, before, context).clone(), before, {MAIN: Scorer()})
    pool = Pool(new=torch.arange(4096, 8192), old=torch.arange(4096), labels=samples.labels)
    progress = Progress(initial_network(method, table, context), {MAIN: Scorer()})
    work = TaskState(
        progress.network, progress.scorers, table, pool, teacher, random.within(tasks, "main"), context.outputs
    )
    (phase,) = method.plan(table)
    assert isinstance(phase, Phase)
    return Trainer(phase, progress, work, {"old": teacher}, context)


def engine_steps(trained: Trainer) -> Iterator[None]:
    """Steps without end."""
    for epoch in count():
        yield from trained.steps(epoch)
        trained.progress.step = 0


def bare_steps(trained: Trainer) -> Iterator[None]:
    """Student forward, backward and SGD on a ready batch, plus the plain teacher's forward; without end."""
    student = trained.progress.network.grow(0, torch.Generator())
    teacher = trained.teachers["old"].snapshot.network
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(NEW + REPLAYED, 3, SIZE, SIZE, generator=generator).to(memory_format=torch.channels_last)
    labels = torch.randint(student.head.classes, (len(images),), generator=generator)
    while True:
        with torch.no_grad():
            teacher(images)
        optimizer.zero_grad()
        F.cross_entropy(student(images).logits, labels).backward()
        optimizer.step()
        yield


def seconds(act: Callable[[], object]) -> float:
    """How long it takes once."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def compare(first: Callable[[], object], second: Callable[[], object], rounds: int) -> list[tuple[float, float]]:
    """Seconds of two things that take turns; the first two rounds warm up."""
    return [(seconds(first), seconds(second)) for _ in range(rounds + 2)][2:]


def report(title: str, first: Iterator[None], second: Iterator[None], limit: float, rounds: int) -> None:
    """Measure one ratio and print it."""
    times = compare(partial(next, first), partial(next, second), rounds)
    a, b = (median(side) for side in zip(*times, strict=True))
    ratios = sorted(a / b for a, b in times)
    middle, low, high = median(ratios), ratios[rounds // 4], ratios[-1 - rounds // 4]
    print(f"{title}: {middle:.3f} (half of the rounds: {low:.3f} to {high:.3f}; limit {limit}), {a:.3f} s / {b:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(
        f"resnet32, {NEW} + {REPLAYED} images of {SIZE} pixels, {arguments.threads} threads, torch {torch.__version__}"
    )
    ours = trainer(tasks=10, classes=100)
    report("engine step / bare step", engine_steps(ours), bare_steps(ours), 1.05, arguments.rounds)
    many, few = trainer(tasks=20, classes=10_000), trainer(tasks=2, classes=10_000)
    report("20 tasks / 2 tasks, 10,000 classes", engine_steps(many), engine_steps(few), 1.15, arguments.rounds)


if __name__ == "__main__":
    main()
