"""Runs carried out on the nodes of a Ray cluster, which share no disk: their files come home as they are written."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from ssil.benchmark.config import override
from ssil.benchmark.grid import cluster_worker
from ssil.benchmark.grid.cells import Cell
from ssil.benchmark.grid.cluster_worker import STATE, News, Worker, kept
from ssil.benchmark.grid.process_pool import GridObserver, Outcome, tasks
from ssil.benchmark.run_directory import RunDirectory
from ssil.core.errors import UserError
from ssil.core.files import write_atomic

LOOK = 1.0
"""Seconds after which an interrupt is seen at the latest."""


@dataclass(frozen=True)
class Cluster:
    """Where the cluster is (Ray's own choice if it is not said), and what each run takes of it."""

    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    retries: int = 3
    """How often a run goes on after its worker has died."""

    def __post_init__(self) -> None:
        if self.cpus <= 0:
            raise UserError(f"cpus: {self.cpus:g} is not a number of CPUs; give more than 0")
        if self.gpus < 0 or (self.gpus > 1 and self.gpus % 1):
            raise UserError(f"gpus: {self.gpus:g} is neither a share of a GPU nor a number of them; give 0.5, or 2")
        if self.retries < 0:
            raise UserError(f"retries: {self.retries} is not a number of times; give 0 or more")

    @contextmanager
    def joined(self) -> Iterator[int]:
        """While it is entered, this process belongs to the cluster; gives how many runs there is room for at once."""
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
        """How many runs nodes with these resources have room for at once.

        >>> Cluster(cpus=2, gpus=0.5).capacity([{"CPU": 8.0, "GPU": 1.0}, {"CPU": 64.0}])
        2
        """
        needs = {"CPU": self.cpus} | ({"GPU": self.gpus} if self.gpus else {})
        places = sum(min(int(node.get(kind, 0.0) / need) for kind, need in needs.items()) for node in nodes)
        if not places:
            what = " and ".join(f"{need:g} {kind}" for kind, need in needs.items())
            raise UserError(f"cpus: no node of the cluster has {what} for a run; give smaller --cpus or --gpus")
        return places

    def carry_out(self, cells: Sequence[Cell], root: Path, observer: GridObserver | None = None) -> list[Outcome]:
        """Run the cells as there is room for them; to be called while `joined`.

        On an interrupt no further one is begun; those at work keep their state, and are waited for.
        """
        crew = _Crew(self, root, observer or GridObserver())
        with ThreadPoolExecutor(1) as thread:  # an interrupt meets the main thread, so it leaves no file half written
            future = thread.submit(crew.finish, cells)
            try:
                return future.result()
            except KeyboardInterrupt:
                crew.stopped = True
                raise


@dataclass
class _Job:
    """A cell, its worker, and the lock on its directory."""

    cell: Cell
    actor: Any = None
    begun: bool = False
    deaths: int = 0
    held: ExitStack = field(default_factory=ExitStack)

    def dismiss(self) -> None:
        """Let the worker and the directory go."""
        ray.kill(self.actor)
        self.held.close()
        self.begun = False


@dataclass
class _Crew:
    cluster: Cluster
    root: Path
    observer: GridObserver
    stopped: bool = False
    jobs: dict[Any, _Job] = field(default_factory=dict)
    """By the answer that is awaited of each."""
    outcomes: list[Outcome] = field(default_factory=list)

    def finish(self, cells: Sequence[Cell]) -> list[Outcome]:
        """Wait for answers until there are none to come."""
        ray.cloudpickle.register_pickle_by_value(cluster_worker)
        for cell in cells:
            self._queue(_Job(cell))
        told = False
        while self.jobs:
            if self.stopped and not told:
                told = True
                self._stop()
            for answer in ray.wait([*self.jobs], timeout=LOOK)[0]:
                self._hear(answer, self.jobs.pop(answer))
        return self.outcomes

    def _queue(self, job: _Job) -> None:
        """Ask for a place on a node."""
        needs = {"num_cpus": self.cluster.cpus, "num_gpus": self.cluster.gpus}
        job.actor = ray.remote(**needs, max_concurrency=2)(Worker).remote()
        self.jobs[job.actor.ready.remote()] = job

    def _hear(self, answer: Any, job: _Job) -> None:
        """Take in what a worker says, and ask for more."""
        try:
            news = ray.get(answer)
            if news is None:
                self._begin(job)
            else:
                self._take_in(job, news)
        except UserError as error:
            self._end(job, 2, str(error))
        except RayTaskError as error:
            self._end(job, 1, str(error.cause))
        except RayError:
            self._lose(job)

    def _begin(self, job: _Job) -> None:
        self.observer.started(job.cell)
        job.begun, home = True, self.root / job.cell.place
        job.held.enter_context(RunDirectory(home, "1").locked())
        settings = override({"threads": max(1, int(self.cluster.cpus))}, job.cell.settings)
        command = replace(job.cell, settings=settings).command(self.root)
        files = {str(path.relative_to(home)): path.read_bytes() for path in kept(home)}
        self.jobs[job.actor.begin.remote(command, str(Path.cwd()), files)] = job

    def _take_in(self, job: _Job, news: News) -> None:
        bring_home(self.root / job.cell.place, news)
        for task in tasks(news.lines):
            self.observer.learnt(job.cell, task)
        if news.code is None:
            self.jobs[job.actor.news.remote()] = job
        elif news.code < 0:  # a signal: perhaps somebody else needed the memory
            self._lose(job)
        else:
            self._end(job, news.code, news.reason.removeprefix("error: ") if news.code else "")

    def _lose(self, job: _Job) -> None:
        """Its worker is gone: another goes on from what came home, unless that has happened too often."""
        job.deaths += 1
        if job.deaths > self.cluster.retries or self.stopped:
            self._end(job, 1, f"its worker died, the {job.deaths}. time")
            return
        if job.begun:
            self.observer.lost(job.cell)
        job.dismiss()
        self._queue(job)

    def _end(self, job: _Job, code: int, reason: str) -> None:
        job.dismiss()
        self.outcomes.append(Outcome(job.cell, code, reason))
        self.observer.ended(self.outcomes[-1])

    def _stop(self) -> None:
        """Begin no more; let those at work keep their state and end."""
        for answer, job in [*self.jobs.items()]:
            if job.begun:
                job.actor.stop.remote()
            else:
                self.jobs.pop(answer).dismiss()


def bring_home(folder: Path, news: News) -> None:
    """Write the files of a run, its own record and then its state last, and remove what the state no longer names."""
    for name in sorted(news.files, key=lambda name: (name == STATE, name == "record.json")):
        write_atomic(folder / name, news.files[name])
    for path in kept((folder / STATE).parent) if news.names else ():
        if str(path.relative_to(folder)) not in news.names:
            path.unlink()
