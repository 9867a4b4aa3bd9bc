"""Fingerprints are compared with those in records and stores that earlier versions wrote: they must never change."""

from pathlib import Path

import pytest

from ssil.data.data_settings import DataSettings
from ssil.data.load import load
from ssil.data.sources.folder import folder
from ssil.data.store.writer import prepare


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
