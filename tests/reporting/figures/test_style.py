"""A method looks the same everywhere, and unlike the others without colour and to the colour-blind."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from figure_records import record
from ssil.learning.registry import recipes
from ssil.reporting.figures.curves import accuracy_curves, accuracy_grid
from ssil.reporting.figures.style import BYTES, FORMATS, KNOWN, display_name, method_styles, panel_grid, save

TOGETHER = {
    "Fig. 5": ("ssil", "ft", "icarl", "il2m", "eeil", "bic", "lucir", "podnet", "joint"),
    "Fig. 6": ("ssil", "ce_tkd", "ce_ss", "ce", "ce_gkd"),
}
COLOUR_VISION = {
    "usual": np.eye(3),
    "no green": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
    "no red": np.array([[0.10889, 0.89111, 0.0], [0.10889, 0.89111, 0.0], [0.00447, -0.00447, 1.0]]),
}
"""Linear RGB as it appears, after Vienot, Brettel and Mollon (1999)."""

XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def test_every_method_of_the_package_has_a_style() -> None:
    assert set(recipes()) <= set(KNOWN)


def test_without_colour_all_known_methods_differ() -> None:
    assert len({(style.marker, style.dashes) for _, style in KNOWN.values()}) == len(KNOWN)


def test_methods_of_an_ablation_differ_by_their_markers_alone() -> None:
    """Dashes mean old and new there."""
    ablation = (*TOGETHER["Fig. 6"], "er")
    assert len({KNOWN[name][1].marker for name in ablation}) == len(ablation)


@pytest.mark.parametrize("vision", COLOUR_VISION)
@pytest.mark.parametrize("figure", TOGETHER)
def test_colours_that_the_paper_draws_together_stay_apart(figure: str, vision: str) -> None:
    seen = {name: _lab(KNOWN[name][1].colour, COLOUR_VISION[vision]) for name in TOGETHER[figure]}
    near = {pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in combinations(seen, 2)}
    assert min(near.values()) > 18, min(near, key=lambda pair: near[pair])


def _lab(colour: str, vision: NDArray[np.float64]) -> NDArray[np.float64]:
    rgb = np.array(to_rgb(colour))
    linear = vision @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ linear.clip(0, 1) / XYZ.sum(1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_a_method_looks_the_same_in_any_company() -> None:
    alone, together = method_styles(["ft"]), method_styles(["mine", "ft", "ssil", "another", "ft, memory 9", "a third"])
    assert alone["ft"] == together["ft"]
    assert len({(style.marker, style.dashes) for style in together.values()}) == 6


def test_a_method_of_your_own_has_a_colour_that_no_other_has() -> None:
    found = method_styles(["mine", "ssil", "ft"])
    assert len({style.colour for style in found.values()}) == 3


def test_the_first_variant_has_its_methods_look_where_the_method_itself_is_not_there() -> None:
    found = method_styles(["ft, memory 9", "ft, memory 5"])
    assert found["ft, memory 5"] == KNOWN["ft"][1] != found["ft, memory 9"]


def test_names_in_options_are_left_alone() -> None:
    assert display_name("mine, distil ssil") == "mine, distil ssil"


def test_panels_fill_rows() -> None:
    figure, grid = panel_grid(5, 3, 2, 1)
    assert len(grid) == len(figure.axes) == 5
    assert tuple(figure.get_size_inches()) == (6, 2)


def _figure() -> Figure:
    return accuracy_curves({"ft": [record("ft", [90, 40]), record("ft", [80, 30])], "ssil": [record("ssil")]})


def test_all_formats_are_written_and_never_change(tmp_path: Path) -> None:
    first, second = (save(_figure(), tmp_path / name / "a.b") for name in ("one", "two"))
    assert first == tmp_path / "one" / "a.b.png"
    assert sorted(file.suffix[1:] for file in first.parent.iterdir()) == sorted(FORMATS)
    for file in first.parent.iterdir():
        assert file.read_bytes() == (second.parent / file.name).read_bytes()


def test_a_large_image_is_reduced_and_keeps_its_main_colour(tmp_path: Path) -> None:
    runs = {name: [record(name, [90, 50 + place]), record(name, [80, 50 - place])] for place, name in enumerate(KNOWN)}
    file = save(accuracy_grid({str(number): runs for number in range(6)}), tmp_path / "a.png")
    assert file.stat().st_size < BYTES
    palette = np.array(Image.open(file).getpalette()).reshape(-1, 3)
    assert np.abs(palette - 255 * np.array(to_rgb(KNOWN["ssil"][1].colour))).max(1).min() < 5


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_saved_as_the_name_says(ending: str, start: bytes, tmp_path: Path) -> None:
    path = save(_figure(), tmp_path / f"a.{ending}")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes().startswith(start)
