"""Runs on the nodes of a real cluster: all come home, whatever is killed or stopped meanwhile."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import tiny_runs
from ssil.benchmark.checkpoint import Checkpoints
from ssil.benchmark.grid.cluster import Cluster, write_files
from ssil.benchmark.grid.cluster_worker import WorkerReport, changed_files
from ssil.benchmark.record import read_record
from ssil.cli import main
from ssil.core.errors import UserError
from ssil.core.files import write_json

HELD = """
import os, time
from pathlib import Path
from ssil.learning.batches import Mixed
from ssil.learning.method import Method, Phase, Stage, cross_entropy
from ssil.nn.heads import LinearHead
from ssil.learning.registry import register

HERE = Path(__file__).parent

def wait(work):
    (HERE / "pid").write_text(str(os.getpid()))
    while not (HERE / "go").exists():
        time.sleep(0.1)

@register()
def held(training):
    "Held: before its second task it waits for a file."
    def plan(classes):
        main = Phase("main", cross_entropy, Mixed(training.batch), training.schedule(classes.task))
        return (Stage("wait", wait), main) if classes.task == 2 else (main,)
    return Method(plan, head=LinearHead)
"""
SPEC = """
seeds = [0, 1, 2, 3, 4, 5, 6]
[settings]
dataset = "{folder}/patterns.npz"
backbone = "{tiny}:backbone"
epochs = 1
batch = 4
tasks = 2
memory = 4
[methods.held]
method = "{folder}/held.py:held"
seeds = [0]
[methods.ft]
"""
ALONE = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "only for this test, only on the loopback interface",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # by default other tests would come first
}


def until(condition: Callable[[], bool], seconds: float = 200.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.2", 0))
        return int(found.getsockname()[1])


def listening(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.2", port)) == 0


@contextmanager
def node(env: Mapping[str, str], *flags: str) -> Iterator[None]:
    """A node with one CPU, in a process group of its own."""
    usual = ("--node-ip-address", "127.0.0.2", "--num-cpus", "1", "--object-store-memory", "100000000", "--block")
    command = [str(Path(sys.executable).with_name("ray")), "start", *flags, *usual]
    with subprocess.Popen(command, env=dict(env), stdout=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.fixture
def cluster() -> Iterator[tuple[str, dict[str, str]]]:
    """The address of two nodes, and the environment that knows them; sockets want a short path."""
    port, env = free_port(), dict(os.environ) | ALONE
    with TemporaryDirectory(prefix="ray") as folder:
        head = ("--head", "--port", str(port), "--include-dashboard", "false", "--temp-dir", folder)
        with node(env, *head):
            until(lambda: listening(port))
            with node(env, "--address", f"127.0.0.2:{port}"):
                yield f"127.0.0.2:{port}", env


@pytest.mark.slow
def test_all_come_home_though_a_worker_dies_and_the_grid_is_stopped(
    cluster: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    address, env = cluster
    tiny_runs.patterns(tmp_path / "patterns.npz", (6, 6, 6, 6))
    (tmp_path / "held.py").write_text(HELD)
    (tmp_path / "eight.toml").write_text(SPEC.format(folder=tmp_path, tiny=tiny_runs.__file__))
    command = [sys.executable, "-m", "ssil", "grid", str(tmp_path / "eight.toml"), "--out", str(tmp_path / "out")]
    command += ["--on", "ray", "--address", address]
    home = tmp_path / "out" / "held-0"
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as driver:
        try:
            first = waiting(tmp_path / "pid", home)
            os.kill(parent(first), signal.SIGKILL)
            until(lambda: not Path(f"/proc/{first}").exists())  # no run outlives its worker
            second = waiting(tmp_path / "pid", home)
            driver.terminate()
            until(lambda: "stopping after the next step" in Path(f"/proc/{second}/fd/2").read_text())
        finally:
            (tmp_path / "go").touch()
        said = driver.communicate(timeout=200)[0]
    assert driver.returncode == 130
    assert "held-0: its worker died; it goes on from its last checkpoint" in said
    assert "held-0: stopped, its state is kept" in said
    assert read_record(home).summary is None
    subprocess.run(command, env=env, timeout=300, check=True)
    for name in ("held-0", *(f"ft-{seed}" for seed in range(7))):
        assert read_record(tmp_path / "out" / name).summary, name
        assert (tmp_path / "out" / name / "arrays" / "task-02.safetensors").exists()
        assert tasks_done(tmp_path / "out" / name) == 2
    log = [json.loads(line) for line in (home / "log.jsonl").read_text().splitlines()]
    assert [line["task"] for line in log] == [1, 2]  # it went on, it did not begin again
    kept = {path.name.partition("-")[0] for path in (home / "checkpoint").iterdir()}
    assert kept == {"state.json", "snapshot", "memory"}


def waiting(pid: Path, home: Path) -> int:
    """The process of the run that waits, once its first task is at home."""
    until(lambda: pid.exists() and pid.read_text() != "" and tasks_done(home) == 1)
    found = int(pid.read_text())
    pid.unlink()
    return found


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def tasks_done(folder: Path) -> int:
    state = folder / "checkpoint" / "state.json"
    return int(json.loads(state.read_text())["tasks_done"]) if state.exists() else 0


def test_what_is_told_is_a_whole_state(tmp_path: Path) -> None:
    there, home, sent = tmp_path / "there", tmp_path / "home", dict[str, tuple[int, int]]()

    def look() -> set[str]:
        files, names = changed_files(there, sent)
        write_files(home, WorkerReport(files=files, names=names))
        return set(files)

    checkpoints = Checkpoints(there / "checkpoint")
    write_json(there / "record.json", {"tasks": 0})
    assert look() == set()  # nobody could go on from it
    checkpoints.save({"tasks_done": 0}, {"memory": {"indices": torch.zeros(1)}})
    assert {name.partition("-")[0] for name in look()} == {"record.json", "checkpoint/state.json", "checkpoint/memory"}
    assert look() == set()
    (there / "checkpoint" / ".state.json.part").write_text("{")
    checkpoints.save({"tasks_done": 1}, {"memory": {"indices": torch.ones(1)}})
    assert len(look()) == 2
    assert Checkpoints(home / "checkpoint").load() == ({"tasks_done": 1}, {"memory": {"indices": torch.ones(1)}})
    assert len([*home.rglob("*.safetensors")]) == 1


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--gpus", "0.5"), "gpus: only for a grid on a cluster; add --on ray"),
        (("--on", "ray", "--jobs", "2"), "jobs: on a cluster, --cpus and --gpus decide"),
        (("--on", "ray", "--cpus", "0"), "cpus: 0 is not a number of CPUs"),
        (("--on", "ray", "--gpus", "1.5"), "gpus: 1.5 is neither a share of a GPU nor a number"),
        (("--on", "ray", "--retries", "-1"), "retries: -1 is not a number of times"),
    ],
)
def test_flags_that_make_no_sense(flags: tuple[str, ...], reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["grid", "some.toml", *flags]) == 2
    assert reason in capfd.readouterr().err


def test_without_ray_one_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ssil.cli.grid.find_spec", lambda _: None)
    assert main(["grid", "some.toml", "--on", "ray"]) == 2
    assert "on: ray is missing; install it with pip install 'ssil[cluster]'" in capfd.readouterr().err


def test_room_is_counted_node_by_node() -> None:
    nodes = [{"CPU": 8.0, "GPU": 1.0}, {"CPU": 3.0}]
    assert Cluster(cpus=2).capacity(nodes) == 5
    assert Cluster(cpus=2, gpus=0.5).capacity(nodes) == 2
    with pytest.raises(UserError, match="no node of the cluster has 9 CPU for a run"):
        Cluster(cpus=9).capacity(nodes)
