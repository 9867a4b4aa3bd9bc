"""Pictures to be named: files, folders, standard input; each looked at before the model sees it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from ssil.data.decode import UnreadableError, whole
from ssil.data.encoded import pool, workers
from ssil.data.listing import Remark, content, plain, why
from ssil.errors import UserError
from ssil.model.pictures import Picture

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".avif"})


def gallery(names: Sequence[str], stdin: BinaryIO) -> tuple[list[Picture], list[Remark]]:
    """The pictures that can be read, in order, and remarks on the others."""
    places = [place for name in names for place in _places(name)]
    found = pool(workers()).map(lambda place: _looked_at(place, stdin), places)
    good, bad = list[Picture](), list[Remark]()
    for one in found:
        (good if isinstance(one, Picture) else bad).append(one)  # type: ignore[arg-type]
    return good, bad


def _places(name: str) -> Iterator[str]:
    path = Path(name)
    if name == "-" or path.is_file():
        yield name
    elif path.is_dir():
        yield from (str(file) for file in sorted(path.rglob("*")) if file.suffix.lower() in SUFFIXES)
    else:
        raise UserError(f"pictures: there is no {name}; give files, folders, or - for standard input")


def _looked_at(place: str, stdin: BinaryIO) -> Picture | Remark:
    try:
        data = stdin.read() if place == "-" else content(Path(place))
        whole(data)
    except OSError as error:
        return Remark(plain(place), why(error))
    except UnreadableError as error:
        return Remark(plain(place), str(error))
    return Picture.of(plain(place), data)
