"""The processes that share each batch: how they are started, what they tell each other, and that they end together."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, distributed, nn
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from ssil.core.errors import UserError

if TYPE_CHECKING:
    from lightning_fabric import Fabric

GRACE = 5.0
"""Seconds that a process has to end by itself after another one has."""

_LOST = "devices: a process ended without a word (killed, or out of memory?); with --out the same command goes on"


def launched(device: str, devices: int, nodes: int, mixed: Literal["bf16-mixed", "16-mixed"] | None) -> "Fabric":
    """So many processes on each node: started here, or already there under torchrun or Slurm."""
    from lightning_fabric import Fabric  # takes seconds to import
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


def total(fabric: "Fabric", numbers: Iterable[float]) -> list[float]:
    """Small numbers, each summed over all processes; does not wait for a device."""
    if fabric.world_size == 1:
        return list(numbers)
    sums = torch.tensor([*numbers], dtype=torch.float64)
    distributed.all_reduce(sums)
    return sums.tolist()


def mean(fabric: "Fabric", values: Tensor) -> Tensor:
    """The mean over all processes."""
    if fabric.world_size == 1:
        return values
    sums = values.clone()
    distributed.all_reduce(sums)
    return sums / fabric.world_size


def agree(fabric: "Fabric", tensors: Iterable[Tensor]) -> None:
    """Let all processes have the first one's values."""
    if fabric.world_size == 1:
        return
    for tensor in tensors:
        values = tensor.detach().contiguous()
        if values.numel():
            distributed.broadcast(values, 0)
            tensor.detach().copy_(values)


def agree_on(fabric: "Fabric", module: nn.Module) -> None:
    """Let all processes have the first one's weights and buffers."""
    agree(fabric, module.state_dict().values())


def share(fabric: "Fabric", indices: Tensor) -> Tensor:
    """A process's part of what is to be looked at, as long as every other's: the last index may come again."""
    rank, world = fabric.global_rank, fabric.world_size
    if world == 1:
        return indices
    slots = torch.arange(rank, -(-len(indices) // world) * world, world)
    return indices[slots.clamp(max=len(indices) - 1)]


def gathered(fabric: "Fabric", rows: Tensor, count: int) -> Tensor:
    """The rows of all processes, each made of its `share` of so many indices, in the order of the indices."""
    if fabric.world_size == 1:
        return rows
    rows = rows.to(fabric.device).contiguous()
    parts = [torch.empty_like(rows) for _ in range(fabric.world_size)]
    distributed.all_gather(parts, rows)
    return torch.stack(parts, 1).flatten(0, 1)[:count]


def same(fabric: "Fabric", value: object) -> bool:
    """Whether all processes have this value."""
    if fabric.world_size == 1:
        return True
    values: list[object] = [None] * fabric.world_size
    distributed.all_gather_object(values, value)
    return all(other == value for other in values)


@contextmanager
def together(fabric: "Fabric") -> Iterator[None]:
    """End all processes when one fails: the first of them says why, the others only end."""
    if fabric.world_size == 1:
        yield
        return
    end = _End(fabric)
    try:
        yield
        distributed.barrier()
    except KeyboardInterrupt:
        if fabric.global_rank:
            raise SystemExit(130) from None
        raise
    except Exception as error:
        end.tell(error)
    finally:
        end.over.set()


class _End:
    """What the processes know of each other's ends, through a store that the first one has."""

    def __init__(self, fabric: "Fabric") -> None:
        self.rank, self.others = fabric.global_rank, fabric.world_size - 1
        self.over, self.heard = threading.Event(), ""
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=60))
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self.store = PrefixStore(f"ssil/{attempt}", store)
        threading.Thread(target=self._watch, name="ends", daemon=True).start()

    def tell(self, error: Exception) -> None:
        """Raise what this process is to say of its end, and let the others know."""
        told = self._told()
        if not told and (isinstance(error, distributed.DistError) or "gloo" in str(error)):
            told = _LOST
        if not told:
            self._say(error)
        if self.rank and told != _LOST and (told or isinstance(error, UserError)):
            self._outlast_first()
            raise SystemExit(2) from None
        if told:
            raise UserError(told) from None
        raise error

    def _say(self, error: Exception) -> None:
        """Tell the others; the first process, with which the store ends, stays until they have heard."""
        self.store.set("end", f"{self.rank}:{error}")
        self.store.set(f"heard/{self.rank}", "")
        everyone = [f"heard/{rank}" for rank in range(self.others + 1)]
        if not self.rank:
            _wait(lambda: self.store.check(everyone), GRACE)

    def _outlast_first(self) -> None:
        """Let the first process have its say: whoever started it kills it when another one fails."""
        with suppress(RuntimeError, distributed.DistError):  # the store has gone with it
            _wait(lambda: not self.store.check(["end"]), 2 * GRACE)

    def _told(self) -> str:
        """What another process has said of its end; of a first process that is gone, that it is."""
        try:
            if not self.heard and self.store.check(["end"]):
                rank, _, why = self.store.get("end").decode().partition(":")
                if int(rank) != self.rank:
                    self.heard = f"process {rank}: {why}"
                    self.store.set(f"heard/{self.rank}", "")
        except (RuntimeError, distributed.DistError):
            return self.heard or _LOST
        return self.heard

    def _watch(self) -> None:
        """A collective of GPUs does not notice that a process is gone: leave it."""
        while not self.over.wait(1.0):
            if told := self._told():
                if not self.over.wait(GRACE):
                    sys.stderr.write("" if self.rank else f"error: {told}\n")
                    os._exit(2)
                return


def _wait(until: Callable[[], bool], seconds: float) -> None:
    """For as long as it takes, but no longer than that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not until():
        time.sleep(0.1)
