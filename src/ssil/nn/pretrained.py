"""Weights to start from: a safetensors file, or a model of the Hugging Face hub; no code of theirs is ever run."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from ssil.core.errors import UserError
from ssil.nn.resnet import Backbone

PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".tar")
PICKLED = (b"PK\x03\x04", b"\x80\x02\x8a", b"\x80\x04\x95", b"\x80\x05\x95")  # how torch's files and others begin
HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
HUB_FILE = "model.safetensors"
SAME = "give weights of the same --backbone"
COUNTER = "num_batches_tracked"  # which old files lack, and our batch norms never look at


class Pretrained(NamedTuple):
    """Tensors by name, and where they are from."""

    source: str
    tensors: Mapping[str, Tensor]


def find_pretrained(name: str) -> Path:
    """The file that is meant: a path, or else a name of the Hugging Face hub, from which it is downloaded once."""
    path = Path(name).expanduser()
    on_hub = not path.exists() and path.suffix not in {".safetensors", *PICKLES} and HUB_NAME.fullmatch(name)
    if not on_hub and not path.is_file():
        raise UserError(f"init: {name!r} is no file; give a .safetensors file, or a name such as timm/resnet18.a1_in1k")
    return _downloaded(name) if on_hub else path


@cache
def _downloaded(name: str) -> Path:
    try:
        hub = import_module("huggingface_hub")
    except ImportError as error:
        raise UserError(
            f"init: {name!r} is no file, and to find it on the Hugging Face hub takes: pip install 'ssil[hub]'"
        ) from error
    try:
        return Path(hub.hf_hub_download(name, HUB_FILE))
    except Exception as error:  # of many kinds, by what is missing: the network, the model, its file
        reason = " ".join(str(error).split())
        raise UserError(
            f"init: {HUB_FILE} of {name} can't be had from the Hugging Face hub ({reason}); give a local file"
        ) from error


def read_pretrained(name: str) -> Pretrained:
    """All tensors of a file (see `find_pretrained`)."""
    path = find_pretrained(name)
    try:
        data = path.read_bytes()
        return Pretrained(name, safetensors.torch.load(data))
    except OSError as error:
        raise UserError(f"init: {path} can't be read ({error.strerror}); check the file") from None
    except SafetensorError as error:
        pickled = path.suffix in PICKLES or data.startswith(PICKLED)
        cure = _conversion(path) if pickled else f"is no whole safetensors file ({error}); get it again"
        raise UserError(f"init: {path} {cure}") from None


def _conversion(path: Path) -> str:
    return (
        "is a pickle, which may run any code when it is opened; if you trust it, convert it once in Python: "
        "import torch, safetensors.torch as s; "
        f"s.save_file(torch.load({str(path)!r}, 'cpu', weights_only=True), {f'{path}.safetensors'!r})"
    )


def load_backbone(backbone: Backbone, given: Pretrained) -> None:
    """Set all weights and statistics of a backbone to those of a file.

    The file has our names or, as torchvision's and timm's have, torchvision's, behind any prefix; its head is left
    alone. A tensor that is missing, of another shape, or one too many is refused.
    """
    own = backbone.state_dict()
    reading = _reading(own, given)
    if reading.foreign and any(isinstance(module, nn.GroupNorm) for module in backbone.modules()):
        raise UserError(f"init: {given.source} is of a network with batch norm; leave out --norm group")
    for name, tensor in own.items():
        if (key := reading.key(name)) in given.tensors:
            _check(name, key, tensor, given)
            tensor.copy_(given.tensors[key])
        elif not name.endswith(COUNTER):
            raise UserError(f"init: {given.source} lacks {key}; {SAME}")
    for key in reading.left_over(given.tensors):
        raise UserError(f"init: {given.source} has {key}, which the backbone has not; {SAME}")


def _check(name: str, key: str, wanted: Tensor, given: Pretrained) -> None:
    there = given.tensors[key]
    if there.is_floating_point() != wanted.is_floating_point():
        raise UserError(f"init: {key} of {given.source} is of {there.dtype}; give weights in floating point")
    if there.shape != wanted.shape:
        shapes = ["x".join(map(str, tensor.shape)) for tensor in (there, wanted)]
        cure = _stem_cure(there, wanted) if name.startswith("stem.") and there.ndim == wanted.ndim == 4 else SAME
        raise UserError(f"init: {key} of {given.source} is {shapes[0]}, the backbone's is {shapes[1]}; {cure}")


def _stem_cure(there: Tensor, wanted: Tensor) -> str:
    """For a first kernel of another shape."""
    if there.shape[2:] != wanted.shape[2:]:
        return "resnet18 begins with a kernel of 7x7, the others with one of 3x3: give another --backbone"
    if len(there) == len(wanted):
        return f"the weights are for images of {there.shape[1]} channel(s), and these have {wanted.shape[1]}"
    return SAME


class _Reading(NamedTuple):
    """A way to read a file: a prefix, and by our own name of a tensor the one that follows the prefix."""

    prefix: str
    names: Mapping[str, str]

    @property
    def foreign(self) -> bool:
        """Whether the names are not our own."""
        return any(own != name for own, name in self.names.items())

    def key(self, own: str) -> str:
        """What the file calls a tensor of ours."""
        return self.prefix + self.names[own]

    def lacking(self, tensors: Mapping[str, Tensor]) -> int:
        """How many of our tensors are not there."""
        return sum(self.key(own) not in tensors for own in self.names if not own.endswith(COUNTER))

    def left_over(self, keys: Iterable[str]) -> Iterator[str]:
        """What looks like a part of the backbone and is none: a deeper network has more blocks of the same names."""
        parts, known = set(map(_part, self.names.values())), set(map(self.key, self.names))
        for key in keys:
            if key.startswith(self.prefix) and key not in known and _part(key.removeprefix(self.prefix)) in parts:
                yield key


def _part(name: str) -> str:
    """A name's first word without its number: the layer of layer4.1.conv1.weight."""
    return name.partition(".")[0].rstrip("0123456789")


