"""Where points go: TensorBoard, MLflow, Weights & Biases. A package is imported only when it is asked for."""

import os
import re
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

Hyperparameter = bool | int | float | str


class TrackingBackend(Protocol):
    """A tool that stores and shows the points of one run."""

    viewer: str
    """The command or the address to view them."""

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Hyperparameter]) -> str:
        """Begin a new run (`run` is None), or continue it after `step`; return its name for the next time."""
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Store a point, without delay."""
        ...

    def end(self, finished: bool) -> None:
        """Close the run; `finished` is whether all of it is done, or only this process ends."""
        ...


class TensorBoard:
    """TensorBoard: event files in the folder."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from torch.utils.tensorboard import SummaryWriter

        self._folder, self._hparams = folder, hparams_pb
        self._open: Any = SummaryWriter
        self.viewer = shlex.join(["tensorboard", "--logdir", str(folder)])

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Hyperparameter]) -> str:
        """Open a new event file; of a continued run it hides what a killed process has written after the step."""
        self.writer = self._open(str(self._folder), purge_step=step + 1 if run else None)
        if not run:
            self.writer.file_writer.add_summary(self._hparams(dict(settings)))
        return name

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write one scalar per value."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def end(self, finished: bool) -> None:
        """Close the event file."""
        self.writer.close()


class Mlflow:
    """MLflow: files in the folder, unless MLFLOW_TRACKING_URI names a server."""

    def __init__(self, folder: Path) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        self._open: Any = MlflowClient
        self._metric: Any = Metric
        uri = self.viewer = os.environ.get("MLFLOW_TRACKING_URI", "")
        if not uri:
            os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # the only store of its own that mlflow-skinny has
            uri = (folder / "mlflow").absolute().as_uri()
            self.viewer = f"MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {shlex.quote(uri)}"
        self._uri = uri

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Hyperparameter]) -> str:
        """Begin or continue a run in the experiment of MLFLOW_EXPERIMENT_NAME (default: `ssil`)."""
        self.client = self._open(self._uri)
        if run:
            self.client.update_run(run, "RUNNING")
        self.run = run or self._create(name, settings)
        return self.run

    def _create(self, name: str, settings: Mapping[str, Hyperparameter]) -> str:
        title = os.environ.get("MLFLOW_EXPERIMENT_NAME", "ssil")
        found = self.client.get_experiment_by_name(title)
        experiment = found.experiment_id if found else self.client.create_experiment(title)
        run = str(self.client.create_run(experiment, run_name=name).info.run_id)
        for key, value in settings.items():
            self.client.log_param(run, key, value)
        return run

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write one metric per value; characters that MLflow refuses in names become underscores."""
        now = int(1000 * time.time())
        names = {name: re.sub(r"[^\w\-. :/]", "_", name) for name in values}
        self.client.log_batch(self.run, [self._metric(names[name], values[name], now, step) for name in values])

    def end(self, finished: bool) -> None:
        """Set the status of the run."""
        self.client.set_terminated(self.run, "FINISHED" if finished else "KILLED")


class Wandb:
    """Weights & Biases: offline in the folder if there is no API key, unless WANDB_MODE is set."""

    def __init__(self, folder: Path) -> None:
        import wandb

        self._wandb, self._folder = wandb, folder
        self.mode = os.environ.get("WANDB_MODE") or ("online" if wandb.login(prompt=False, verify=False) else "offline")
        offline = f"wandb sync {shlex.quote(str(folder / 'wandb'))}/offline-run-*"
        self.viewer = offline if self.mode == "offline" else "https://wandb.ai"

    def begin(self, run: str | None, step: int, name: str, settings: Mapping[str, Hyperparameter]) -> str:
        """Begin or continue a run in the project of WANDB_PROJECT (default: `ssil`)."""
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
        """Write the values as one row."""
        self.run.log(dict(values), step=step, commit=True)

    def end(self, finished: bool) -> None:
        """Close the run, and wait until all of it is sent."""
        self.run.finish(exit_code=0 if finished else 1)


BACKENDS: dict[str, Callable[[Path], TrackingBackend]] = {"tensorboard": TensorBoard, "mlflow": Mlflow, "wandb": Wandb}
