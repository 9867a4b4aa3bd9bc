"""The staging area of a model directory: images that were added, and are to be learnt by the next update.

The files are the only record: `staging/images/CLASS/CHECKSUM.image`. The class is the folder's name, percent-encoded
where it must be; the file's name is the checksum of its content, never what a browser has sent.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ssil.classifier.image_file import normalized_name
from ssil.classifier.model_files import check_digest, folder_name
from ssil.classifier.versions import STAGING
from ssil.core.errors import UserError
from ssil.core.files import checksum, create_folder, flush_folder, write_atomic
from ssil.data.decode import decode_image

IMAGES, REMOVED, SUFFIX = "images", "removed", ".image"
MAX_NAME = 60
"""Characters of a class's name."""


class StagedImage(NamedTuple):
    """An image that waits to be learnt."""

    class_name: str
    path: Path

    @property
    def digest(self) -> str:
        """The checksum of its content."""
        return self.path.stem


class Staging:
    """Adds, moves and removes images; each is one rename, so that a killed server leaves whole files only."""

    def __init__(self, model: Path) -> None:
        self.folder = model / STAGING

    def create(self) -> None:
        """Create the staging area, and the model directory, if they do not exist."""
        create_folder(self.folder / IMAGES)

    def add(self, class_name: str, data: bytes) -> StagedImage:
        """Add an image to a class.

        An image that waits already is moved: the newest class counts.

        Raises:
            UnreadableError: The image can't be decoded.
            UserError: The class's name can't be used, or the disk is full.
        """
        name = checked_name(class_name)
        decode_image(data)
        digest = checksum(data)
        if found := self.find(digest):
            return self.move(found, name)
        path = self._class_folder(name) / f"{digest}{SUFFIX}"
        try:
            write_atomic(path, data)
        except OSError as error:
            raise UserError(f"disk: the image can't be kept ({error.strerror}); make room, and add it again") from None
        return StagedImage(name, path)

    def move(self, image: StagedImage, class_name: str) -> StagedImage:
        """Put an image into another class."""
        name = checked_name(class_name)
        target = self._class_folder(name) / image.path.name
        if target != image.path:
            create_folder(target.parent)
            image.path.replace(target)
            flush_folder(target.parent)
            _remove_empty(image.path.parent)
        return StagedImage(name, target)

    def remove(self, image: StagedImage) -> None:
        """Remove an image; `restore` brings it back until `clear_removed`."""
        target = self.folder / REMOVED / image.path.parent.name / image.path.name
        create_folder(target.parent)
        image.path.replace(target)
        _remove_empty(image.path.parent)

    def restore(self, digest: str) -> StagedImage | None:
        """Bring a removed image back; return None if there is none."""
        check_digest(digest)
        for path in (self.folder / REMOVED).glob(f"*/{digest}{SUFFIX}"):
            return self.move(StagedImage("", path), unquote(path.parent.name))
        return None

    def clear_removed(self) -> None:
        """Remove images for good."""
        shutil.rmtree(self.folder / REMOVED, ignore_errors=True)

    def erase(self, image: StagedImage) -> None:
        """Remove an image for good."""
        image.path.unlink(missing_ok=True)
        _remove_empty(image.path.parent)

    def find(self, digest: str) -> StagedImage | None:
        """Return the image with a checksum; None if there is none. Raise ValueError if it is no checksum."""
        check_digest(digest)
        paths = (folder / f"{digest}{SUFFIX}" for folder in (self.folder / IMAGES).glob("*"))
        return next((StagedImage(unquote(path.parent.name), path) for path in paths if path.exists()), None)

    def path(self, digest: str) -> Path | None:
        """Return the file of an image that waits, or was removed a moment ago; None if there is none."""
        if found := self.find(digest):
            return found.path
        return next((self.folder / REMOVED).glob(f"*/{digest}{SUFFIX}"), None)

    def read(self, digest: str) -> bytes:
        """Return the content of such an image; raise OSError if there is none."""
        return (self.path(digest) or self.folder / REMOVED / digest).read_bytes()

    def by_class(self) -> dict[str, list[StagedImage]]:
        """Return the images of each class, both in alphabetical order."""
        groups: dict[str, list[StagedImage]] = {}
        for image in self:
            groups.setdefault(image.class_name, []).append(image)
        return {name: groups[name] for name in sorted(groups, key=str.casefold)}

    def __iter__(self) -> Iterator[StagedImage]:
        for folder in sorted((self.folder / IMAGES).glob("*")):
            for path in sorted(folder.glob(f"[0-9a-f]*{SUFFIX}")):
                yield StagedImage(unquote(folder.name), path)

    def _class_folder(self, name: str) -> Path:
        return self.folder / IMAGES / folder_name(name)


def checked_name(class_name: str) -> str:
    """Return the name of a class in the form that models use; raise UserError if it can't be one.

    >>> checked_name("  red  apple ")
    'red apple'
    """
    name = normalized_name(" ".join(class_name.split()))
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise UserError(f"class: {name[:MAX_NAME]!r} can't be a name; give 1 to {MAX_NAME} letters")
    return name


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
