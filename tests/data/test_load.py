import subprocess
import sys
from pathlib import Path

import pytest

from ssil.data import describe, load
from ssil.errors import UserError


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifra100", "dataset: 'cifra100' .* did you mean cifar100?"),
        ("zzz", "give glyphs, digits, cifar100, or the path"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(name)


@pytest.mark.parametrize("name", ["digits", "cifar100", "set.npz"])
def test_image_size_where_there_is_no_choice(name: str) -> None:
    with pytest.raises(UserError, match=f"image_size: 9 is not for {name}"):
        load(name, image_size=9)


def test_a_folder_named_like_a_set_needs_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert load("digits").name == "digits"
    with pytest.raises(UserError, match="no sub-folders"):
        load("./digits")


def test_describe_says_what_is_synthetic() -> None:
    infos = {info.name: info for info in describe()}
    assert list(infos) == ["glyphs", "digits", "cifar100", "FILE.npz", "FOLDER"]
    assert "synthetic" in infos["glyphs"].description
    assert "real" in infos["digits"].description


@pytest.mark.slow
def test_importing_is_light() -> None:
    script = "import sys, ssil.data; print([m for m in ('sklearn', 'matplotlib', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
