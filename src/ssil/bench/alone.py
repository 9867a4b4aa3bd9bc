"""One process on one device, without the seconds that Fabric's import takes until something is trained."""

from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import torch

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def alone() -> "Fabric":
    """The GPU if there is one, else the processor, in full precision."""
    return cast("Fabric", _Alone())


class _Alone:
    """What looking at pictures needs of a Fabric; all else is asked of a real one, made when that happens."""

    world_size, global_rank = 1, 0

    def __init__(self) -> None:
        self.device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")

    def autocast(self) -> AbstractContextManager[None]:
        """Precision stays what it is."""
        return nullcontext()

    @cached_property
    def _fabric(self) -> "Fabric":
        from lightning_fabric import Fabric

        return Fabric(accelerator=self.device.type, devices=1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a copy is asked for its own before it is made
            raise AttributeError(name)
        return getattr(self._fabric, name)
