import hashlib
import os
import socket
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ssil.core.errors import UserError
from ssil.data.data_settings import DataSettings
from ssil.data.dataset import Dataset
from ssil.data.load import load
from ssil.data.sources import cifar
from ssil.data.sources.cifar import CifarVersion

READ = {"CIFAR10": cifar.cifar10, "CIFAR100": cifar.cifar100}


class Small:
    """One of the two, with fewer images; changed as a test needs it."""

    def __init__(self, name: str, patch: pytest.MonkeyPatch) -> None:
        self.name, self.patch = name, patch
        self.change(train=self.fewer(self.version.train, 200), test=self.fewer(self.version.test, 100))

    @property
    def version(self) -> CifarVersion:
        version: CifarVersion = getattr(cifar, self.name)
        return version

    def change(self, **fields: Any) -> None:
        self.patch.setattr(cifar, self.name, replace(self.version, **fields))

    def read(self, root: Path | None) -> Dataset:
        return READ[self.name](root)

    @staticmethod
    def fewer(files: Mapping[str, int], count: int) -> dict[str, int]:
        return dict.fromkeys(files, count // len(files))


@pytest.fixture(params=READ)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Small:
    return Small(request.param, monkeypatch)


def records(version: CifarVersion, start: int, count: int) -> NDArray[np.uint8]:
    """Labels count up; where there are coarse labels, they are wrong on purpose."""
    data = np.random.default_rng(start).integers(256, size=(count, version.record), dtype=np.uint8)
    data[:, 0] = 19
    data[:, version.labels - 1] = np.arange(start, start + count) % version.classes
    return data


def parts(files: Mapping[str, int]) -> list[tuple[int, int]]:
    """Where each file starts, and how many images it has."""
    return [(number * count, count) for number, count in enumerate(files.values())]


@pytest.fixture
def tree(tmp_path: Path, small: Small) -> Path:
    version = small.version
    folder = tmp_path / version.folder
    folder.mkdir()
    for files in (version.train, version.test):
        for name, part in zip(files, parts(files), strict=True):
            records(version, *part).tofile(folder / name)
    (folder / version.names).write_text("".join(f"class{label}\n" for label in range(version.classes)) + "\n")
    return folder


@pytest.fixture
def archive(tree: Path, tmp_path: Path, small: Small) -> Path:
    """The archive alone in a root of its own."""
    path = tmp_path / "root" / small.version.archive
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as tar:
        tar.add(tree, arcname=small.version.folder)
    small.change(md5=hashlib.md5(path.read_bytes()).hexdigest())
    return path


def test_records_are_read_as_documented(tree: Path, small: Small) -> None:
    version, dataset = small.version, small.read(tree.parent)
    assert dataset.name == small.name.lower()
    assert dataset.classes == tuple(f"class{label}" for label in range(version.classes))
    assert dataset.train.labels.tolist() == [index % version.classes for index in range(200)]
    assert dataset.test.labels.tolist() == [index % version.classes for index in range(100)]
    written = np.concatenate([records(version, *part) for part in parts(version.train)])
    planes = written[[7, 199], version.labels :].reshape(2, 3, 32, 32)
    images = dataset.train.images.fetch(torch.tensor([7, 199]))
    assert np.array_equal(images.numpy(), planes.transpose(0, 2, 3, 1))
    assert (dataset.transform.pad, dataset.transform.flip) == (4, True)


def test_the_official_names() -> None:
    assert (cifar.CIFAR10.folder, cifar.CIFAR10.archive) == ("cifar-10-batches-bin", "cifar-10-binary.tar.gz")
    assert [*cifar.CIFAR10.train][::4] == ["data_batch_1.bin", "data_batch_5.bin"]
    assert (cifar.CIFAR100.folder, cifar.CIFAR100.archive) == ("cifar-100-binary", "cifar-100-binary.tar.gz")
    assert [sum(version.train.values()) for version in (cifar.CIFAR10, cifar.CIFAR100)] == [50_000, 50_000]


def test_root_may_come_from_the_environment(tree: Path, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSIL_DATA", str(tree.parent))
    assert small.read(None).fingerprint == small.read(tree.parent).fingerprint


def test_the_archive_is_unpacked_beside_itself(tree: Path, archive: Path, small: Small) -> None:
    unpacked = small.read(archive.parent)
    assert unpacked.fingerprint == small.read(tree.parent).fingerprint
    assert {entry.name for entry in archive.parent.iterdir()} == {tree.name, archive.name}


def test_a_damaged_archive_is_refused(archive: Path, small: Small) -> None:
    archive.write_bytes(archive.read_bytes()[:-1])
    with pytest.raises(UserError, match="is damaged or incomplete"):
        small.read(archive.parent)
    assert [entry.name for entry in archive.parent.iterdir()] == [archive.name]


def test_an_archive_that_would_write_elsewhere_is_refused(archive: Path, tree: Path, small: Small) -> None:
    with tarfile.open(archive, "w:gz") as tar:
        link = tarfile.TarInfo(f"{tree.name}/{next(iter(small.version.train))}")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    small.change(md5=hashlib.md5(archive.read_bytes()).hexdigest())
    with pytest.raises(UserError, match="could not be unpacked"):
        small.read(archive.parent)
    assert [entry.name for entry in archive.parent.iterdir()] == [archive.name]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(archive: Path, small: Small) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=archive.parent)) as server:
        small.change(url=f"http://127.0.0.1:{server.server_address[1]}/{archive.name}")
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield
        server.shutdown()


