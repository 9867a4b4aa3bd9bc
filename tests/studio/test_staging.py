"""Images that wait to be learnt: names, classes, and nothing outside the staging area."""

from pathlib import Path

import pytest

from ssil.classifier.model_directory import ModelDirectory
from ssil.core.errors import UserError
from ssil.data.decode import UnreadableError
from ssil.studio.staging import Staging
from tiny_classifiers import png


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    made = Staging(tmp_path / "model")
    made.create()
    return made


def counts(staging: Staging) -> dict[str, int]:
    return {name: len(images) for name, images in staging.by_class().items()}


@pytest.mark.parametrize(
    "name", ["ant", "../../ant", "a/b", "..", ".hidden", "50 % off", "Müller & Söhne", "蟻", "a" * 60]
)
def test_a_class_keeps_its_name_and_its_place(staging: Staging, name: str) -> None:
    image = staging.add(name, png("ant", 1))
    assert image.path.is_relative_to(staging.folder / "images")
    assert image.path.parent.parent == staging.folder / "images"
    assert counts(staging) == {name: 1}


@pytest.mark.parametrize("name", ["", "   ", "a" * 61, "a\x00b", "a\u202eb"])
def test_names_that_cannot_be_used(staging: Staging, name: str) -> None:
    with pytest.raises(UserError, match="can't be a name"):
        staging.add(name, png("ant", 1))
    assert counts(staging) == {}


def test_what_is_no_image_is_refused(staging: Staging) -> None:
    with pytest.raises(UnreadableError):
        staging.add("ant", b"<svg/>")
    assert counts(staging) == {}


def test_the_newest_class_counts(staging: Staging) -> None:
    staging.add("ant", png("ant", 1))
    staging.add("ant", png("ant", 1))
    assert counts(staging) == {"ant": 1}
    staging.add("bee", png("ant", 1))
    assert counts(staging) == {"bee": 1}


def test_removed_and_restored(staging: Staging) -> None:
    image = staging.add("a/b", png("ant", 1))
    staging.remove(image)
    assert counts(staging) == {}
    assert staging.restore(image.digest) == image
    assert counts(staging) == {"a/b": 1}
    staging.remove(image)
    staging.clear_removed()
    assert staging.restore(image.digest) is None


@pytest.mark.parametrize("digest", ["", "..", "../../x", "*", "A" * 32, "a" * 31])
def test_checksums_are_no_paths(staging: Staging, digest: str) -> None:
    for use in (staging.find, staging.restore):
        with pytest.raises(ValueError, match="no checksum"):
            use(digest)


def test_a_model_can_be_made_where_images_wait(staging: Staging) -> None:
    staging.add("ant", png("ant", 1))
    with ModelDirectory(staging.folder.parent).locked():
        pass
    assert counts(staging) == {"ant": 1}
