"""The parts of a run that depend on the number of classes, each ready to be done over and over: see scale.py."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ssil.benchmark.record import Record, TaskRecord, read_record, write_record
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.augmentation import Draws
from ssil.data.resident_images import Resident, Unchanged, vectors
from ssil.learning import metrics
from ssil.learning.batches import Pool
from ssil.learning.evaluation import predict
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import FixedBudget, Memory, by_class, herding, random_selection, update
from ssil.learning.method import Phase
from ssil.learning.model_state import initial_network
from ssil.learning.registry import configure
from ssil.learning.snapshot import MAIN, Scorer, Snapshot, TaskState
from ssil.learning.task import Progress
from ssil.learning.trainer import Trainer
from ssil.methods.icarl import NearestMean
from ssil.nn.network import Output

WIDTH, TASKS, EXEMPLARS, IMAGES, BATCH, REPLAYED = 512, 10, 5, 10, 128, 32
"""Of a feature; tasks; exemplars of an old class; images of a new one; of a mini-batch, new and replayed."""
TESTED, HERDED = 1024, 500
"""Images of an evaluation; of a class whose exemplars are chosen."""


class Endless(Resident):
    """Any number of feature vectors, which take no memory: a thousand, over and over again."""

    def fetch(self, indices: Tensor, draws: Draws | None = None) -> Tensor:
        """The vectors as bytes."""
        return super().fetch(indices % len(self.pixels))


@dataclass(frozen=True)
class Scene:
    """SS-IL, about to learn the last of the tasks: exemplars of old classes first, then the images of new ones."""

    classes: ClassTable
    context: ExecutionContext
    old: Snapshot
    new: Snapshot
    pool: Pool

    @property
    def memory(self) -> Memory:
        """The exemplars of old classes."""
        return Memory(self.pool.old.split(EXEMPLARS))


def scene(classes: int) -> Scene:
    table = ClassTable(tuple(map(str, range(classes))), tuple(range(0, classes + 1, classes // TASKS)))
    before = ClassTable(table.names[: table.old], table.bounds[:-1])
    old = torch.arange(table.old).repeat_interleave(EXEMPLARS)
    labels = torch.cat([old, torch.arange(table.old, table.seen).repeat_interleave(IMAGES)])
    images = Endless(vectors(torch.randn(1000, WIDTH, generator=torch.Generator().manual_seed(0))).pixels)
    samples = Samples(images, labels)
    context = ExecutionContext(Fabric(accelerator="cpu", devices=1), samples, Unchanged(), Randomness(0), "identity")
    pool = Pool(torch.arange(len(old), len(labels)), torch.arange(len(old)), labels)
    old_model, new_model = (
        Snapshot(initial_network(METHOD, t, context).clone(), t, {MAIN: Scorer()}) for t in (before, table)
    )
    return Scene(table, context, old_model, new_model, pool)


METHOD = configure("ssil", options={"replay_batch": REPLAYED}, training={"batch": BATCH}).method
Act = Callable[[], object]


def work(of: Scene, pool: Pool, scorer: Scorer) -> TaskState:
    network, random = of.new.network.grow(0, torch.Generator()), of.context.random.within(TASKS, "main")
    return TaskState(network, {MAIN: scorer}, of.classes, pool, of.old, random, of.context.outputs)


def step(of: Scene, _: int) -> Act:
    """Head forward and backward, separated softmax, TKD, the teacher's forward, SGD; the batch is what it is."""
    todo = work(of, of.pool, Scorer())
    progress = Progress(todo.network, todo.scorers)
    (phase,) = METHOD.plan(of.classes)
    assert isinstance(phase, Phase)
    trainer = Trainer(phase, progress, todo, {"old": of.old}, of.context)
    return partial(next, _steps(trainer))


def _steps(trainer: Trainer) -> Iterator[None]:
    for epoch in count():
        yield from trainer.steps(epoch)
        trainer.progress.step = 0


