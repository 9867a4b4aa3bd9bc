"""The cells of a grid run on the nodes of a Ray cluster, which share no disk: files are copied back as they change."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from ssil.benchmark.checkpoint import TENSOR_FILE
from ssil.benchmark.checksums import CHECKSUMS, is_checked, write_checked
from ssil.benchmark.config import override
from ssil.benchmark.grid import cluster_worker
from ssil.benchmark.grid.cells import Cell
from ssil.benchmark.grid.cluster_worker import STATE, Worker, WorkerReport, run_files
from ssil.benchmark.grid.process_pool import GridObserver, Outcome, task_records
from ssil.benchmark.run_directory import RunDirectory
from ssil.core.errors import UserError
from ssil.core.files import write_atomic

POLL = 1.0
"""Seconds after which an interrupt is noticed at the latest."""


@dataclass(frozen=True)
class Cluster:
    """The address of a cluster (default: Ray's choice), and the resources that each run takes."""

    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    retries: int = 3
    """How often a run is continued after its worker has died."""

    def __post_init__(self) -> None:
        if self.cpus <= 0:
            raise UserError(f"cpus: {self.cpus:g} is not a number of CPUs; give more than 0")
        if self.gpus < 0 or (self.gpus > 1 and self.gpus % 1):
            raise UserError(f"gpus: {self.gpus:g} is neither a share of a GPU nor a number of them; give 0.5, or 2")
        if self.retries < 0:
            raise UserError(f"retries: {self.retries} is not a number of times; give 0 or more")

    @contextmanager
    def connected(self) -> Iterator[int]:
        """Connect this process to the cluster; yield how many runs it can carry out at once."""
        try:
            ray.init(self.address, log_to_driver=False, logging_level="error", include_dashboard=False)
        except (OSError, ValueError, RuntimeError, RayError) as error:
            where, reason = self.address or "the default address", str(error).strip().splitlines()[0]
            raise UserError(f"address: no Ray cluster at {where} ({reason}); see `ray start --help`") from None
        try:
            yield self.capacity([node["Resources"] for node in ray.nodes() if node["Alive"]])
        finally:
            ray.shutdown()

    def capacity(self, nodes: Sequence[Mapping[str, float]]) -> int:
        """Return how many runs nodes with these resources can carry out at once.

        >>> Cluster(cpus=2, gpus=0.5).capacity([{"CPU": 8.0, "GPU": 1.0}, {"CPU": 64.0}])
        2
        """
        needs = {"CPU": self.cpus} | ({"GPU": self.gpus} if self.gpus else {})
        places = sum(min(int(node.get(kind, 0.0) / need) for kind, need in needs.items()) for node in nodes)
        if not places:
            what = " and ".join(f"{need:g} {kind}" for kind, need in needs.items())
            raise UserError(f"cpus: no node of the cluster has {what} for a run; give smaller --cpus or --gpus")
        return places

    def run_cells(self, cells: Sequence[Cell], root: Path, observer: GridObserver | None = None) -> list[Outcome]:
        """Run the cells as resources become free; to be called while `connected`.

        On an interrupt no further cell is started; running ones write a checkpoint and are waited for.
        """
        jobs = _ClusterJobs(self, root, observer or GridObserver())
        with ThreadPoolExecutor(1) as thread:  # an interrupt meets the main thread, so it leaves no file half written
            future = thread.submit(jobs.finish, cells)
            try:
                return future.result()
            except KeyboardInterrupt:
                jobs.stopped = True
                raise


@dataclass
class _Job:
    """A cell, its worker, and the lock on its run directory."""

    cell: Cell
    actor: Any = None
    begun: bool = False
    deaths: int = 0
    held: ExitStack = field(default_factory=ExitStack)

    def release(self) -> None:
        """End the worker and unlock the directory."""
        ray.kill(self.actor)
        self.held.close()
        self.begun = False


@dataclass
class _ClusterJobs:
    cluster: Cluster
    root: Path
    observer: GridObserver
    stopped: bool = False
    jobs: dict[Any, _Job] = field(default_factory=dict)
    """By the future of the answer that is awaited."""
    outcomes: list[Outcome] = field(default_factory=list)

    def finish(self, cells: Sequence[Cell]) -> list[Outcome]:
        """Handle the workers' answers until all cells have ended."""
        ray.cloudpickle.register_pickle_by_value(cluster_worker)
        for cell in cells:
            self._queue(_Job(cell))
        stopping = False
        while self.jobs:
            if self.stopped and not stopping:
                stopping = True
                self._stop()
            for answer in ray.wait([*self.jobs], timeout=POLL)[0]:
                self._handle(answer, self.jobs.pop(answer))
        return self.outcomes

    def _queue(self, job: _Job) -> None:
        """Ask for a worker on a node with free resources."""
        needs = {"num_cpus": self.cluster.cpus, "num_gpus": self.cluster.gpus}
        job.actor = ray.remote(**needs, max_concurrency=2)(Worker).remote()
        self.jobs[job.actor.ready.remote()] = job

    def _handle(self, answer: Any, job: _Job) -> None:
        """Handle an answer: None from a worker that is ready, otherwise a report."""
        try:
            report = ray.get(answer)
            if report is None:
                self._begin(job)
            else:
                self._handle_report(job, report)
        except UserError as error:
            self._end(job, 2, str(error))
        except RayTaskError as error:
            self._end(job, 1, str(error.cause))
        except RayError:
            self._lose(job)

    def _begin(self, job: _Job) -> None:
        self.observer.started(job.cell)
        job.begun, home = True, self.root / job.cell.folder
        job.held.enter_context(RunDirectory(home, "1").locked())
        settings = override({"threads": max(1, int(self.cluster.cpus))}, job.cell.settings)
        command = replace(job.cell, settings=settings).command(self.root)
        files = {str(path.relative_to(home)): path.read_bytes() for path in run_files(home)}
        self.jobs[job.actor.begin.remote(command, str(Path.cwd()), files)] = job

    def _handle_report(self, job: _Job, report: WorkerReport) -> None:
        write_files(self.root / job.cell.folder, report)
        for task in task_records(report.lines):
            self.observer.learnt(job.cell, task)
        if report.code is None:
            self.jobs[job.actor.report.remote()] = job
        elif report.code < 0:  # killed by a signal, perhaps for lack of memory
            self._lose(job)
        else:
            self._end(job, report.code, report.reason.removeprefix("error: ") if report.code else "")

    def _lose(self, job: _Job) -> None:
        """Let another worker continue from the files copied so far, unless that has happened too often."""
        job.deaths += 1
        if job.deaths > self.cluster.retries or self.stopped:
            self._end(job, 1, f"its worker died, the {job.deaths}. time")
            return
        if job.begun:
            self.observer.lost(job.cell)
        job.release()
        self._queue(job)

    def _end(self, job: _Job, code: int, reason: str) -> None:
        job.release()
        self.outcomes.append(Outcome(job.cell, code, reason))
        self.observer.ended(self.outcomes[-1])

    def _stop(self) -> None:
        """Start no more cells; let running ones write a checkpoint and end."""
        for answer, job in [*self.jobs.items()]:
            if job.begun:
                job.actor.stop.remote()
            else:
                self.jobs.pop(answer).release()


def write_files(folder: Path, report: WorkerReport) -> None:
    """Write the files of a run, record and then checkpoint state last; remove checkpoint files no longer named."""
    for name in sorted(report.files, key=lambda name: (name == STATE, name == "record.json")):
        path = folder / name
        if path.name != CHECKSUMS:  # is written along: that of the worker may be of an earlier or later moment
            (write_checked if is_checked(path) else write_atomic)(path, report.files[name])
    for path in run_files((folder / STATE).parent) if report.names else ():
        if TENSOR_FILE.fullmatch(path.name) and str(path.relative_to(folder)) not in report.names:
            path.unlink()
