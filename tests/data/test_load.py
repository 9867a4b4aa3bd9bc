import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from ssil.core.errors import UserError
from ssil.core.network_input import NetworkInput
from ssil.data.data_settings import DataSettings
from ssil.data.load import describe, load
from ssil.data.sources.folder import folder
from ssil.data.store.writer import prepare


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifra100", "dataset: 'cifra100' .* did you mean 'cifar100'?"),
        ("zzz", "give glyphs, characters, digits, cifar10, .*, landmark-v2-10k, or the path"),
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


BICUBIC = NetworkInput(size=24, mean=(127 / 255,) * 3, std=(128 / 255,) * 3, interpolation="bicubic")
"""As of EfficientNet-Lite, at another size."""


def noise(width: int, height: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8)


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    for name in ("ant", "bee"):
        (tmp_path / "files" / name).mkdir(parents=True)
        for number in range(2):
            Image.fromarray(noise(44, 30, number)).save(tmp_path / f"files/{name}/{number}.png")
    return tmp_path / "files"


def test_image_files_are_resized_and_normalised_as_weights_need_it(photographs: Path) -> None:
    loaded = load(DataSettings(dataset=str(photographs), input=BICUBIC))
    pixels = loaded.train.images.fetch(torch.tensor([0]))
    options = [Image.fromarray(noise(44, 30, number)).resize((24, 24), Image.Resampling.BICUBIC) for number in (0, 1)]
    differences = [np.abs(pixels[0].numpy().astype(int) - np.asarray(option).astype(int)).max() for option in options]
    assert min(differences) <= 1
    expected = (pixels.permute(0, 3, 1, 2).double() - 127) / 128
    torch.testing.assert_close(loaded.transform.test(pixels, torch.float64), expected)


@pytest.mark.parametrize(("crop", "box"), [(1.0, (7, 0, 37, 30)), (0.5, (15, 8, 30, 23))])
def test_a_crop_is_a_fraction_of_the_short_side(photographs: Path, crop: float, box: tuple[int, int, int, int]) -> None:
    settings = DataSettings(dataset=str(photographs), input=BICUBIC.model_copy(update={"crop": crop}), image_size=15)
    (pixels,) = load(settings).train.images.fetch(torch.tensor([0])).numpy().astype(int)
    assert pixels.shape == (15, 15, 3)
    cut = [
        np.asarray(Image.fromarray(noise(44, 30, number)).crop(box).resize((15, 15), 3)).astype(int)
        for number in (0, 1)
    ]
    assert min(np.abs(pixels - one).max() for one in cut) <= 1


def test_pixels_are_resized_and_normalised_as_weights_need_it(tmp_path: Path) -> None:
    images = np.stack([noise(8, 8, seed) for seed in range(4)])
    np.savez(tmp_path / "a.npz", x_train=images, y_train=[0, 0, 1, 1], x_test=images, y_test=[0, 0, 1, 1])
    plain, loaded = (load(DataSettings(dataset=str(tmp_path / "a.npz"), input=needed)) for needed in (None, BICUBIC))
    batch = loaded.transform.test(loaded.test.images.fetch(torch.arange(4)), torch.float64)
    assert batch.shape == (4, 3, 24, 24)
    for one, image in zip(batch, images, strict=True):
        expected = np.asarray(Image.fromarray(image).resize((24, 24), Image.Resampling.BICUBIC)).astype(float)
        assert np.abs(one.permute(1, 2, 0).numpy() * 128 + 127 - expected).max() <= 1.001
    assert loaded.fingerprint == plain.fingerprint
    draws = loaded.transform.draw(4, torch.Generator().manual_seed(0))
    assert loaded.transform.train(torch.from_numpy(images), draws).shape == (4, 3, 24, 24)


def test_the_input_is_part_of_the_fingerprint_of_image_files(photographs: Path) -> None:
    inputs = (None, BICUBIC, BICUBIC.model_copy(update={"interpolation": "bilinear"}))
    settings = [DataSettings(dataset=str(photographs), input=needed, image_size=24) for needed in inputs]
    assert len({load(one).fingerprint for one in settings}) == 3


def test_weights_for_colour_images_are_refused_for_grey_pixels() -> None:
    with pytest.raises(
        UserError, match=r"init: the weights are for images of 3 channel\(s\), and those of digits have 1"
    ):
        load(DataSettings(dataset="digits", input=BICUBIC))


def test_brightness_reaches_the_transform() -> None:
    settings = {"dataset": "glyphs", "classes": 2, "train_per_class": 2, "test_per_class": 1}
    assert load(DataSettings(**settings)).transform.brightness == 0
    assert load(DataSettings(**settings, brightness=0.25)).transform.brightness == 0.25
