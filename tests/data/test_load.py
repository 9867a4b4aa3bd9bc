import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from ssil.core.errors import UserError
from ssil.data.data_settings import DataSettings
from ssil.data.load import describe, load
from ssil.data.sources.folder import folder
from ssil.data.store.writer import prepare


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifra100", "dataset: 'cifra100' .* did you mean 'cifar100'?"),
        ("zzz", "give glyphs, digits, cifar10, .*, landmark-v2-10k, or the path"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(DataSettings(dataset=name))


@pytest.mark.parametrize("name", ["digits", "cifar100", "set.npz"])
def test_image_size_where_there_is_no_choice(name: str) -> None:
    with pytest.raises(UserError, match=f"image_size: 9 is not for {name}"):
        load(DataSettings(dataset=name, image_size=9))


def test_a_folder_named_like_a_set_needs_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert load(DataSettings(dataset="digits")).name == "digits"
    with pytest.raises(UserError, match="no sub-folders"):
        load(DataSettings(dataset="./digits"))


def test_describe_says_what_is_synthetic() -> None:
    infos = {info.name: info for info in describe()}
    assert {"glyphs", "digits", "cifar10", "cifar100", "imagenet", "FOLDER", "STORE", "FILE.npz"} <= set(infos)
    assert "synthetic" in infos["glyphs"].description
    assert "real" in infos["digits"].description


@pytest.mark.slow
def test_importing_is_light() -> None:
    script = "import sys, ssil.data; print([m for m in ('sklearn', 'matplotlib', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("size", "expected"), [(None, (64, False)), (127, (127, False)), (128, (128, True))])
def test_training_views_follow_the_size(tmp_path: Path, size: int | None, expected: tuple[int, bool]) -> None:
    for name in ("a/1.png", "a/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (20, 10)).save(tmp_path / name)
    dataset = load(DataSettings(dataset=str(tmp_path), image_size=size))
    assert (dataset.train.images.shape[0], dataset.transform.crop) == expected
    assert load(DataSettings(dataset=str(tmp_path), image_size=size, augment="none")).transform.pad == 0


def test_wishes_of_image_files_are_refused_for_pixels() -> None:
    with pytest.raises(UserError, match="augment: crop is not for digits"):
        load(DataSettings(dataset="digits", augment="crop"))


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    """Two classes of five images, whose bytes no library decides."""
    for label, name in enumerate(("blue", "green")):
        (tmp_path / "colours" / name).mkdir(parents=True)
        for number in range(5):
            pixels = bytes((37 * at + 11 * number + 101 * label) % 256 for at in range(8 * 6 * 3))
            (tmp_path / "colours" / name / f"{number}.ppm").write_bytes(b"P6 8 6 255\n" + pixels)
    return tmp_path / "colours"


@pytest.mark.parametrize(("size", "fingerprint"), [(8, "6036af64f19c41fa"), (128, "63bc26e998cc4c90")])
def test_fingerprint_of_image_files(colours: Path, size: int, fingerprint: str) -> None:
    assert load(DataSettings(dataset=str(colours), image_size=size)).fingerprint == fingerprint


def test_fingerprints_of_a_store(colours: Path, tmp_path: Path) -> None:
    facts = prepare(folder(colours), tmp_path / "store").facts
    assert facts.listing == "f1b2a477fd9d6b7d98c2375eca724a2ffa7bbc5df3b257e9844cf89a89112597"
    assert facts.fingerprint == "d336b523bf64f7ea73b07c61de76dd69813f08b6e138803488d26c3c315437dc"


def test_fingerprint_of_glyphs() -> None:
    settings = DataSettings(classes=3, train_per_class=6, test_per_class=4)
    assert load(settings).fingerprint == "a6756556b217532a"
