import hashlib
import os
import socket
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch

from ssil.data import cifar, load
from ssil.errors import UserError


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "IMAGES", {"train.bin": 200, "test.bin": 100})


def records(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Fine labels count up, coarse labels are wrong on purpose."""
    data = np.random.default_rng(count).integers(256, size=(count, cifar.RECORD), dtype=np.uint8)
    data[:, 0], data[:, 1] = 19, np.arange(count) % 100
    return data


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / cifar.FOLDER
    folder.mkdir()
    for name, count in cifar.IMAGES.items():
        records(count).tofile(folder / name)
    (folder / cifar.NAMES).write_text("".join(f"class{label}\n" for label in range(100)) + "\n")
    return folder


@pytest.fixture
def archive(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive alone in a root of its own."""
    path = tmp_path / "root" / cifar.ARCHIVE
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as tar:
        tar.add(tree, arcname=cifar.FOLDER)
    monkeypatch.setattr(cifar, "MD5", hashlib.md5(path.read_bytes()).hexdigest())
    return path


def test_records_are_read_as_documented(tree: Path) -> None:
    dataset = load("cifar100", root=tree.parent)
    assert dataset.classes[:2] == ("class0", "class1")
    assert dataset.test.labels.tolist() == list(range(100))
    planes = records(200)[7, 2:].reshape(3, 32, 32)
    picture = dataset.train.images.fetch(torch.tensor([7]))[0]
    assert np.array_equal(picture.numpy(), planes.transpose(1, 2, 0))
    assert (dataset.transform.pad, dataset.transform.flip) == (4, True)


def test_root_may_come_from_the_environment(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSIL_DATA", str(tree.parent))
    assert load("cifar100").fingerprint == load("cifar100", root=tree.parent).fingerprint


def test_the_archive_is_unpacked_beside_itself(tree: Path, archive: Path) -> None:
    unpacked = load("cifar100", root=archive.parent)
    assert unpacked.fingerprint == load("cifar100", root=tree.parent).fingerprint
    assert {entry.name for entry in archive.parent.iterdir()} == {cifar.FOLDER, cifar.ARCHIVE}


def test_a_damaged_archive_is_refused(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-1])
    with pytest.raises(UserError, match="is damaged or incomplete"):
        load("cifar100", root=archive.parent)
    assert [entry.name for entry in archive.parent.iterdir()] == [cifar.ARCHIVE]


def test_an_archive_that_would_write_elsewhere_is_refused(
    archive: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(archive, "w:gz") as tar:
        link = tarfile.TarInfo(f"{cifar.FOLDER}/train.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    monkeypatch.setattr(cifar, "MD5", hashlib.md5(archive.read_bytes()).hexdigest())
    with pytest.raises(UserError, match="could not be unpacked"):
        load("cifar100", root=archive.parent)
    assert [entry.name for entry in archive.parent.iterdir()] == [cifar.ARCHIVE]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=archive.parent)) as server:
        monkeypatch.setattr(cifar, "URL", f"http://127.0.0.1:{server.server_address[1]}/{cifar.ARCHIVE}")
        Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


@pytest.mark.usefixtures("server")
def test_it_is_downloaded_if_absent(tree: Path, tmp_path: Path) -> None:
    downloaded = load("cifar100", root=tmp_path / "new")
    assert downloaded.fingerprint == load("cifar100", root=tree.parent).fingerprint


@pytest.mark.usefixtures("server")
def test_a_download_with_a_wrong_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "MD5", "0" * 32)
    with pytest.raises(UserError, match="its MD5 is not 0000") as error:
        load("cifar100", root=tmp_path / "new")
    assert "\n" not in str(error.value)
    assert not any((tmp_path / "new").iterdir())


def test_without_network_the_error_says_what_to_put_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/{cifar.ARCHIVE}"
    monkeypatch.setattr(cifar, "URL", url)
    with pytest.raises(UserError, match="could not be downloaded") as error:
        load("cifar100", root=tmp_path / "new")
    assert str(error.value).endswith(f"put {url} in {tmp_path / 'new'}")


@pytest.mark.parametrize(("name", "keep"), [("train.bin", -1), ("test.bin", cifar.RECORD), ("test.bin", None)])
def test_a_truncated_or_missing_file_is_named(tree: Path, name: str, keep: int | None) -> None:
    content = (tree / name).read_bytes()
    (tree / name).unlink() if keep is None else (tree / name).write_bytes(content[:keep])
    with pytest.raises(UserError, match=f"{name} has .* bytes, not"):
        load("cifar100", root=tree.parent)


def test_class_names_must_be_a_hundred(tree: Path) -> None:
    (tree / cifar.NAMES).write_text("apple\n")
    with pytest.raises(UserError, match="has 1 class names, not 100"):
        load("cifar100", root=tree.parent)


def test_the_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    root = Path(os.environ.get("SSIL_DATA", "")).resolve()
    if not (root / cifar.FOLDER).is_dir():
        pytest.skip("cifar-100-binary is not in $SSIL_DATA")
    real = load("cifar100", root=root, classes=10, test_per_class=10)
    assert real.classes[:3] == ("apple", "aquarium_fish", "baby")
    assert (len(real.train), len(real.test)) == (5000, 100)
    assert real.train.images.shape == (32, 32, 3)