def random_memory(of: Scene, _: int) -> Act:
    """Old classes give up what no longer fits, new ones choose at random."""
    arrived = by_class(of.pool.new, of.pool.labels)
    budget = FixedBudget(len(of.pool.old))
    return lambda: update(of.memory, arrived, of.classes, budget, random_selection(of.context.random))


def herded_class(of: Scene, images: int) -> Act:
    """One class chooses 20 of its images by herding."""
    select = herding(lambda indices: of.context.outputs(of.new.network.headless(), indices).features)
    return lambda: select(0, torch.arange(images) % len(of.context.samples), 20)


def class_mean(of: Scene, images: int) -> Act:
    """The mean of one class, for nearest-mean scores; the table of all means is made anew once a task, not here."""
    scorer = NearestMean()
    todo = work(of, Pool(torch.arange(images) % EXEMPLARS, of.pool.old[:0], of.pool.labels), scorer)
    return lambda: scorer.fit(todo)


def nearest_mean(of: Scene, images: int) -> Act:
    """Scores of images by the distance of their features from class means."""
    scorer = NearestMean()
    scorer.means = torch.randn(of.classes.seen, WIDTH)
    found = torch.randn(images, WIDTH)
    parts = [Output(part, part) for part in found.split(512)]
    return lambda: [scorer(part, of.classes).argmax(1) for part in parts]


def evaluation(of: Scene, images: int) -> Act:
    """Predictions for test images, and the numbers of a record and a report that are made of them."""
    indices = torch.arange(images) * 7919 % len(of.context.samples)

    def act() -> None:
        found = predict(of.new, indices, of.context.samples, of.context)[MAIN]
        for of_predictions in (metrics.top1, metrics.top5, metrics.interval, metrics.mean_scores, metrics.score_gap):
            of_predictions(found)
        for of_classes in (metrics.task_top1, metrics.class_top1, metrics.confusion):
            of_classes(found, of.classes)

    return act


def record(of: Scene, _: int) -> Act:
    """The record of all tasks is written and read."""
    made = _record(of)

    def act() -> int:
        with TemporaryDirectory() as folder:
            write_record(Path(folder), made)
            read_record(folder)
            return (Path(folder) / "record.json").stat().st_size

    print(f"record.json of {of.classes.seen:,} classes: {act() / 1e6:.2f} MB", file=sys.stderr)
    return act


def _record(of: Scene) -> Record:
    tasks = [
        TaskRecord(
            **{
                "task": task,
                "classes_seen": seen,
                "memory_counts": [EXEMPLARS] * seen,
                "exemplar_bytes": 0,
                "loss": {},
            },
            **dict.fromkeys(("top1", "top5", "score_old", "score_new", "softmax_old", "softmax_new", "score_gap"), 0.0),
            **{"task_top1": [0.0] * task, "confusion": [[0] * task] * task, "teacher_ratio": None, "seconds": 0.0},
            **{"seconds_by_phase": {}, "images_seen": 0, "gradient_steps": 0},
            **{"images_per_second": 0.0, "peak_memory_mb": 0.0},
        )
        for task, seen in enumerate(of.classes.bounds[1:], 1)
    ]
    order, names = [*range(of.classes.seen)], [*of.classes.names]
    header = {"class_order": order, "class_names": names, "task_sizes": [*of.classes.sizes]}
    return Record(config={}, provenance={}, **header, tasks=tasks)


class Part(NamedTuple):
    """What is measured: its name, how to make it ready, of how many images, and whether it is done once a class."""

    name: str
    ready: Callable[[Scene, int], Act]
    images: int
    each_class: bool = False


PARTS = (
    Part("training step, 128 + 32 images", step, 0),
    Part("memory update, random", random_memory, 0),
    Part("herding 20 of 500 images, a class", herded_class, HERDED, each_class=True),
    Part("mean of 500 images, a class", class_mean, HERDED, each_class=True),
    Part("nearest-mean scores, 1,024 images", nearest_mean, TESTED),
    Part("evaluation, 1,024 images", evaluation, TESTED),
    Part("record, written and read", record, 0),
)
