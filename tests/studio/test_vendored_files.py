"""Files of others are those that were looked at: each has the checksum beside it."""

from hashlib import sha256
from pathlib import Path

import pytest

import served
from ssil import studio

FOLDERS = [Path(studio.__path__[0]) / "static" / "vendor", Path(served.__file__).parent / "vendor"]


@pytest.mark.parametrize("folder", FOLDERS, ids=["studio", "tests"])
def test_checksums(folder: Path) -> None:
    lines = [line.split() for line in (folder / "CHECKSUMS").read_text().splitlines()]
    assert {name for _, name in lines} == {path.name for path in folder.glob("*.js")}
    for digest, name in lines:
        assert sha256((folder / name).read_bytes()).hexdigest() == digest


def test_pages_fetch_nothing_from_elsewhere() -> None:
    root = Path(studio.__path__[0])
    for path in [*root.glob("templates/*.html"), *root.glob("static/*.*")]:
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path
        assert "https://" not in text, path