def _reading(own: Iterable[str], given: Pretrained) -> _Reading:
    """The way to read a file in which it lacks the fewest of our tensors."""
    ours, theirs = {name: name for name in own}, {name: torchvision_name(name) for name in own}
    readings = [
        _Reading(prefix, names)
        for names in ([ours] if ours == theirs else [ours, theirs])
        for prefix in _prefixes(names.values(), given.tensors)
    ]
    if not readings:
        there = ", ".join([*given.tensors][:3])
        raise UserError(f"init: {given.source} has nothing of the backbone, but {there}; {SAME}")
    best, *others = sorted(readings, key=lambda reading: reading.lacking(given.tensors))
    whole = [reading.prefix for reading in (best, *others) if not reading.lacking(given.tensors)]
    if len(whole) > 1:
        raise UserError(f"init: {given.source} holds several networks, {' and '.join(whole)}; save one of them alone")
    return best


def _prefixes(names: Iterable[str], keys: Iterable[str]) -> list[str]:
    """What stands before our names in a file's, if it ends a word."""
    found = {key.removesuffix(name) for key in keys for name in names if key.endswith(name)}
    return sorted(prefix for prefix in found if not prefix or prefix[-1] in "./")


_PARTS = {
    "stem.conv": "conv1",
    "stem.norm": "bn1",
    "stem.0.conv": "conv1",
    "stem.0.norm": "bn1",
    "first.conv": "conv1",
    "first.norm": "bn1",
    "second.conv": "conv2",
    "second.norm": "bn2",
    "shortcut.conv": "downsample.0",
    "shortcut.norm": "downsample.1",
}


def torchvision_name(name: str) -> str:
    """What torchvision and timm call a tensor of our ResNets.

    >>> torchvision_name("stem.0.conv.weight"), torchvision_name("stages.3.0.shortcut.norm.running_var")
    ('conv1.weight', 'layer4.0.downsample.1.running_var')
    """
    block = re.match(r"stages\.(\d+)\.(\d+)\.", name)
    layer = f"layer{int(block[1]) + 1}.{block[2]}." if block else ""
    part, _, tensor = name[block.end() if block else 0 :].rpartition(".")
    return f"{layer}{_PARTS.get(part, part)}.{tensor}"
