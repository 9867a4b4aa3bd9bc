"""Learning one task: `(snapshot, memory) + task -> snapshot`. Nothing is read from or written to disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace

from torch import Tensor

from ssil.core.errors import UserError
from ssil.learning.batches import Pool
from ssil.learning.distributed import broadcast
from ssil.learning.execution import ExecutionContext
from ssil.learning.exemplar_values import with_values
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Stage
from ssil.learning.model_state import initial_network, place_scorers
from ssil.learning.snapshot import Scorer, Snapshot, TaskState, freeze
from ssil.learning.task import Observer, Progress, Task, ignore_progress
from ssil.learning.trainer import Trainer
from ssil.nn.network import Network, Output


def start(method: Method, snapshot: Snapshot | None, task: Task, context: ExecutionContext) -> Progress:
    """Return the state in which a task starts: the previous model with a head for the new classes too.

    Args:
        method: The method.
        snapshot: The model before the task; None for the first task, which starts with a new network.
        task: The task to learn.
        context: The devices and the training images.
    """
    before = snapshot.scorers if snapshot else {}
    scorers = {name: deepcopy(before[name]) if name in before else make() for name, make in method.scorers.items()}
    return Progress(_grown_network(method, snapshot, task, context), place_scorers(scorers, context))


def learn(
    method: Method,
    snapshot: Snapshot | None,
    memory: Memory,
    task: Task,
    context: ExecutionContext,
    progress: Progress | None = None,
    observer: Observer = ignore_progress,
) -> Snapshot:
    """Learn one task and return the resulting model.

    Args:
        method: The method.
        snapshot: The model before the task; None for the first task.
        memory: The exemplars of earlier tasks.
        task: The task to learn.
        context: The devices and the training images.
        progress: The state to continue from, which is changed in place; by default the start of the task.
        observer: Called after every step and epoch; may raise an exception to stop.
    """
    progress = progress or start(method, snapshot, task, context)
    pool = Pool(task.indices, memory.indices, context.samples.labels)
    assert (pool.labels[pool.old] < task.classes.old).all(), "exemplars are of classes learnt before"
    complete = with_values(method, snapshot, memory, context)
    learner = _TaskLearner(method, snapshot, task, context, progress, pool, complete)
    plan = method.plan(task.classes)
    names = [part.name for part in plan]
    if len({*names}) < len(names):
        raise UserError(f"method: parts of its plan have one name: {names}; give each its own")
    progress.parts = len(plan)
    while progress.phase < len(plan):
        learner.run(plan[progress.phase], observer)
        progress.phase, progress.epoch, progress.step = progress.phase + 1, 0, 0
        progress.momentum, progress.scaler = {}, None
    for name, scorer in progress.scorers.items():
        with learner.flags_are_kept(f"scorer {name!r}"):
            _fit(name, scorer, learner.scorer_state())
    learner.synchronise()
    return freeze(progress.network, task.classes, progress.scorers)


def _fit(name: str, scorer: Scorer, state: TaskState) -> None:
    """Fit a scorer to the task; raise UserError if it stores something that is not saved with a snapshot."""
    before = _plain_attributes(scorer)
    scorer.fit(state)
    if lost := [key for key, value in _plain_attributes(scorer).items() if before.get(key) is not value]:
        raise UserError(f"method: {lost[0]!r} of scorer {name!r} would not be saved; let it be a buffer or parameter")


def _plain_attributes(scorer: Scorer) -> dict[str, object]:
    """Return a scorer's attributes that are neither parameters nor buffers."""
    return {key: value for key, value in vars(scorer).items() if not key.startswith("_")}


@dataclass(frozen=True)
class _TaskLearner:
    """Runs the phases and stages of one task's plan."""

    method: Method
    snapshot: Snapshot | None
    task: Task
    context: ExecutionContext
    progress: Progress
    pool: Pool
    memory: Memory

    def run(self, part: Phase | Stage, observer: Observer) -> None:
        """Run a phase, from where it was left, or a stage."""
        if isinstance(part, Stage):
            with self.flags_are_kept(f"stage {part.name!r}"):
                part.run(self.state(part.name))
            self.synchronise()
        else:
            self._train(part, observer)

    def _train(self, phase: Phase, observer: Observer) -> None:
        progress = self.progress
        if (progress.epoch, progress.step) == (0, 0):
            self._set_start(phase)
        teachers = ({"old": self.snapshot} if self.snapshot else {}) | progress.kept
        Trainer(phase, progress, self.state(phase.name), teachers, self.context).run(observer)
        self.synchronise()
        if phase.keep_as:
            progress.kept[phase.keep_as] = freeze(progress.network, self.task.classes, progress.scorers)

    def _set_start(self, phase: Phase) -> None:
        """Set the network to the one with which the phase is to start."""
        if phase.start == "fresh":
            self.progress.network = initial_network(self.method, self.task.classes, self.context)
        elif phase.start == "previous":
            self.progress.network = _grown_network(self.method, self.snapshot, self.task, self.context)

    @contextmanager
    def flags_are_kept(self, where: str) -> Iterator[None]:
        """Raise UserError if parameters are frozen within the context, which the next phase would undo."""
        network = self.progress.network
        before = {name for name, parameter in network.trainable(network).named_parameters() if parameter.requires_grad}
        yield
        after = {name for name, parameter in self.progress.network.named_parameters() if not parameter.requires_grad}
        if frozen := sorted(before & after):
            undone = f"{where} sets requires_grad of {frozen[0]} to False, which the next phase would undo"
            raise UserError(f"method: {undone}; name what a phase is not to train in Phase(frozen=...)")

    def synchronise(self) -> None:
        """Give all processes the first one's model: batch statistics differ, as each sees its own share of a batch."""
        for module in (self.progress.network, *self.progress.scorers.values()):
            broadcast(self.context.fabric, module.state_dict().values())

    def state(self, name: str) -> TaskState:
        """Return the view of the task for the phase, stage or scorer called `name`, which keys its randomness."""
        progress, random = self.progress, self.context.random.within(self.task.number, name)
        model = progress.network, progress.scorers, self.task.classes
        return TaskState(*model, self.pool, self.snapshot, random, self.context.outputs, self.memory)

    def scorer_state(self) -> TaskState:
        """Return the view of the task for a scorer; the features that it asks for are kept for herding."""
        return replace(self.state("scorer"), evaluate=self._evaluate_keeping_features)

    def _evaluate_keeping_features(self, network: Network, indices: Tensor) -> Output:
        if network.head.classes:
            return self.context.outputs(network, indices)
        features = self.context.features(network, indices)
        return Output(features[:, :0], features)


def _grown_network(method: Method, snapshot: Snapshot | None, task: Task, context: ExecutionContext) -> Network:
    """Return the previous network with a head for the new classes too, or a new network for the first task."""
    if snapshot is None:
        return initial_network(method, task.classes, context)
    grown = snapshot.network.grow(task.classes.new, context.random.at("head", task.number))
    return grown.to(device=context.device, dtype=context.dtype)
