"""Encoded images as samples to learn from, and the images that `ssil learn` is given."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from ssil.classifier.image_file import ImageFile, LabelledImages, normalized_name
from ssil.core.errors import UserError, did_you_mean
from ssil.core.samples import Samples
from ssil.data.assemble import class_remarks
from ssil.data.encoded_images import Encoded
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Files, Preprocessing, Remark, Source, as_utf8

MAX_DECODED_BYTES = 1 << 30
"""Up to this size, a set of images is decoded once and held in memory."""


@dataclass(frozen=True)
class _ImageSource:
    """Images as a source that `Encoded` can decode."""

    images: Sequence[ImageFile]

    @property
    def names(self) -> Sequence[str]:
        return [image.name for image in self.images]

    def read(self, index: int) -> bytes:
        return self.images[index].read()

    def __len__(self) -> int:
        return len(self.images)


def image_samples(images: Sequence[ImageFile], labels: Sequence[int], preprocessing: Preprocessing) -> Samples:
    """Return images and labels as samples; decoded once if no random crop is used and the pixels fit into memory."""
    digests = np.array([list(bytes.fromhex(image.digest)) for image in images], np.uint8).reshape(-1, 16)
    encoded = Encoded(_ImageSource(images), np.arange(len(images)), preprocessing, digests, digests)
    small = preprocessing.augment != "crop" and len(encoded) * math.prod(encoded.shape) <= MAX_DECODED_BYTES
    return Samples(encoded.decoded() if small else encoded, torch.tensor(labels, dtype=torch.long))


def load_images(
    name: str, on_progress: ProgressCallback | None = None
) -> tuple[list[tuple[ImageFile, str]], tuple[Remark, ...]]:
    """Find the labelled images of a folder with one sub-folder per class, a manifest or a store.

    Returns:
        The readable images, without those that the source reserves for testing; and remarks on the others. Files are
        named with the folder that was given, so that the user finds them.

    Raises:
        UserError: `name` is none of these.
    """
    from ssil.data.data_settings import DataSettings
    from ssil.data.load import find_validated_index  # imports all sources of data, which predictions don't need

    found = find_validated_index(DataSettings(dataset=name), on_progress=on_progress)
    if found is None:
        raise UserError(f"images: {name} {_why_none(Path(name).expanduser())}")
    index, validation = found
    tested = np.zeros_like(validation.good) if index.is_test is None else index.is_test & validation.good
    left_out = [Remark(name, f"{tested.sum()} images are for testing, and not learnt")] if tested.any() else []
    found_faults = (*index.remarks, *validation.remarks(index.source.names), *class_remarks(index, validation))
    paths = ((one, _path(index.source, one.path)) for one in found_faults)
    remarks = (*(one._replace(path=path if os.path.lexists(path) else one.path) for one, path in paths), *left_out)

    def images() -> Iterator[tuple[ImageFile, str]]:
        for row in (validation.good & ~tested).nonzero()[0].tolist():
            digest = validation.digests[row].tobytes().hex()
            read = partial(_read_bytes, index.source.read, row)
            name = as_utf8(_path(index.source, index.source.names[row]))
            yield ImageFile(name, digest, read), normalized_name(index.classes[index.labels[row]])

    return list(images()), remarks


def _path(source: Source, name: str) -> str:
    """Return the path under which the user can open a file of a source; its name if the source has no files."""
    return str(source.root / name) if isinstance(source, Files) else name


def check_classes(images: LabelledImages, remarks: Sequence[Remark], known: Sequence[str]) -> tuple[Remark, ...]:
    """Return remarks on new classes that are spelt like known ones.

    Args:
        images: The images that arrive.
        remarks: On files and folders that were left out.
        known: The classes of the model; none for a new one.

    Raises:
        UserError: There is no image, or a new model has a single class. The message tells what was left out.
    """
    from ssil.data.sources.folder import remarks_on_spelling

    names = {name for _, name in images}
    left_out = [f"{remark.path} ({remark.reason})" for remark in remarks if remark.left_out]
    hint = f"; left out: {left_out[0]}{f' and {len(left_out) - 1} more' * (len(left_out) > 1)}" if left_out else ""
    if not images:
        raise UserError(f"images: there is no image to learn from{hint}")
    if not known and len(names) < 2:
        raise UserError(
            f"images: only one class, {min(names)!r}; a new model needs at least two, to tell them apart{hint}"
        )
    return tuple(one for name in sorted(names - {*known}) for one in remarks_on_spelling([name], known))


def _why_none(path: Path) -> str:
    """Return why nothing can be learnt from a path, and what to do."""
    if path.exists():
        return "is no folder with one sub-folder per class, and no .csv or .parquet manifest"
    siblings = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    return f"does not exist; {did_you_mean(path.name, siblings, 'check the path', count=3)}"


def _read_bytes(read: Callable[[int], bytes | memoryview], row: int) -> bytes:
    return bytes(read(row))
