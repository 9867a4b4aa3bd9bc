"""The fold's step: (snapshot, memory) + task -> snapshot; no disk."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.learning.batches import Pool
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Stage
from ssil.learning.processes import agree_on
from ssil.learning.snapshot import Scorer, Snapshot, Work, freeze
from ssil.learning.task import Pace, Progress, Task, Watch
from ssil.learning.trainer import Trainer
from ssil.nn.network import Network, build


def _unwatched(progress: Progress, pace: Pace) -> None:
    pass


def start(method: Method, snapshot: Snapshot | None, task: Task, context: ExecutionContext) -> Progress:
    """A task's first position: the previous model with room for the new classes."""
    kept = snapshot.scorers if snapshot else {}
    scorers = {name: deepcopy(kept[name]) if name in kept else make() for name, make in method.scorers.items()}
    return Progress(_grown(method, snapshot, task, context), placed(scorers, context))


def learn(
    method: Method,
    snapshot: Snapshot | None,
    memory: Memory,
    task: Task,
    context: ExecutionContext,
    progress: Progress | None = None,
    watch: Watch = _unwatched,
) -> Snapshot:
    """Learn one task, from its start or from where `progress` stands; `progress` moves along."""
    progress = progress or start(method, snapshot, task, context)
    pool = Pool(task.indices, memory.indices, context.samples.labels)
    assert (pool.labels[pool.old] < task.classes.old).all(), "exemplars are of classes learnt before"
    lesson = _Lesson(method, snapshot, task, context, progress, pool)
    parts = method.plan(task.classes)
    names = [part.name for part in parts]
    if len({*names}) < len(names):
        raise UserError(f"method: parts of its plan have one name: {names}; give each its own")
    progress.parts = len(parts)
    while progress.phase < len(parts):
        lesson.do(parts[progress.phase], watch)
        progress.phase, progress.epoch, progress.step = progress.phase + 1, 0, 0
        progress.momentum, progress.scaler = {}, None
    for name, scorer in progress.scorers.items():
        known = _plain(scorer)
        scorer.fit(lesson.work("scorer"))
        if lost := [key for key, value in _plain(scorer).items() if known.get(key) is not value]:
            raise UserError(
                f"method: {lost[0]!r} of scorer {name!r} would not be saved; let it be a buffer or parameter"
            )
    lesson.agree()
    return freeze(progress.network, task.classes, progress.scorers)


def _plain(scorer: Scorer) -> dict[str, object]:
    """What a scorer holds beside parameters and buffers."""
    return {key: value for key, value in vars(scorer).items() if not key.startswith("_")}


@dataclass(frozen=True)
class _Lesson:
    """A task being learnt."""

    method: Method
    snapshot: Snapshot | None
    task: Task
    context: ExecutionContext
    progress: Progress
    pool: Pool

    def do(self, part: Phase | Stage, watch: Watch) -> None:
        """One part of the plan."""
        if isinstance(part, Stage):
            part.run(self.work(part.name))
            self.agree()
        else:
            self._train(part, watch)

    def _train(self, phase: Phase, watch: Watch) -> None:
        progress, classes = self.progress, self.task.classes
        if (progress.epoch, progress.step) == (0, 0):
            self._begin(phase)
        teachers = ({"old": self.snapshot} if self.snapshot else {}) | progress.kept
        Trainer(phase, progress, self.work(phase.name), teachers, self.context).run(watch)
        self.agree()
        if phase.keep_as:
            progress.kept[phase.keep_as] = freeze(progress.network, classes, progress.scorers)

    def agree(self) -> None:
        """Let all processes have the first one's model: each has seen its own share of the images."""
        for module in (self.progress.network, *self.progress.scorers.values()):
            agree_on(self.context.fabric, module)

    def _begin(self, phase: Phase) -> None:
        if phase.start == "fresh":
            self.progress.network = fresh(self.method, self.task.classes, self.context)
        elif phase.start == "previous":
            self.progress.network = _grown(self.method, self.snapshot, self.task, self.context)

    def work(self, name: str) -> Work:
        """What a part of the plan may look at and change."""
        progress, random = self.progress, self.context.random.within(self.task.number, name)
        task, look = self.task, self.context.outputs
        return Work(progress.network, progress.scorers, task.classes, self.pool, self.snapshot, random, look)


def _grown(method: Method, snapshot: Snapshot | None, task: Task, context: ExecutionContext) -> Network:
    """The previous network with room for the new classes, or a first one."""
    if snapshot is None:
        return fresh(method, task.classes, context)
    return _placed(snapshot.network.grow(task.classes.new, context.random.at("head", task.number)), context)


def fresh(method: Method, classes: ClassTable, context: ExecutionContext) -> Network:
    """A network with its first weights, and a head for these classes."""
    generator = context.random.at("backbone", classes.task)
    channels = context.samples.images.shape[2]
    network = build(context.backbone, method.head, channels, context.norm, generator, method.final_relu, context.init)
    for task, size in enumerate(classes.sizes, 1):
        network.head = network.head.grow(size, context.random.at("head", task))
    return _placed(network, context)


def _placed(network: Network, context: ExecutionContext) -> Network:
    return network.to(device=context.fabric.device, dtype=context.dtype)


def placed(scorers: Mapping[str, Scorer], context: ExecutionContext) -> dict[str, Scorer]:
    """The scorers where the network is."""
    return {name: scorer.to(device=context.fabric.device, dtype=context.dtype) for name, scorer in scorers.items()}
