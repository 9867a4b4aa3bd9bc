"""A model whose only version is taken back: the directory can be used again; nothing else is ever removed."""

from pathlib import Path

import pytest

from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.start_anew import remove_only_version
from ssil.classifier.update import update
from ssil.core.errors import UserError
from tiny_classifiers import labelled_images, settings


def published(folder: Path, *names: str) -> ModelDirectory:
    directory = ModelDirectory(folder, [settings().backbone])
    with directory.locked():
        made = update(None, settings(), labelled_images(names)).classifier
        directory.publish_change(None, made, new=[*names])
    return directory


def test_the_only_version_is_removed_and_another_model_is_made(tmp_path: Path) -> None:
    directory = published(tmp_path / "model", "ant", "bee")
    assert [*(directory.folder / "pictures").rglob("*.*")]
    with directory.locked():
        remove_only_version(directory, 1)
    assert not directory.exists
    assert directory.is_model_directory()
    assert directory.numbers() == []
    assert [path for path in directory.folder.rglob("*") if path.is_file()] == [directory.folder / "lock"]
    assert published(directory.folder, "cat", "dog").load().classifier.classes.names == ("cat", "dog")


def test_what_else_is_there_stays(tmp_path: Path) -> None:
    directory = published(tmp_path / "model", "ant", "bee")
    (directory.folder / "notes.txt").write_text("mine")
    with directory.locked(), pytest.raises(UserError, match=r"has notes\.txt beside the version"):
        remove_only_version(directory, 1)
    (directory.folder / "notes.txt").unlink()
    directory.publish_change(directory.load(), directory.load().classifier)
    with directory.locked(), pytest.raises(UserError, match="there are others beside this one"):
        remove_only_version(directory, 1)
    assert directory.numbers() == [1, 2]
