"""Construction of a backbone without memory or random numbers; its weights are set afterwards, from one generator.

What the constructor of an `ssil.Backbone` writes into the weights would be lost without a word, and is refused. Any
other module keeps what its constructor writes.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ssil.core.errors import UserError
from ssil.nn.any_module import AnyModule
from ssil.nn.resnet import Backbone


def constructed(make: Callable[[], nn.Module], name: str, in_channels: int = 3) -> Backbone:
    """Return what `make` returns, with memory for its weights, which are NaN; a module of another kind as it is.

    A module with a method `initialise` may write into its weights: it sets them again.

    Args:
        make: Creates the backbone, or any other module.
        name: Its name, for messages.
        in_channels: The channels of the images.

    Raises:
        UserError: `make` returns no module, or a backbone whose set weights `initialise` would replace.
    """
    with torch.device("meta"), _Writes() as writes:
        body = _tried(make)
    if body is None or (isinstance(body, nn.Module) and not isinstance(body, Backbone)):
        return AnyModule(make, name, in_channels)
    if not isinstance(body, Backbone):
        raise UserError(f"backbone: {name} made a {type(body).__name__}; let it return an ssil.Backbone or nn.Module")
    for key, tensor in _replaced(body):
        if not tensor.is_meta or writes.count(tensor) > 1:
            lost = f"backbone: {name} sets {key} in its constructor, where initialisation would replace it"
            raise UserError(f"{lost}; set it in a method initialise(generator), or give a file with --init")
    # As `to_empty`, which would import sympy, and that takes most of a second.
    body._apply(_unset)  # type: ignore[no-untyped-call]
    return body


def _tried(make: Callable[[], nn.Module]) -> nn.Module | None:
    """Return what `make` returns without memory; None if it needs values, such as those of a file that it reads."""
    with warnings.catch_warnings(), suppress(NotImplementedError, RuntimeError):
        warnings.filterwarnings(
            "ignore", message=".*copying from a non-meta parameter"
        )  # which `constructed` deals with
        return make()
    return None


def refuse_unset(module: nn.Module) -> None:
    """Raise UserError if a weight is still NaN after initialisation."""
    for key, tensor in module.state_dict().items():
        if tensor.is_floating_point() and tensor.isnan().any():
            raise UserError(f"backbone: {key} is not set; set it in the method initialise(generator)")


def _unset(tensor: Tensor) -> Tensor:
    empty = torch.empty(tensor.shape, dtype=tensor.dtype)
    return empty.fill_(torch.nan) if tensor.is_floating_point() else empty


def _replaced(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the weights and buffers that `initialise` sets by its rules, by name."""
    if callable(getattr(module, "initialise", None)):
        return
    for own in (module.named_parameters, module.named_buffers):
        yield from own(prefix.rstrip("."), recurse=False)
    for name, child in module.named_children():
        yield from _replaced(child, f"{prefix}{name}.")


class _Writes(TorchDispatchMode):
    """Counts how often each tensor is written to; the constructors of PyTorch's layers do so once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.written = list[torch.UntypedStorage]()  # kept, so that no other tensor gets the same address
        self.counts = Counter[int]()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: otherwise PyTorch imports its compiler, which takes a second."""
        return False

    def count(self, tensor: Tensor) -> int:
        """Return how often a tensor was written to."""
        return self.counts[tensor.untyped_storage()._cdata]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.is_mutable and isinstance(args[0], Tensor):
            self.written.append(args[0].untyped_storage())
            self.counts[self.written[-1]._cdata] += 1
        return func(*args, **kwargs or {})
