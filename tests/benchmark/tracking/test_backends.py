"""Points arrive in MLflow and in Weights & Biases: in stand-ins, and in the packages where they are installed."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from ssil.benchmark.record import Record
from ssil.benchmark.tracking.backends import Hyperparameter, Mlflow, Wandb
from ssil.benchmark.tracking.tracker import Tracker, hyperparameters

STEPS = [*range(1, 10)]


# ---- MLflow and Weights & Biases, as far as this project uses them


class Metric(NamedTuple):
    key: str
    value: float
    timestamp: int
    step: int


class FakeClient:
    """One store, which all clients share; it is as strict about names."""

    def __init__(self, kept: dict[str, Any], uri: str) -> None:
        self.kept = kept
        kept["uri"] = uri

    def get_experiment_by_name(self, name: str) -> Any:
        return self.kept.get(name)

    def create_experiment(self, name: str) -> str:
        self.kept[name] = SimpleNamespace(experiment_id="7")
        return "7"

    def create_run(self, experiment: str, run_name: str) -> Any:
        self.kept |= {"name": run_name, "metrics": [], "params": {}, "experiment": experiment}
        return SimpleNamespace(info=SimpleNamespace(run_id="r1"))

    def update_run(self, run: str, status: str) -> None:
        self.kept["status"] = (run, status)

    set_terminated = update_run

    def log_param(self, run: str, key: str, value: Hyperparameter) -> None:
        self.kept["params"][key] = value

    def log_batch(self, run: str, metrics: list[Metric]) -> None:
        assert run == "r1"
        assert all(character.isalnum() or character in "_-. :/" for metric in metrics for character in metric.key)
        self.kept["metrics"] += metrics


@pytest.fixture
def fake_mlflow(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    package, entities = ModuleType("mlflow"), ModuleType("mlflow.entities")
    vars(package)["MlflowClient"], vars(entities)["Metric"] = lambda uri: FakeClient(kept, uri), Metric
    monkeypatch.setitem(sys.modules, "mlflow", package)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "")
    return kept


def _odd(record: Record) -> Record:
    """With a phase that no store's rules foresee."""
    tasks = [task.model_copy(update={"loss": {"main": task.loss["main"], "(b)": {}}}) for task in record.tasks]
    tasks[0] = tasks[0].model_copy(update={"loss": {"b*": tasks[0].loss["main"]}})
    return record.model_copy(update={"tasks": tasks})


def test_mlflow(whole: Record, tmp_path: Path, fake_mlflow: dict[str, Any]) -> None:
    for last in (2, None):
        with Tracker(Mlflow(tmp_path), tmp_path / "mlflow.json", print) as tracked:
            tracked.started(_odd(whole).after(last or 3))
    assert fake_mlflow["uri"] == f"file://{tmp_path}/mlflow"
    assert fake_mlflow["name"] == "ssil on digits, seed 0"
    assert fake_mlflow["status"] == ("r1", "FINISHED")
    assert fake_mlflow["params"] == hyperparameters(whole)
    assert sorted({metric.step for metric in fake_mlflow["metrics"]}) == STEPS
    assert [metric.step for metric in fake_mlflow["metrics"] if metric.key == "accuracy/top1"] == [3, 6, 9]
    assert [metric.step for metric in fake_mlflow["metrics"] if metric.key == "loss/b_/ce"] == [1, 2]


def test_mlflow_elsewhere(
    whole: Record, tmp_path: Path, fake_mlflow: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking:5000")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "streams")
    store = Mlflow(tmp_path)
    Tracker(store, tmp_path / "mlflow.json", print).started(whole)
    assert fake_mlflow["uri"] == store.viewer == "http://tracking:5000"
    assert fake_mlflow["streams"].experiment_id == fake_mlflow["experiment"]


class FakeRun:
    def __init__(self, kept: dict[str, Any]) -> None:
        self.kept, self.id = kept, kept["init"]["id"] or "w1"

    def log(self, values: dict[str, float], step: int, commit: bool) -> None:
        assert commit
        self.kept.setdefault("steps", []).append(step)

    def finish(self, exit_code: int) -> None:
        self.kept["exit_code"] = exit_code


@pytest.fixture
def fake_wandb(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    kept: dict[str, Any] = {"logged_in": False}

    def init(**settings: Any) -> FakeRun:
        assert settings["dir"].is_dir()
        kept["init"] = settings
        return FakeRun(kept)

    package = ModuleType("wandb")
    vars(package).update(init=init, Settings=dict, login=lambda prompt, verify: kept["logged_in"])
    monkeypatch.setitem(sys.modules, "wandb", package)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return kept


def test_wandb(whole: Record, tmp_path: Path, fake_wandb: dict[str, Any]) -> None:
    folder = tmp_path / "tracking"
    for last in (2, 3):
        with Tracker(Wandb(folder), folder / "wandb.json", print) as tracked:
            tracked.started(whole.after(last))
    assert fake_wandb["init"]["id"] == "w1"
    assert fake_wandb["init"]["config"] == hyperparameters(whole)
    assert fake_wandb["steps"] == STEPS
    assert fake_wandb["exit_code"] == 0


@pytest.mark.parametrize(
    ("logged_in", "asked", "mode"), [(False, "", "offline"), (True, "", "online"), (True, "offline", "offline")]
)
def test_wandb_is_offline_where_there_is_no_key(
    logged_in: bool,
    asked: str,
    mode: str,
    tmp_path: Path,
    fake_wandb: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_wandb["logged_in"] = logged_in
    monkeypatch.setenv("WANDB_MODE", asked)
    store = Wandb(tmp_path)
    store.begin(None, 0, "name", {})
    assert fake_wandb["init"]["mode"] == mode
    assert store.viewer == (f"wandb sync {tmp_path}/wandb/offline-run-*" if mode == "offline" else "https://wandb.ai")


# ---- the packages themselves, where they are installed


def test_real_mlflow(whole: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed (pip install 'ssil[mlflow]')")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "")
    for last in (2, 3):
        with Tracker(Mlflow(tmp_path), tmp_path / "mlflow.json", print) as tracked:
            tracked.started(_odd(whole).after(last))
    client, run = mlflow.MlflowClient(f"file://{tmp_path}/mlflow"), json.loads((tmp_path / "mlflow.json").read_text())
    found = client.get_run(run["run"])
    assert found.info.status == "FINISHED"
    assert found.data.params == {name: str(value) for name, value in hyperparameters(whole).items()}
    points = [(metric.step, metric.value) for metric in client.get_metric_history(run["run"], "accuracy/top1")]
    assert points == [(3 * task.task, task.top1) for task in whole.tasks]


def test_real_wandb(whole: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed (pip install 'ssil[wandb]')")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for last in (2, 3):
        with Tracker(Wandb(tmp_path), tmp_path / "wandb.json", print) as tracked:
            tracked.started(whole.after(last))
    kept = json.loads((tmp_path / "wandb.json").read_text())
    assert kept["step"] == STEPS[-1]
    files = [*tmp_path.glob(f"wandb/offline-run-*-{kept['run']}/run-{kept['run']}.wandb")]
    assert len(files) == 2
    assert all(b"accuracy/top1" in file.read_bytes() for file in files)
