"""Style and files of figures: each method keeps its colour, marker and dashes, which differ without colour too."""

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
    """Colour (hexadecimal), marker and dashes (in matplotlib's notation) of a method's lines."""

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
    "er_ace": ("ER-ACE", MethodStyle("#9a6fb0", "<", ":")),
    "derpp": ("DER++", MethodStyle("#7a7a00", ">", ":")),
    "der": ("DER", MethodStyle("#b22222", "*", "--")),
    "foster": ("FOSTER", MethodStyle("#5f9ea0", "d", "-")),
    "memo": ("MEMO", MethodStyle("#7b3fa0", "X", ":")),
    "lwf": ("LwF", MethodStyle("#44556b", "s", ":")),
    "ncm": ("NCM", MethodStyle("#a0522d", "o", ":")),
    "slda": ("SLDA", MethodStyle("#2f4f9f", "D", ":")),
    "fecam": ("FeCAM", MethodStyle("#b5739d", "^", ":")),
    "ranpac": ("RanPAC", MethodStyle("#1b8a6b", "v", ":")),
    "joint": ("Joint (upper bound)", MethodStyle("#000000", "", "--")),
}
"""Display name and style by method. Colours of methods that share a figure of the paper stay distinguishable under
red-green colour blindness; no two methods share both marker and dashes."""

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's palette without its yellow (too pale in print), for methods that are not in `KNOWN`."""

OLD, NEW = "#6f93bf", "#a8430f"
"""Colours of old classes (light) and new classes (dark) in figures of a single method."""

MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "d")
DASHES: Final = ("-", "--", "-.", ":")

PIXELS: Final = 800_000
BYTES: Final = 150_000
"""Largest PNG, in pixels and bytes: figures of results are kept in the repository."""

FORMATS: Final = ("png", "svg", "pdf")
UNDATED: Final = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


def method_styles(names: Iterable[str]) -> dict[str, MethodStyle]:
    """Return the style of each method or variant name.

    A method in `KNOWN` has the same style in every figure. The first variant of a method has the method's style, and
    each further one a darker (or lighter) shade with a free combination of marker and dashes. Other methods have
    colours that no method of the figure has, as long as there are some.

    >>> found = method_styles(["mine", "ft", "ft, memory 9"])
    >>> found["ft"], found["ft, memory 9"].colour
    (MethodStyle(colour='#d55e00', marker='s', dashes='--'), '#6a2f00')
    """
    own = {method: style for method, (_, style) in KNOWN.items()}
    taken = {(style.marker, style.dashes) for style in own.values()}
    free = cycle((marker, dashes) for dashes, marker in product(DASHES, MARKERS) if (marker, dashes) not in taken)
    names = set(names)
    used = {own[method].colour for method in map(base_method, names) if method in own}
    colours = cycle([colour for colour in COLOURS if colour not in used] or COLOURS)
    found, first = dict[str, MethodStyle](), dict[str, MethodStyle]()
    for name in sorted(names, key=lambda name: (name != base_method(name), name)):
        method = base_method(name)
        if method in first:
            found[name] = MethodStyle(_shade(first[method].colour), *next(free))
        else:
            found[name] = first[method] = own.get(method) or MethodStyle(next(colours), *next(free))
    return found


def _shade(colour: str) -> str:
    """Return the colour half way to black, or to white if it is dark itself."""
    red, green, blue = to_rgb(colour)
    end = red + green + blue < 0.9
    return to_hex(((red + end) / 2, (green + end) / 2, (blue + end) / 2))


def base_method(name: str) -> str:
    """Return the method at the start of a variant's name.

    >>> base_method("ssil, batches mixed"), base_method("icarl (cnn)"), base_method("ssil w/o ER")
    ('ssil', 'icarl', 'ssil')
    """
    return re.split(r"[\s,(]", name, maxsplit=1)[0]


def display_name(name: str) -> str:
    """Return the name of a method or variant as papers write it.

    >>> display_name("ssil"), display_name("icarl (cnn)"), display_name("ce_tkd (from ce_gkd)"), display_name("mine")
    ('SS-IL', 'iCaRL (cnn)', 'CE+TKD (from CE+GKD)', 'mine')
    """
    methods = {method: written for method, (written, _) in KNOWN.items()}
    return re.sub(r"^[^\s,(]+|(?<=\(from )[^)]+", lambda found: methods.get(found[0], found[0]), name)


def method_name(record: Record) -> str:
    """Return the record's method; of a method given as FILE:NAME only NAME."""
    return record.label.rpartition(":")[2]


def hide_frame(axes: Axes) -> None:
    """Hide the top and right spines and draw a faint horizontal grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def panel_title(axes: Axes, text: str) -> None:
    """Set a panel's title, bold and left-aligned."""
    axes.set_title(text, loc="left", weight="bold")


def panel_grid(count: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Create a figure of `count` panels, row by row; each panel is `width` by `height` inches."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid: list[Axes] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in grid[count:]:
        unused.remove()
    return figure, grid[:count]


def save(figure: Figure, path: str | Path, formats: Sequence[str] = FORMATS) -> Path:
    """Write a figure in the format of the path's suffix, or in all `formats` if it has none of them.

    Equal figures give equal bytes: files contain no dates and no random identifiers.

    Returns:
        The path of the first file written.
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
    """Write a PNG; if it exceeds `BYTES`, reduce it to 256 colours, chosen so that large areas keep theirs."""
    buffer = BytesIO()
    width, height = figure.get_size_inches()
    figure.savefig(buffer, format="png", dpi=min(160.0, sqrt(PIXELS / (width * height))), bbox_inches="tight")
    if len(buffer.getvalue()) <= BYTES:
        file.write_bytes(buffer.getvalue())
    else:
        pixels = Image.open(buffer).convert("RGB")
        pixels.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(file, optimize=True)
