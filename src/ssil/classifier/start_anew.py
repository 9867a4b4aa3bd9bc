"""A model directory whose only version is taken back: there is no model in it any more, and another can be made."""

from ssil.classifier.versions import IMAGES, STAGING, VersionedDirectory
from ssil.core.errors import UserError
from ssil.core.files import LOCK, flush_folder, temporary
from ssil.core.model_layout import CANDIDATE, CURRENT, PAGE, VERSIONS


def refuse_to_start_anew(directory: VersionedDirectory, number: int) -> None:
    """Raise UserError unless a version is the only thing in its model directory, beside images that wait."""
    if directory.numbers() != [number]:
        raise UserError("version: there are others beside this one; go on with one of them instead")
    known = {LOCK, VERSIONS, IMAGES, STAGING, CURRENT, CANDIDATE, PAGE}
    if other := sorted({path.name for path in directory.folder.iterdir()} - known):
        raise UserError(
            f"model: {directory.folder} has {', '.join(other)} beside the version; make another model instead"
        )


def remove_only_version(directory: VersionedDirectory, number: int) -> None:
    """Remove the only version, and the images that it keeps, while the directory's lock is held.

    Killed in the middle, it leaves what a killed first update leaves, and the next update makes a model of it.

    Raises:
        UserError: It is not the only one, or there is something else in the directory.
    """
    refuse_to_start_anew(directory, number)
    directory.drop_candidate()
    with directory.writing():
        (directory.folder / PAGE).unlink(missing_ok=True)
        (directory.folder / CURRENT).unlink()
        flush_folder(directory.folder)
        directory.version(number).replace(temporary(directory.version(number)))
