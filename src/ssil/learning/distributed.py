"""The processes that share each batch: starting them, reductions over them, and ending all of them when one fails.

Every function takes the `Fabric` of this process, or a `SingleDevice`, for which all reductions are the identity.
`lightning_fabric`, whose import takes seconds, is imported only for training on a GPU, in several processes or in mixed
precision.
"""

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch
from torch import Tensor, distributed
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]
from torch.optim import Optimizer

from ssil.core.cpu import usable_cores
from ssil.core.errors import UserError
from ssil.nn.network import Network

if TYPE_CHECKING:
    from lightning_fabric import Fabric

GRACE = 5.0
"""Seconds that a process has to end by itself after another process has failed."""

LOST = "devices: a process ended without a word (killed, or out of memory?); with --out the same command goes on"


class SingleDevice:
    """One process in full precision: what evaluation on any device and training on a CPU need of a `Fabric`.

    Args:
        device: "cpu" or "cuda"; by default the first GPU if there is one.
    """

    world_size, global_rank, is_global_zero = 1, 0, True

    def __init__(self, device: str | None = None) -> None:
        self.device = torch.device(device or ("cuda:0" if torch.cuda.is_available() else "cpu"))

    def autocast(self) -> AbstractContextManager[None]:
        """Return a context that changes nothing."""
        return nullcontext()

    def setup(self, network: Network, optimizer: Optimizer) -> tuple[Network, Optimizer]:
        """Return the network and the optimiser as they are."""
        return network, optimizer

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of a loss."""
        loss.backward()


AnyFabric: TypeAlias = "Fabric | SingleDevice"


def use_threads(count: int | None = None) -> None:
    """Let torch use `count` threads; by default its own choice, but no more than there are usable cores.

    The default is not changed where the user chose it by OMP_NUM_THREADS.
    """
    if count:
        torch.set_num_threads(count)
    elif "OMP_NUM_THREADS" not in os.environ and torch.get_num_threads() > usable_cores():
        torch.set_num_threads(usable_cores())


def training_fabric(fabric: AnyFabric) -> AnyFabric:
    """Return `fabric`, or for a `SingleDevice` on a GPU a new `Fabric` on its device."""
    if not isinstance(fabric, SingleDevice):
        return fabric
    use_threads()
    if fabric.device.type == "cpu":
        return fabric
    from lightning_fabric import Fabric

    return Fabric(accelerator=fabric.device.type, devices=1)


def precision_plugin(fabric: AnyFabric) -> Any:
    """Return the part of a `Fabric` that handles mixed precision; None for a `SingleDevice`."""
    return None if isinstance(fabric, SingleDevice) else fabric.strategy.precision


def launch(device: str, devices: int, nodes: int, mixed: Literal["bf16-mixed", "16-mixed"] | None) -> AnyFabric:
    """Start the processes, unless torchrun or Slurm has started them, and return the `Fabric` of this one.

    One process on a CPU in full precision gets a `SingleDevice`.

    Args:
        device: "cpu" or "cuda".
        devices: Processes per node.
        nodes: Machines that take part.
        mixed: The kind of mixed precision, if any.

    Raises:
        UserError: There are not as many devices.
    """
    if device == "cpu" and devices * nodes == 1 and not mixed:
        return SingleDevice(device)
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.precision.amp import MixedPrecision
    from lightning_fabric.strategies.ddp import DDPStrategy

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    shared = DDPStrategy(process_group_backend="cpu:gloo,cuda:nccl" if device == "cuda" else "gloo")
    strategy = shared if devices * nodes > 1 else "auto"
    precision = MixedPrecision(mixed, device) if mixed else None  # by name, Fabric would put bf16 for fp16 on a CPU
    try:
        fabric = Fabric(accelerator=device, devices=devices, num_nodes=nodes, plugins=precision, strategy=strategy)
        fabric.launch()
    except (ValueError, RuntimeError) as error:
        there = f"there are {torch.cuda.device_count()}" if device == "cuda" else str(error).partition("\n")[0]
        raise UserError(f"device: {devices} of {device!r} can't be used, {there}; try --device cpu") from None
    return fabric


def total(fabric: AnyFabric, numbers: Iterable[float]) -> list[float]:
    """Return each number summed over all processes. The numbers are on the CPU: this does not wait for a GPU."""
    if fabric.world_size == 1:
        return list(numbers)
    sums = torch.tensor([*numbers], dtype=torch.float64)
    distributed.all_reduce(sums)
    return sums.tolist()


def mean(fabric: AnyFabric, values: Tensor) -> Tensor:
    """Return the mean of `values` over all processes."""
    if fabric.world_size == 1:
        return values
    sums = values.clone()
    distributed.all_reduce(sums)
    return sums / fabric.world_size


def broadcast(fabric: AnyFabric, tensors: Iterable[Tensor]) -> None:
    """Overwrite the tensors of every process with those of the first process."""
    if fabric.world_size == 1:
        return
    for tensor in tensors:
        values = tensor.detach().contiguous()
        if values.numel():
            distributed.broadcast(values, 0)
            tensor.detach().copy_(values)


def local_share(fabric: AnyFabric, indices: Tensor) -> Tensor:
    """Return this process's share of the indices. All shares have one length: the last index may be in several."""
    rank, world = fabric.global_rank, fabric.world_size
    if world == 1:
        return indices
    slots = torch.arange(rank, -(-len(indices) // world) * world, world)
    return indices[slots.clamp(max=len(indices) - 1)]


def gather(fabric: AnyFabric, rows: Tensor, count: int) -> Tensor:
    """Return the rows of all processes as one tensor of `count` rows, the same in every process.

    Args:
        fabric: The processes.
        rows: This process's rows, one for each index of its `local_share`.
        count: The number of indices that were shared out; rows of indices that were given twice are dropped.
    """
    if fabric.world_size == 1:
        return rows
    rows = rows.to(fabric.device).contiguous()
    parts = [torch.empty_like(rows) for _ in range(fabric.world_size)]
    distributed.all_gather(parts, rows)
    return torch.stack(parts, 1).flatten(0, 1)[:count]


def all_equal(fabric: AnyFabric, value: object) -> bool:
    """Return whether `value` is the same in all processes."""
    if fabric.world_size == 1:
        return True
    values: list[object] = [None] * fabric.world_size
    distributed.all_gather_object(values, value)
    return all(other == value for other in values)


@contextmanager
def ending_together(fabric: AnyFabric) -> Iterator[None]:
    """End all processes when the block fails in one of them; only one process reports the error.

    Raises:
        UserError: The error of the first process, or, in the first process, that of another one ("process 1: ...").
        SystemExit: In processes that need not report anything.
    """
    if fabric.world_size == 1:
        yield
        return
    failures = _Failures(fabric)
    try:
        yield
        distributed.barrier()
    except KeyboardInterrupt:
        if fabric.global_rank:
            raise SystemExit(130) from None
        raise
    except Exception as error:
        failures.end(error)
    finally:
        failures.stop_polling()


class _Failures:
    """The first failure of any process, known to all of them through the key-value store of the first process."""

    def __init__(self, fabric: AnyFabric) -> None:
        self.rank, self.world_size = fabric.global_rank, fabric.world_size
        self.finished, self.remote = threading.Event(), ""
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=60))
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self.store = PrefixStore(f"ssil/{attempt}", store)
        self.polling = threading.Thread(target=self._poll, name="failures", daemon=True)
        self.polling.start()

    def stop_polling(self) -> None:
        """Let the polling thread end, and wait for it.

        An interpreter that ends while the thread is in a C++ call of the store aborts with SIGABRT.
        """
        self.finished.set()
        self.polling.join(2 * GRACE)

    def end(self, error: Exception) -> None:
        """Publish the error unless another process has failed first, and raise what this process is to report."""
        first = self._remote_failure()
        if not first and (isinstance(error, distributed.DistError) or "gloo" in str(error)):
            first = LOST
        if not first:
            self._publish(error)
        if self.rank and first != LOST:
            if not first and not isinstance(error, UserError):
                traceback.print_exception(error)  # the first process reports only its message
            self._outlast_first_process()
            raise SystemExit(2) from None
        if first:
            raise UserError(first) from None
        raise error

    def _publish(self, error: Exception) -> None:
        """Store the error; in the first process, with which the store ends, wait until all others have read it."""
        self.store.set("end", f"{self.rank}:{error}")
        self.store.set(f"heard/{self.rank}", "")
        everyone = [f"heard/{rank}" for rank in range(self.world_size)]
        if not self.rank:
            _wait_until(lambda: self.store.check(everyone), GRACE)

    def _outlast_first_process(self) -> None:
        """Wait until the first process has ended: a launcher kills it, before it reports, when another one ends."""
        with suppress(RuntimeError, distributed.DistError):  # the store is gone with the first process
            _wait_until(lambda: not self.store.check(["end"]), 12 * GRACE)

    def _remote_failure(self) -> str:
        """Return the failure that another process has published, `LOST` if the first process is gone, or ""."""
        try:
            if not self.remote and self.store.check(["end"]):
                rank, _, why = self.store.get("end").decode().partition(":")
                if int(rank) != self.rank:
                    self.remote = f"process {rank}: {why}"
                    self.store.set(f"heard/{self.rank}", "")
        except (RuntimeError, distributed.DistError):
            return self.remote or LOST
        return self.remote

    def _poll(self) -> None:
        """Exit when another process has failed and this one does not end: a collective of GPUs would wait for ever."""
        while not self.finished.wait(1.0):
            if failure := self._remote_failure():
                if not self.finished.wait(GRACE):
                    sys.stderr.write("" if self.rank else f"error: {failure}\n")
                    os._exit(2)
                return


def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Return when the condition holds, or after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.1)
