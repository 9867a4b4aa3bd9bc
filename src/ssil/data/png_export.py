"""A data set as folders of PNG files: `train/CLASS/000001.png` and so on, the same under `test`."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from PIL import Image

from ssil.core.errors import UserError
from ssil.core.files import temporary
from ssil.core.samples import Samples
from ssil.data.dataset import Dataset
from ssil.data.file_validation import ProgressCallback

BLOCK = 256
MAX_NAME_BYTES = 200


def export_png(dataset: Dataset, out: Path, on_progress: ProgressCallback | None = None) -> int:
    """Write all images of a set to a new directory, which appears when it is complete; return their number."""
    names = folder_names(dataset.classes)
    if out.exists():
        raise UserError(f"out: {out} exists; give a new directory")
    part, total = temporary(out), len(dataset.train) + len(dataset.test)
    shutil.rmtree(part, ignore_errors=True)
    try:
        for done, (path, image) in enumerate(_images(dataset, names), start=1):
            (part / path).parent.mkdir(parents=True, exist_ok=True)
            image.save(part / path)
            if on_progress:
                on_progress(done, total)
        part.rename(out)
    except OSError as error:
        raise UserError(f"out: {out} can't be written ({error.strerror}); give another directory") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)  # what an error or Ctrl-C leaves
    return total


def _images(dataset: Dataset, names: Sequence[str]) -> Iterator[tuple[Path, Image.Image]]:
    """Yield every image with its relative path."""
    for part, samples in (("train", dataset.train), ("test", dataset.test)):
        written = Counter[int]()
        for label, image in _labelled_images(samples):
            written[label] += 1
            yield Path(part, names[label], f"{written[label]:06d}.png"), image


def _labelled_images(samples: Samples) -> Iterator[tuple[int, Image.Image]]:
    grey = samples.images.shape[2] == 1
    for block in torch.arange(len(samples)).split(BLOCK):
        pixels = samples.images.fetch(block).cpu().numpy()
        for label, one in zip(samples.labels[block].tolist(), pixels, strict=True):
            yield label, Image.fromarray(one[..., 0] if grey else one)


def folder_names(classes: Sequence[str]) -> tuple[str, ...]:
    """Return a folder name per class that any file system accepts; raise UserError if two would differ by case only.

    >>> folder_names(["cat", "AC/DC", "..."])
    ('cat', 'AC_DC', '_')
    """
    names = tuple(map(_safe, classes))
    first: dict[str, str] = {}
    for name, original in zip(names, classes, strict=True):
        other = first.setdefault(name.casefold(), original)
        if other is not original:
            raise UserError(f"classes: {other!r} and {original!r} would share the folder {name!r}; rename one of them")
    return names


def _safe(name: str) -> str:
    safe = re.sub(r'[<>:"/\\|?*\x00-\x1f]', "_", name).encode(errors="replace")[:MAX_NAME_BYTES]
    return safe.decode(errors="ignore").strip(" .") or "_"
