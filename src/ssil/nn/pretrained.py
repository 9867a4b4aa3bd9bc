"""Pretrained weights from a safetensors file or the Hugging Face hub. No code that comes with them is ever run."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from ssil.core.errors import UserError, did_you_mean
from ssil.nn.resnet import Backbone
from ssil.nn.weights import NAMED_WEIGHTS

PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".tar")
PICKLED = (b"PK\x03\x04", b"\x80\x02\x8a", b"\x80\x04\x95", b"\x80\x05\x95")  # first bytes of pickles
HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
HUB_FILE = "model.safetensors"
SAME = "give weights of the same --backbone"
COUNTER = "num_batches_tracked"  # missing in old files; batch norms with a momentum don't use it


class Pretrained(NamedTuple):
    """The tensors of a weights file, and the path or hub name that it was given by."""

    source: str
    tensors: Mapping[str, Tensor]


def find_pretrained(name: str) -> Path:
    """Return the file of a path or of a Hugging Face hub name, which is downloaded once.

    Raises:
        UserError: There is no such file, or it can't be downloaded.
    """
    path = Path(name).expanduser()
    on_hub = not path.exists() and path.suffix not in {".safetensors", *PICKLES} and HUB_NAME.fullmatch(name)
    if not on_hub and not path.is_file():
        cure = "give a .safetensors file, a name of `ssil weights`, or one such as timm/resnet18.a1_in1k"
        raise UserError(f"init: {name!r} is no file; {did_you_mean(name, NAMED_WEIGHTS, cure)}")
    return downloaded(name, HUB_FILE) if on_hub else path


@cache
def downloaded(name: str, file: str) -> Path:
    """Return a file of a model on the Hugging Face hub, which is downloaded once; raise UserError if that fails."""
    try:
        hub = import_module("huggingface_hub")
    except ImportError as error:
        raise UserError(
            f"init: {name!r} is no file, and to find it on the Hugging Face hub takes: pip install 'ssil[hub]'"
        ) from error
    try:
        return Path(hub.hf_hub_download(name, file))
    except Exception as error:  # the kind depends on what is missing: network, model or file
        reason = " ".join(str(error).split())
        raise UserError(
            f"init: {file} of {name} can't be had from the Hugging Face hub ({reason}); give a local file"
        ) from error


def read_pretrained(name: str) -> Pretrained:
    """Return all tensors of a file or hub name; raise UserError if it is not a safetensors file."""
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
        f"w = torch.load({str(path)!r}, 'cpu', weights_only=True); "
        f"s.save_file({{k: v.clone().contiguous() for k, v in w.items()}}, {f'{path}.safetensors'!r})"
    )


def load_backbone(backbone: Backbone, given: Pretrained) -> None:
    """Set all weights and statistics of a backbone to those of a file; tensors of a head are ignored.

    The file may use the names of this package or those of torchvision and timm, after any prefix.

    Raises:
        UserError: A tensor is missing or has another shape, or the file's backbone has more tensors.
    """
    own = backbone.state_dict()
    name_map = _name_map(own, given)
    batch_norm = name_map.foreign or any(key.endswith("running_mean") for key in given.tensors)
    if batch_norm and any(isinstance(module, nn.GroupNorm) for module in backbone.modules()):
        raise UserError(f"init: {given.source} is of a network with batch norm; leave out --norm group")
    for name, tensor in own.items():
        if (key := name_map.key(name)) in given.tensors:
            _check(name, key, tensor, given)
            tensor.copy_(given.tensors[key])
        elif not name.endswith(COUNTER):
            raise UserError(f"init: {given.source} lacks {key}; {SAME}")
    for key in name_map.left_over(given.tensors):
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
    """Return the advice for a first convolution of another shape."""
    if there.shape[2:] != wanted.shape[2:]:
        return "resnet18 begins with a kernel of 7x7, the others with one of 3x3: give another --backbone"
    if len(there) == len(wanted):
        return f"the weights are for images of {there.shape[1]} channel(s), and these have {wanted.shape[1]}"
    return SAME


class _NameMap(NamedTuple):
    """The tensor names of a file: a prefix, and for each of our names the name that follows the prefix."""

    prefix: str
    names: Mapping[str, str]

    @property
    def foreign(self) -> bool:
        """Whether the names differ from ours."""
        return any(own != name for own, name in self.names.items())

    def key(self, own: str) -> str:
        """Return the file's name of one of our tensors."""
        return self.prefix + self.names[own]

    def lacking(self, tensors: Mapping[str, Tensor]) -> int:
        """Return the number of our tensors that the file lacks."""
        return sum(self.key(own) not in tensors for own in self.names if not own.endswith(COUNTER))

    def left_over(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield names of a backbone that are not ours: a deeper network has more blocks of the same names."""
        parts, known = set(map(_part, self.names.values())), set(map(self.key, self.names))
        for key in keys:
            if key.startswith(self.prefix) and key not in known and _part(key.removeprefix(self.prefix)) in parts:
                yield key


def _part(name: str) -> str:
    """Return a name's first word without its number: "layer" for layer4.1.conv1.weight."""
    return name.partition(".")[0].rstrip("0123456789")


def _name_map(own: Iterable[str], given: Pretrained) -> _NameMap:
    """Return the naming and prefix under which the file lacks the fewest of our tensors."""
    ours, theirs = {name: name for name in own}, {name: torchvision_name(name) for name in own}
    candidates = [
        _NameMap(prefix, names)
        for names in ([ours] if ours == theirs else [ours, theirs])
        for prefix in _prefixes(names.values(), given.tensors)
    ]
    if not candidates:
        there = ", ".join([*given.tensors][:3])
        raise UserError(f"init: {given.source} has nothing of the backbone, but {there}; {SAME}")
    best, *others = sorted(candidates, key=lambda candidate: candidate.lacking(given.tensors))
    whole = [one.prefix for one in (best, *others) if not one.lacking(given.tensors)]
    if len(whole) > 1:
        raise UserError(f"init: {given.source} holds several networks, {' and '.join(whole)}; save one of them alone")
    return best


def _prefixes(names: Iterable[str], keys: Iterable[str]) -> list[str]:
    """Return the prefixes that are followed by one of our names in a file, if they end with a separator."""
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
    """Return the name in torchvision and timm of a tensor of our ResNets.

    >>> torchvision_name("stem.0.conv.weight"), torchvision_name("stages.3.0.shortcut.norm.running_var")
    ('conv1.weight', 'layer4.0.downsample.1.running_var')
    """
    block = re.match(r"stages\.(\d+)\.(\d+)\.", name)
    layer = f"layer{int(block[1]) + 1}.{block[2]}." if block else ""
    part, _, tensor = name[block.end() if block else 0 :].rpartition(".")
    return f"{layer}{_PARTS.get(part, part)}.{tensor}"
