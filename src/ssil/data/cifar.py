"""CIFAR-100 (Krizhevsky 2009), read from its official binary version."""

import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pooch
import torch

from ssil.data.augment import Transform
from ssil.data.cache import data_root
from ssil.data.dataset import Dataset, Info
from ssil.data.resident import Resident
from ssil.errors import UserError
from ssil.types import Samples

FOLDER = "cifar-100-binary"
ARCHIVE = f"{FOLDER}.tar.gz"
URL = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
MD5 = "03b5dce01913d631647c71ecec9e9cb8"
NAMES = "fine_label_names.txt"
IMAGES = {"train.bin": 50_000, "test.bin": 10_000}
RECORD = 2 + 3 * 32 * 32  # coarse label, fine label, planes of red, green and blue

INFO = Info("cifar100", "photographs: 500 for training and 100 for testing per class", "100", "32x32 colour", URL)
TRANSFORM = Transform((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), pad=4, flip=True)


def cifar100(root: Path | None = None) -> Dataset:
    """CIFAR-100 from the folder or the archive under the data root; downloaded there if neither is."""
    folder = _folder(data_root(root))
    train, test = (_read(folder / name, count) for name, count in IMAGES.items())
    return Dataset("cifar100", train, test, _names(folder / NAMES), TRANSFORM)


def _folder(root: Path) -> Path:
    folder = root / FOLDER
    if not folder.is_dir():
        archive = _archive(root)
        try:
            _extract(archive, folder)
        except (OSError, tarfile.TarError) as error:
            raise UserError(f"{archive} could not be unpacked beside itself: {error}") from error
    return folder


def _archive(root: Path) -> Path:
    """The archive with its checksum verified, downloaded if need be."""
    archive = root / ARCHIVE
    if archive.exists():
        if pooch.file_hash(str(archive), alg="md5") != MD5:
            raise UserError(f"{archive} is damaged or incomplete, its MD5 is not {MD5}: replace it by {URL}")
        return archive
    cure = f"put {URL} in {root}"
    try:
        return Path(pooch.retrieve(URL, f"md5:{MD5}", fname=ARCHIVE, path=root))
    except OSError as error:
        raise UserError(f"cifar100 could not be downloaded ({type(error).__name__}): {cure}") from error
    except ValueError as error:
        raise UserError(f"cifar100 was downloaded, but its MD5 is not {MD5}: try again, or {cure}") from error


def _extract(archive: Path, folder: Path) -> None:
    """Unpack the files that are needed, aside, and rename."""
    with TemporaryDirectory(dir=folder.parent, prefix=f"{FOLDER}.") as aside, tarfile.open(archive) as tar:
        for name in (*IMAGES, NAMES):
            tar.extract(f"{FOLDER}/{name}", aside, filter="data")
        try:
            (Path(aside) / FOLDER).rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was quicker
                raise


def _read(path: Path, count: int) -> Samples:
    data = np.fromfile(path, dtype=np.uint8) if path.is_file() else np.empty(0, dtype=np.uint8)
    if data.size != count * RECORD:
        raise UserError(
            f"{path} has {data.size:,} bytes, not {count * RECORD:,}: delete {path.parent} and unpack {URL}"
        )
    records = torch.from_numpy(data).view(count, RECORD)
    planes = records[:, 2:].reshape(count, 3, 32, 32)
    return Samples(Resident(planes.permute(0, 2, 3, 1).contiguous()), records[:, 1].long())


def _names(path: Path) -> tuple[str, ...]:
    names = tuple(path.read_text().split()) if path.is_file() else ()
    if len(names) != 100:
        raise UserError(f"{path} has {len(names)} class names, not 100: delete {path.parent} and unpack {URL}")
    return names