@pytest.mark.usefixtures("server")
def test_it_is_downloaded_if_absent(tree: Path, tmp_path: Path, small: Small) -> None:
    downloaded = small.read(tmp_path / "new")
    assert downloaded.fingerprint == small.read(tree.parent).fingerprint


@pytest.mark.usefixtures("server")
def test_a_download_with_a_wrong_checksum_is_refused(tmp_path: Path, small: Small) -> None:
    small.change(md5="0" * 32)
    with pytest.raises(UserError, match="its MD5 is not 0000") as error:
        small.read(tmp_path / "new")
    assert "\n" not in str(error.value)
    assert not any((tmp_path / "new").iterdir())


def test_without_network_the_error_says_what_to_put_where(tmp_path: Path, small: Small) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/{small.version.archive}"
    small.change(url=url)
    with pytest.raises(UserError, match=f"{small.name.lower()} could not be downloaded") as error:
        small.read(tmp_path / "new")
    assert str(error.value).endswith(f"put {url} in {tmp_path / 'new'}")


@pytest.mark.parametrize(("part", "keep"), [("train", -1), ("test", 3074), ("test", None)])
def test_a_truncated_or_missing_file_is_named(tree: Path, small: Small, part: str, keep: int | None) -> None:
    name = list(getattr(small.version, part))[-1]
    content = (tree / name).read_bytes()
    (tree / name).unlink() if keep is None else (tree / name).write_bytes(content[:keep])
    with pytest.raises(UserError, match=f"{name} has .* bytes, not"):
        small.read(tree.parent)


def test_a_class_name_may_not_be_missing(tree: Path, small: Small) -> None:
    (tree / small.version.names).write_text("apple\n")
    with pytest.raises(UserError, match=f"has 1 class names, not {small.version.classes}"):
        small.read(tree.parent)


def test_the_real_one() -> None:
    root = Path(os.environ.get("SSIL_DATA", "")).resolve()
    if not (root / cifar.CIFAR100.folder).is_dir():
        pytest.skip("cifar-100-binary is not in $SSIL_DATA")
    real = load(DataSettings(dataset="cifar100", data_root=root, classes=10, test_per_class=10))
    assert real.classes[:3] == ("apple", "aquarium_fish", "baby")
    assert (len(real.train), len(real.test)) == (5000, 100)
    assert real.train.images.shape == (32, 32, 3)
