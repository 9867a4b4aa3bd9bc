"""How figures look: a method keeps its colour, marker and dash wherever it appears, and grey print tells it apart."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle, product
from math import sqrt
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from PIL import Image

from ssil.benchmark.record import Record


@dataclass(frozen=True)
class MethodStyle:
    """How a method is drawn."""

    colour: str
    marker: str
    dashes: str


KNOWN: Final = {
    "ssil": ("SS-IL", MethodStyle("#0072b2", "o", "-")),
    "ft": ("FT", MethodStyle("#d55e00", "s", "--")),
    "ce_gkd": ("CE+GKD", MethodStyle("#009e73", "^", "-.")),
    "ce_tkd": ("CE+TKD", MethodStyle("#cc79a7", "D", "-")),
    "ce_ss": ("CE-SS", MethodStyle("#56b4e9", "v", "--")),
    "ce": ("CE", MethodStyle("#e69f00", "P", "-.")),
    "icarl": ("iCaRL", MethodStyle("#6b1a3a", "^", "-")),
    "il2m": ("IL2M", MethodStyle("#6b3e0a", "X", "--")),
    "eeil": ("EEIL", MethodStyle("#7fc9bd", "v", "-")),
    "bic": ("BiC", MethodStyle("#777777", "*", "-")),
    "lucir": ("LUCIR", MethodStyle("#332288", "D", "--")),
    "podnet": ("PODNet", MethodStyle("#88b04b", "P", "-")),
    "wa": ("WA", MethodStyle("#8fa8e8", "<", "-.")),
    "uw": ("UW", MethodStyle("#3b7a3b", ">", "-")),
    "scail": ("ScaIL", MethodStyle("#f08a90", "d", "--")),
    "er": ("ER", MethodStyle("#d9a521", "X", "-.")),
    "lwf": ("LwF", MethodStyle("#44556b", "s", ":")),
    "joint": ("Joint (upper bound)", MethodStyle("#000000", "", "--")),
}
"""The name in legends, and the look. The colours of methods that the paper draws together stay apart for people who
don't see red or green as others do; no two methods share marker and dash."""

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's palette, for methods that are not known; yellow is too pale for paper."""

OLD, NEW = "#6f93bf", "#a8430f"
"""Old and new classes where no method is meant: light and dark."""

MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "d")
DASHES: Final = ("-", "--", "-.", ":")

PIXELS: Final = 800_000
BYTES: Final = 150_000
"""The most in a PNG; pictures are kept beside the code."""

FORMATS: Final = ("png", "svg", "pdf")
UNDATED: Final = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def looks(names: Iterable[str]) -> dict[str, MethodStyle]:
    """The look of each method or variant: a known method's own, in any company; further variants have a shade of it.

    >>> found = looks(["mine", "ft", "ft, memory 9"])
    >>> found["ft"], found["ft, memory 9"].colour
    (MethodStyle(colour='#d55e00', marker='s', dashes='--'), '#6a2f00')
    """
    own = {method: look for method, (_, look) in KNOWN.items()}
    taken = {(look.marker, look.dashes) for look in own.values()}
    free = cycle((marker, dashes) for dashes, marker in product(DASHES, MARKERS) if (marker, dashes) not in taken)
    colours, found, first = cycle(COLOURS), dict[str, MethodStyle](), dict[str, MethodStyle]()
    for name in sorted(set(names), key=lambda name: (name != method_in(name), name)):
        method = method_in(name)
        if method in first:
            found[name] = MethodStyle(_shade(first[method].colour), *next(free))
        else:
            found[name] = first[method] = own.get(method) or MethodStyle(next(colours), *next(free))
    return found


def _shade(colour: str) -> str:
    """A colour half way to black, or to white if it is dark itself."""
    red, green, blue = to_rgb(colour)
    end = red + green + blue < 0.9
    return to_hex(((red + end) / 2, (green + end) / 2, (blue + end) / 2))


def method_in(name: str) -> str:
    """The method in a variant's name.

    >>> method_in("ssil, batches mixed"), method_in("icarl (cnn)"), method_in("ssil w/o ER")
    ('ssil', 'icarl', 'ssil')
    """
    return re.split(r"[\s,(]", name, maxsplit=1)[0]


def shown(name: str) -> str:
    """A method's or variant's name as papers write it.

    >>> shown("ssil"), shown("icarl (cnn)"), shown("ce_tkd (from ce_gkd)"), shown("mine")
    ('SS-IL', 'iCaRL (cnn)', 'CE+TKD (from CE+GKD)', 'mine')
    """
    methods = {method: written for method, (written, _) in KNOWN.items()}
    return re.sub(r"^[^\s,(]+|(?<=\(from )[^)]+", lambda found: methods.get(found[0], found[0]), name)


def method_of(record: Record) -> str:
    """The method's name; of a method in a file only its own."""
    return record.label.rpartition(":")[2]


def clean(axes: Axes) -> None:
    """Only the axes that carry numbers, and a faint horizontal grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def title(axes: Axes, text: str) -> None:
    """A panel's title."""
    axes.set_title(text, loc="left", weight="bold")


def panels(count: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with so many axes of this size (inches), row by row."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid: list[Axes] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in grid[count:]:
        unused.remove()
    return figure, grid[:count]


def save(figure: Figure, path: str | Path, formats: Sequence[str] = FORMATS) -> Path:
    """Write a figure in the format that its name ends in, or else in all `formats`; the first of the files.

    The same figure gives the same bytes: no dates, and no random names.
    """
    path = Path(path)
    ends = path.suffix[1:] in FORMATS
    files = [path] if ends else [path.with_name(f"{path.name}.{ending}") for ending in formats]
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "ssil", "pdf.fonttype": 42}):
        for file in files:
            ending = file.suffix[1:]
            if ending == "png":
                _save_pixels(figure, file)
            else:
                figure.savefig(file, bbox_inches="tight", metadata=UNDATED[ending])
    return files[0]


def _save_pixels(figure: Figure, file: Path) -> None:
    """A PNG; one that would be too large has 256 colours, chosen so that areas keep theirs."""
    buffer = BytesIO()
    width, height = figure.get_size_inches()
    figure.savefig(buffer, format="png", dpi=min(160.0, sqrt(PIXELS / (width * height))), bbox_inches="tight")
    if len(buffer.getvalue()) <= BYTES:
        file.write_bytes(buffer.getvalue())
    else:
        pixels = Image.open(buffer).convert("RGB")
        pixels.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(file, optimize=True)
