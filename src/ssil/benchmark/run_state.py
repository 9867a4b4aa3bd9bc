"""The state of a run, what a checkpoint keeps of it, and restoring it; a checkpoint may be a stranger's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.amp import GradScaler

from ssil.benchmark.record import Record
from ssil.benchmark.run_identity import resumed_provenance
from ssil.benchmark.run_setup import RunSetup
from ssil.core.classes import ClassTable
from ssil.core.settings import LARGEST_COUNT
from ssil.learning.execution import ExecutionContext
from ssil.learning.exemplar_values import check_stored
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Stage
from ssil.learning.model_state import (
    join_groups,
    model_tensors,
    restore_model,
    restore_snapshot,
    snapshot_tensors,
    split_groups,
)
from ssil.learning.optimizer import misplaced
from ssil.learning.snapshot import MAIN, Scorer, Snapshot
from ssil.learning.task import Progress
from ssil.nn.network import Network

STORED = "stored"
"""The group of a checkpoint's tensors that are stored with exemplars."""
Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]


@dataclass
class RunState:
    """All that a run carries from one step to the next."""

    records: Mapping[str, Record]
    """By scorer."""
    snapshot: Snapshot | None = None
    """The model after the last finished task."""
    memory: Memory = field(default_factory=Memory)
    progress: Progress | None = None
    """The unfinished task, if one was begun."""

    @property
    def record(self) -> Record:
        """The record of the method's main scorer."""
        return self.records[MAIN]

    @property
    def position(self) -> tuple[object, ...]:
        """The settings, the finished tasks, and the position in the unfinished one: equal in all processes of a run."""
        progress = self.progress and (self.progress.phase, self.progress.epoch, self.progress.step)
        return self.record.config, len(self.record.tasks), progress


def state_meta(state: RunState) -> dict[str, Any]:
    """Return what a checkpoint's JSON file states: how far the run is."""
    return {
        "tasks_done": len(state.record.tasks),
        "memory_counts": list(state.memory.counts),
        "progress": state.progress and _position(state.progress),
    }


def _position(progress: Progress) -> dict[str, Any]:
    scaler = {"scaler": progress.scaler.state_dict()} if progress.scaler else {}
    return {name: getattr(progress, name) for name in Position.model_fields if name != "scaler"} | scaler


def memory_tensors(memory: Memory) -> dict[str, Tensor]:
    """Return the tensors of a memory by name: the exemplars' indices, and what is stored with them."""
    return {"indices": memory.indices, **join_groups({STORED: memory.stored})}


def progress_tensors(progress: Progress) -> dict[str, Tensor]:
    """Return the tensors of an unfinished task by name."""
    model = model_tensors(progress.network, progress.scorers)
    groups = {"momentum": progress.momentum, "sums": progress.sums, "model": model}
    groups |= {f"kept.{name}": snapshot_tensors(snapshot) for name, snapshot in progress.kept.items()}
    return join_groups(groups)


