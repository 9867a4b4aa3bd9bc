"""First weights by any name that `--init` takes: what they decide of a network and its input, and their tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.core.network_input import NetworkInput
from ssil.core.plugins import HUB_PREFIX, names_code
from ssil.nn.own_models import find_own_model
from ssil.nn.pretrained import Pretrained, find_pretrained, read_pretrained
from ssil.nn.weights import NAMED_WEIGHTS

if TYPE_CHECKING:
    from torch import Tensor


class FirstWeights(Protocol):
    """Weights that a network may begin with."""

    @property
    def name(self) -> str:
        """The name that they were asked for by."""
        ...

    @property
    def backbone(self) -> str | None:
        """The backbone that they are of; None if only the user knows."""
        ...

    @property
    def input(self) -> NetworkInput | None:
        """The input that they need; None if images stay as they would be without weights."""
        ...

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file that they come from."""
        ...

    def tensors(self) -> Mapping[str, "Tensor"]:
        """Return the tensors; raise UserError if they can't be had."""
        ...


@dataclass(frozen=True)
class WeightsFile:
    """A safetensors file, local or on the hub, that says neither its backbone nor its input."""

    name: str
    backbone: None = None
    input: None = None

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file."""
        return checksum(find_pretrained(self.name).read_bytes(), 64)

    def tensors(self) -> Mapping[str, "Tensor"]:
        """Return all tensors of the file."""
        return read_pretrained(self.name).tensors


def find_first_weights(name: str) -> FirstWeights:
    """Return the weights of this name (see `ssil weights`), directory, file or hub name; no tensor is read yet."""
    if name.startswith(HUB_PREFIX):
        from ssil.nn.hub_models import find_hub_model  # which needs a library that may be missing

        return find_hub_model(name)
    return NAMED_WEIGHTS.get(name) or find_own_model(name) or WeightsFile(name)


def read_first_weights(weights: FirstWeights) -> Pretrained:
    """Return the tensors with the name that they were asked for by."""
    return Pretrained(weights.name, weights.tensors())


def decided_settings(weights: FirstWeights, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that the weights decide: `backbone` and `input`, or none.

    Raises:
        UserError: The settings that the user gave name another backbone; or the weights are of a backbone that is code
            of a model's own, or that can only be frozen, and the settings don't say so.

    >>> from ssil.nn.weights import named_weights
    >>> decided_settings(named_weights("efficientnet_lite0"), {"backbone": "resnet18"})
    Traceback (most recent call last):
    ssil.core.errors.UserError: backbone: the weights efficientnet_lite0 are not of resnet18; leave out --backbone
    """
    wanted = given.get("backbone", weights.backbone)
    if weights.backbone and wanted != weights.backbone:
        raise UserError(f"backbone: the weights {weights.name} are not of {wanted}; leave out --backbone")
    if weights.backbone and names_code(weights.backbone) and "backbone" not in given:
        raise UserError(
            f"backbone: {weights.name} names code of its own; if you trust it, say --backbone {weights.backbone}"
        )
    if str(weights.backbone).startswith(HUB_PREFIX) and not given.get("freeze"):
        raise UserError(f"freeze: {weights.name} is a model that can't be trained further here; give --freeze too")
    decided = {"backbone": weights.backbone, "input": weights.input}
    return {name: value for name, value in decided.items() if value is not None}
