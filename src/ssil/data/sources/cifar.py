"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009), read from their official binary versions."""

import shutil
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from ssil.core.errors import UserError
from ssil.core.samples import Samples
from ssil.data.augmentation import Transform
from ssil.data.cache import data_root
from ssil.data.dataset import Dataset, DatasetInfo
from ssil.data.resident_images import Resident

SITE = "https://www.cs.toronto.edu/~kriz"
PIXELS = 3 * 32 * 32  # planes of red, green and blue
BLOCK = 1000
"""Images that are read at a time."""


@dataclass(frozen=True)
class CifarVersion:
    """What differs between the two versions.

    `train` and `test` map files to their numbers of images; `labels` is the number of label bytes before the pixels,
    the last of which is used.
    """

    name: str
    folder: str
    url: str
    md5: str
    train: Mapping[str, int]
    test: Mapping[str, int]
    names: str
    classes: int
    labels: int
    transform: Transform

    @property
    def archive(self) -> str:
        """The name of the file to download."""
        return self.url.rpartition("/")[2]

    @property
    def record(self) -> int:
        """The number of bytes of an image with its labels."""
        return self.labels + PIXELS


CIFAR10 = CifarVersion(
    name="cifar10",
    folder="cifar-10-batches-bin",
    url=f"{SITE}/cifar-10-binary.tar.gz",
    md5="c32a1d4ab5d03f1284b67883e8d87530",
    train={f"data_batch_{number}.bin": 10_000 for number in range(1, 6)},
    test={"test_batch.bin": 10_000},
    names="batches.meta.txt",
    classes=10,
    labels=1,
    transform=Transform((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616), pad=4, flip=True),
)
CIFAR100 = CifarVersion(
    name="cifar100",
    folder="cifar-100-binary",
    url=f"{SITE}/cifar-100-binary.tar.gz",
    md5="03b5dce01913d631647c71ecec9e9cb8",
    train={"train.bin": 50_000},
    test={"test.bin": 10_000},
    names="fine_label_names.txt",
    classes=100,
    labels=2,  # coarse, fine
    transform=Transform((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), pad=4, flip=True),
)
INFOS = (
    DatasetInfo(
        "cifar10", "photographs: 5,000 for training and 1,000 for testing per class", "10", "32x32 colour", CIFAR10.url
    ),
    DatasetInfo(
        "cifar100", "photographs: 500 for training and 100 for testing per class", "100", "32x32 colour", CIFAR100.url
    ),
)


def cifar10(root: Path | None = None) -> Dataset:
    """Return CIFAR-10 from its folder or archive in the data root; download the archive if neither is there."""
    return _dataset(CIFAR10, data_root(root))


def cifar100(root: Path | None = None) -> Dataset:
    """Return CIFAR-100 from its folder or archive in the data root; download the archive if neither is there."""
    return _dataset(CIFAR100, data_root(root))


def _dataset(version: CifarVersion, root: Path) -> Dataset:
    folder = _folder(version, root)
    train, test = (_samples(version, folder, files) for files in (version.train, version.test))
    return Dataset(version.name, train, test, _names(version, folder), version.transform)


def _folder(version: CifarVersion, root: Path) -> Path:
    folder = root / version.folder
    if not folder.is_dir():
        archive = _archive(version, root)
        try:
            _extract(version, archive, folder)
        except (OSError, tarfile.TarError) as error:
            raise UserError(f"{archive} could not be unpacked beside itself: {error}") from error
    return folder


def _archive(version: CifarVersion, root: Path) -> Path:
    """Return the path of the archive, downloaded if it is missing; raise UserError if its checksum is wrong."""
    import pooch  # which warns in notebooks without widgets

    archive, url, md5 = root / version.archive, version.url, version.md5
    if archive.exists():
        if pooch.file_hash(str(archive), alg="md5") != md5:
            raise UserError(f"{archive} is damaged or incomplete, its MD5 is not {md5}: replace it by {url}")
        return archive
    cure = f"put {url} in {root}"
    try:
        return Path(pooch.retrieve(url, f"md5:{md5}", fname=version.archive, path=root))
    except OSError as error:
        raise UserError(f"{version.name} could not be downloaded ({type(error).__name__}): {cure}") from error
    except ValueError as error:
        raise UserError(f"{version.name} was downloaded, but its MD5 is not {md5}: try again, or {cure}") from error


def _extract(version: CifarVersion, archive: Path, folder: Path) -> None:
    """Unpack the files that are needed into a temporary folder, and rename it."""
    with TemporaryDirectory(dir=folder.parent, prefix=f"{version.folder}.") as temporary, tarfile.open(archive) as tar:
        unpacked = Path(temporary) / version.folder
        unpacked.mkdir()
        for name in (*version.train, *version.test, version.names):
            _unpack(tar, f"{version.folder}/{name}", unpacked / name)
        try:
            unpacked.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was quicker
                raise


def _unpack(tar: tarfile.TarFile, member: str, path: Path) -> None:
    """Write a plain file of an archive; raise TarError for links and other members."""
    if not tar.getmember(member).isfile():
        raise tarfile.TarError(f"{member} is not a plain file")
    content = tar.extractfile(member)
    assert content is not None
    with content, path.open("wb") as file:
        shutil.copyfileobj(content, file)


def _samples(version: CifarVersion, folder: Path, files: Mapping[str, int]) -> Samples:
    """Read the images of some files, a block at a time: a second copy of all of them would be the run's peak memory."""
    count = sum(files.values())
    pixels, labels = torch.empty(count, 32, 32, 3, dtype=torch.uint8), torch.empty(count, dtype=torch.long)
    done = 0
    for records in chain.from_iterable(_blocks(version, folder / name, images) for name, images in files.items()):
        block = slice(done, done := done + len(records))
        planes = records[:, version.labels :].reshape(-1, 3, 32, 32)
        pixels[block], labels[block] = planes.permute(0, 2, 3, 1), records[:, version.labels - 1]
    return Samples(Resident(pixels), labels)


def _blocks(version: CifarVersion, path: Path, count: int) -> Iterator[torch.Tensor]:
    """Yield the records of a file, some at a time; raise UserError if the file does not have `count` of them."""
    found, size = path.stat().st_size if path.is_file() else 0, count * version.record
    if found != size:
        raise UserError(f"{path} has {found:,} bytes, not {size:,}: delete {path.parent} and unpack {version.url}")
    with path.open("rb") as file:
        while len(data := np.fromfile(file, np.uint8, BLOCK * version.record)):
            yield torch.from_numpy(data).view(-1, version.record)


def _names(version: CifarVersion, folder: Path) -> tuple[str, ...]:
    path = folder / version.names
    names = tuple(path.read_text().split()) if path.is_file() else ()
    if len(names) != version.classes:
        raise UserError(
            f"{path} has {len(names)} class names, not {version.classes}: delete {folder} and unpack {version.url}"
        )
    return names