class _Stated(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Position(_Stated):
    """How far an unfinished task is; see `Progress`."""

    phase: Count
    epoch: Count
    step: Count
    images: Count
    losses: dict[str, dict[str, list[float]]]
    seconds: dict[str, float]
    gradient_steps: Count | None = None
    scaler: dict[str, Any] | None = None


class _Meta(_Stated):
    tasks_done: Count
    memory_counts: list[Count]
    progress: Position | None


class SavedState:
    """A checkpoint's content, which is compared with the run that it is to continue.

    Args:
        setup: The run.
        parts: The tensors of the checkpoint.
        meta: What its JSON file states.

    Raises:
        ValueError: `meta` is not what `state_meta` returns.
    """

    def __init__(self, setup: RunSetup, parts: Mapping[str, Mapping[str, Tensor]], **meta: Any) -> None:
        self.setup, self.parts, self.meta = setup, parts, _Meta(**meta)

    @property
    def tasks_done(self) -> int:
        """The number of finished tasks."""
        return self.meta.tasks_done

    def restore(self, records: Mapping[str, Record]) -> RunState:
        """Return the state of the run; raise some exception if the checkpoint, or a record, does not fit it.

        Args:
            records: The run's records, by scorer; tasks beyond the checkpoint are dropped from them.
        """
        done, tasks, context = self.tasks_done, self.setup.stream.tasks, self.setup.context
        self._check_records(records)
        state = RunState(self._resumed(records))
        if done:
            classes = tasks[done - 1].classes
            state.snapshot = restore_snapshot(self.parts["snapshot"], self._method, classes, context)
            state.memory = self._memory(classes)
        if self.meta.progress:
            state.progress = self._progress(self.meta.progress, tasks[done].classes)
        return state

    @property
    def _method(self) -> Method:
        return self.setup.configured.method

    def _check_records(self, records: Mapping[str, Record]) -> None:
        for name, record in records.items():
            if len(record.tasks) < self.tasks_done:
                whose = "the record" if name == MAIN else f"the record of {name}"
                raise ValueError(f"{self.tasks_done} finished tasks, of which {whose} has {len(record.tasks)}")

    def _resumed(self, records: Mapping[str, Record]) -> dict[str, Record]:
        """Return the records as they were at the checkpoint, with what is different now as provenance."""
        main, done, now = records[MAIN], self.tasks_done, self.setup.record.provenance
        if self.setup.config.threads is None:  # with another number of threads, sums would be rounded otherwise
            torch.set_num_threads(main.provenance["threads"])
            now = now | {"threads": main.provenance["threads"]}
        changes = {"provenance": resumed_provenance(main.after(done), now)}
        return {name: one.after(done).model_copy(update=changes) for name, one in records.items()}

    def _memory(self, classes: ClassTable) -> Memory:
        """Return the exemplars; raise ValueError if they are not images of the classes seen."""
        indices, counts = self.parts["memory"]["indices"], self.meta.memory_counts
        labels = self.setup.context.samples.labels
        if len(counts) != classes.seen or sum(counts) != len(indices):
            raise ValueError(f"memory_counts: {len(indices)} exemplars of {classes.seen} classes are not so many")
        expected = torch.arange(classes.seen).repeat_interleave(torch.tensor(counts))
        if len(indices) and (indices.min() < 0 or not torch.equal(labels[indices].cpu(), expected)):
            raise ValueError("memory: exemplars of other classes")
        stored = split_groups(self.parts["memory"]).get(STORED, {})
        memory = Memory(indices.split(counts), stored)
        check_stored(self._method, memory, classes.seen)
        return memory

    def _progress(self, position: Position, classes: ClassTable) -> Progress:
        """Return the unfinished task; raise ValueError if it does not fit the method's plan."""
        context, method = self.setup.context, self._method
        groups = split_groups(self.parts["progress"])
        early = groups.get("network", {})  # versions before 0.1.0 had no "model"
        model = groups.get("model", {f"network/{name}": value for name, value in early.items()})
        network, scorers = restore_model(model, method, classes, context)
        momentum = groups.get("momentum", {})
        _check_momentum(momentum, method.plan(classes)[position.phase], network, scorers[MAIN])
        sums = {name: value.to(context.fabric.device) for name, value in groups.get("sums", {}).items()}
        kept = {
            name.removeprefix("kept."): restore_snapshot(group, method, classes, context)
            for name, group in groups.items()
            if name.startswith("kept.")
        }
        scaler = _restore_scaler(position.scaler, context) if position.scaler else None
        where = position.model_dump(exclude={"scaler"})
        return Progress(network, scorers, kept, **where, sums=sums, momentum=momentum, scaler=scaler)


def _check_momentum(momentum: Mapping[str, Tensor], part: Phase | Stage, network: Network, scorer: Scorer) -> None:
    """Raise ValueError if the momentum is not that of the parameters that this part of the plan trains."""
    parts: dict[str, nn.Module] = {"network": network, "head": network.head, "scorer": scorer}
    trained, schedule = (parts[part.trained], part.schedule) if isinstance(part, Phase) else (None, None)
    if wrong := misplaced(momentum, trained, schedule):
        raise ValueError(f"momentum: {wrong[0]} is none of its parameters, or of another shape")


def _restore_scaler(state: dict[str, Any], context: ExecutionContext) -> GradScaler:
    scaler = GradScaler(context.fabric.device.type)
    scaler.load_state_dict(state)
    return scaler
