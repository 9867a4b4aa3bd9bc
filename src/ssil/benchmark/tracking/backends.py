"""Where points go: TensorBoard, MLflow, Weights & Biases. A package is imported only when it is asked for."""

import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from ssil.benchmark.record import Record, TaskRecord, flat
from ssil.learning.metrics import latest_share, newest_share

Losses = Mapping[str, Mapping[str, Sequence[float]]]
"""Of a task so far: by phase, part and epoch."""

Point = tuple[int, dict[str, float]]
"""A step, and what was measured there."""

SCORES = ("score_old", "score_new", "score_gap", "softmax_old", "softmax_new")

Setting = bool | int | float | str


def history(record: Record) -> list[Point]:
    """The points of the tasks that are done, one for each step from 1 on."""
    points: list[Point] = []
    for task in record.tasks:
        points += epochs(task.loss, len(points))
        points.append((len(points) + 1, _results(task)))
    if record.summary:
        points[-1][1].update({f"summary/{name}": value for name, value in record.summary.model_dump().items()})
    return points


def epochs(losses: Losses, before: int) -> list[Point]:
    """The points of a task's epochs, after so many steps.

    >>> epochs({"main": {"ce": [2.0, 1.0]}, "balanced": {"ce": [0.5]}}, before=7)
    [(8, {'loss/main/ce': 2.0}), (9, {'loss/main/ce': 1.0}), (10, {'loss/balanced/ce': 0.5})]
    """
    found = [
        {f"loss/{phase}/{part}": values[epoch] for part, values in parts.items() if epoch < len(values)}
        for phase, parts in losses.items()
        for epoch in range(max(map(len, parts.values()), default=0))
    ]
    return list(enumerate(found, before + 1))


def _results(task: TaskRecord) -> dict[str, float]:
    """A task's numbers that exist."""
    later = task.task > 1
    values = {
        "accuracy/top1": task.top1,
        "accuracy/top5": task.top5,
        **{f"task_top1/{number:02d}": value for number, value in enumerate(task.task_top1, 1)},
        "bias/newest_share": newest_share(task.confusion) if later else None,
        "bias/latest_share": latest_share(task.teacher_ratio) if task.teacher_ratio else None,
        **{f"bias/{name}": getattr(task, name) for name in SCORES},
        "memory/exemplars": sum(task.memory_counts),
        "memory/exemplar_bytes": task.exemplar_bytes,
        "memory/peak_memory_mb": task.peak_memory_mb,
        "images_per_second/task": task.images_per_second,
        "stream/task": task.task,
        "stream/classes_seen": task.classes_seen,
        "stream/seconds": task.seconds,
    }
    return {name: float(value) for name, value in values.items() if value is not None and isfinite(value)}


def settings(record: Record) -> dict[str, Setting]:
    """What the run was told, as hyper-parameters."""
    described = flat(record.config | {"task_sizes": record.task_sizes})
    return {name: value if isinstance(value, Setting) else str(value) for name, value in described.items()}


class TrackingBackend(Protocol):
    """Keeps the points of one run."""

    look: str
    """How to look at them."""

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Setting]) -> str:
        """Begin a run (None), or go on with it after this step; what to call it by the next time."""
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Keep a point, at once."""
        ...

    def end(self, finished: bool) -> None:
        """The process ends, the run perhaps not."""
        ...


class TensorBoard:
    """Event files in the folder."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from torch.utils.tensorboard import SummaryWriter

        self._folder, self._hparams = folder, hparams_pb
        self._open: Any = SummaryWriter
        self.look = shlex.join(["tensorboard", "--logdir", str(folder)])

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Setting]) -> str:
        """Of a run that goes on, what a killed process may have written after the step is hidden."""
        self.writer = self._open(str(self._folder), purge_step=step + 1 if run else None)
        if not run:
            self.writer.file_writer.add_summary(self._hparams(dict(settings)))
        return name

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """A scalar each."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def end(self, finished: bool) -> None:
        """Close the file."""
        self.writer.close()


class Mlflow:
    """A store of files in the folder, unless MLFLOW_TRACKING_URI names another."""

    def __init__(self, folder: Path) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        self._open: Any = MlflowClient
        self._metric: Any = Metric
        uri = self.look = os.environ.get("MLFLOW_TRACKING_URI", "")
        if not uri:
            os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # the only store of its own that mlflow-skinny has
            uri = (folder / "mlflow").absolute().as_uri()
            self.look = f"MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {shlex.quote(uri)}"
        self._uri = uri

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Setting]) -> str:
        """In the experiment of MLFLOW_EXPERIMENT_NAME, or `ssil`."""
        self.client = self._open(self._uri)
        if run:
            self.client.update_run(run, "RUNNING")
        self.run = run or self._create(name, settings)
        return self.run

    def _create(self, name: str, settings: Mapping[str, Setting]) -> str:
        title = os.environ.get("MLFLOW_EXPERIMENT_NAME", "ssil")
        found = self.client.get_experiment_by_name(title)
        experiment = found.experiment_id if found else self.client.create_experiment(title)
        run = str(self.client.create_run(experiment, run_name=name).info.run_id)
        for key, value in settings.items():
            self.client.log_param(run, key, value)
        return run

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """A metric each, its name without what MLflow refuses."""
        now = int(1000 * time.time())
        names = {name: re.sub(r"[^\w\-. :/]", "_", name) for name in values}
        self.client.log_batch(self.run, [self._metric(names[name], values[name], now, step) for name in values])

    def end(self, finished: bool) -> None:
        """Say how the run stands."""
        self.client.set_terminated(self.run, "FINISHED" if finished else "KILLED")


class Wandb:
    """Weights & Biases: offline in the folder where there is no key, unless WANDB_MODE says otherwise."""

    def __init__(self, folder: Path) -> None:
        import wandb

        self._wandb, self._folder = wandb, folder
        self.mode = os.environ.get("WANDB_MODE") or ("online" if wandb.login(prompt=False, verify=False) else "offline")
        offline = f"wandb sync {shlex.quote(str(folder / 'wandb'))}/offline-run-*"
        self.look = offline if self.mode == "offline" else "https://wandb.ai"

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Setting]) -> str:
        """In the project of WANDB_PROJECT, or `ssil`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", "ssil"),
            id=run,
            resume="allow",
            name=name,
            config=dict(settings),
            dir=self._folder,
            mode=self.mode,
            settings=self._wandb.Settings(console="off", silent=self.mode != "online"),
        )
        return str(self.run.id)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """A row."""
        self.run.log(dict(values), step=step, commit=True)

    def end(self, finished: bool) -> None:
        """Wait until all is sent."""
        self.run.finish(exit_code=0 if finished else 1)


BACKENDS: dict[str, Callable[[Path], TrackingBackend]] = {"tensorboard": TensorBoard, "mlflow": Mlflow, "wandb": Wandb}
