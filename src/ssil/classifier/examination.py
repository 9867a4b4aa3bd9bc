"""Judge an update by the user's own test folder, beside the hold-out set; and remember such a folder for a model.

The folder's path and a digest of its images are remembered, not the images: they are the user's, who may add to them.
Before and after an update are measured on the images that are there then, so that both numbers are of the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ssil.classifier.feature_extraction import trained_network
from ssil.classifier.holdout import HoldoutResult, evaluate_scores, image_scores
from ssil.classifier.image_file import ImageFile, ImagesByClass, LabelledImages
from ssil.classifier.labelled_folder import contents_digest, find_test_images
from ssil.classifier.model_files import FORMAT, read_checked_json, write_checked_json
from ssil.classifier.prediction import Classifier
from ssil.core.errors import UserError
from ssil.core.model_layout import EXAM
from ssil.data.decode import UnreadableError, decode_image
from ssil.data.image_index import Remark, as_utf8, read_image_file


@dataclass(frozen=True)
class TestFolder:
    """The readable images of a test folder."""

    __test__ = False

    path: Path
    digest: str
    images: LabelledImages
    remarks: tuple[Remark, ...]

    def without_tested(self, arrived: LabelledImages) -> tuple[list[tuple[ImageFile, str]], list[Remark]]:
        """Return the arrived images that are not in the test folder, and a remark if some are."""
        tested = {image.digest for image, _ in self.images}
        left = [(image, name) for image, name in arrived if image.original_digest not in tested]
        count = len(arrived) - len(left)
        remark = Remark(str(self.path), f"{count} of its images are among those to learn; they are not learnt")
        return left, [remark] if count else []


@dataclass(frozen=True)
class Examination:
    """The results of a model before and after an update on a test folder; None without an image of a known class."""

    folder: TestFolder
    before: HoldoutResult | None
    after: HoldoutResult | None
    learnt: int
    """Images that are left out since the model has learnt them."""

    def facts(self, known: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        """Return what the history keeps, with accuracies on the classes `known` before and on all `names`."""
        new = [name for name in names if name not in {*known}]
        return {
            "folder": as_utf8(str(self.folder.path)),
            "digest": self.folder.digest,
            "tried": self.after.result(names).total if self.after else 0,
            "learnt": self.learnt,
            "accuracy": self.after.accuracy(names) if self.after else None,
            "interval": self.after.interval(names) if self.after else None,
            "old_before": self.before.accuracy(known) if self.before else None,
            "old_after": self.after.accuracy(known) if self.after else None,
            "new_after": self.after.accuracy(new) if self.after else None,
        }


def read_test_folder(folder: Path) -> TestFolder:
    """Read a test folder; raise UserError if it has no image that can be read."""
    found, remarks = find_test_images(folder)
    images = list[tuple[ImageFile, str]]()
    for path, label, digest in found:
        try:
            decode_image(read_image_file(path))
            images.append((ImageFile(as_utf8(str(path)), digest, partial(read_image_file, path)), label))
        except (OSError, UnreadableError) as error:
            remarks.append(Remark(as_utf8(str(path)), str(error)))
    if not images:
        raise UserError(f"test: no image in {folder} can be read; give a folder of images")
    return TestFolder(folder, contents_digest(found), images, tuple(remarks))


def examine(folder: TestFolder, previous: Classifier | None, updated: Classifier) -> Examination:
    """Measure a classifier after an update, and before it, on a test folder's images of classes that it knows.

    Images that it is known to have learnt are left out.
    """
    learnt = {digest for group in updated.counted for digest in group}
    learnt |= {image.original_digest for group in updated.exemplars for image in group}
    unseen = [(image, name) for image, name in folder.images if image.digest not in learnt]
    network = trained_network(updated.settings, updated.snapshot)
    names = updated.classes.names
    groups = network.with_features([[image for image, name in unseen if name == own] for own in names])
    before = _result(previous, groups[: previous.classes.seen]) if previous else None
    return Examination(folder, before, _result(updated, groups), len(folder.images) - len(unseen))


def _result(classifier: Classifier, groups: ImagesByClass) -> HoldoutResult | None:
    return evaluate_scores(classifier, image_scores(classifier, groups)) if any(groups) else None


def remember(model: Path, folder: TestFolder | None) -> None:
    """Remember a test folder for a model, by which every later update is judged; or, with None, forget it."""
    if folder is None:
        (model / EXAM).unlink(missing_ok=True)
        return
    content = {"folder": str(folder.path.resolve()), "digest": folder.digest, "images": len(folder.images)}
    write_checked_json(model / EXAM, {"format": FORMAT, **content})


def remembered(model: Path) -> Mapping[str, Any] | None:
    """Return what is remembered of a model's test folder: `folder`, `digest`, `images`; None if there is none.

    Raises:
        UserError: The file is damaged.
    """
    if not (model / EXAM).exists():
        return None
    found = read_checked_json(model / EXAM)
    if not isinstance(found.get("folder"), str):
        raise UserError(f"model: {model / EXAM} is not what it should be; name the test folder again: ssil exam")
    return found


def folder_to_judge_by(model: Path, given: Path | None) -> TestFolder | None:
    """Return the test folder that is given, or else the one that the model remembers, if any.

    Raises:
        UserError: The folder is gone, or has no image that can be read.
    """
    if given is not None:
        return read_test_folder(given)
    if not (found := remembered(model)):
        return None
    path = Path(found["folder"])
    if not path.is_dir():
        cure = f"put it back, or name another one: ssil exam {model} FOLDER (or ssil exam {model} --none)"
        raise UserError(f"exam: the model's test folder {path} is gone; {cure}")
    folder = read_test_folder(path)
    if folder.digest == found.get("digest"):
        return folder
    changed = Remark(
        str(path), f"the test folder has changed: {len(folder.images)} images, {found.get('images')} before"
    )
    return TestFolder(path, folder.digest, folder.images, (*folder.remarks, changed))
