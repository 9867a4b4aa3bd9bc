"""The legend below a plot: a button a variant, which hides it in all plots of its section."""

from html import escape
from typing import Final

from ssil.reporting.figures.style import MethodStyle
from ssil.reporting.plots import group
from ssil.reporting.sections import Section

_MARKS: Final = {
    "o": "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0",
    "s": "M-4,-4H4V4H-4Z",
    "^": "M0,-5L5,4H-5Z",
    "v": "M0,5L5,-4H-5Z",
    "<": "M-5,0L4,-5V5Z",
    ">": "M5,0L-4,-5V5Z",
    "D": "M0,-5L5,0L0,5L-5,0Z",
    "d": "M0,-5L3,0L0,5L-3,0Z",
    "P": "M-2,-5H2V-2H5V2H2V5H-2V2H-5V-2H-2Z",
    "X": "M-5,-3L-3,-5L0,-2L3,-5L5,-3L2,0L5,3L3,5L0,2L-3,5L-5,3L-2,0Z",
    "*": "M0,-6L1.5,-2L6,-2L2.2,.8L3.7,5L0,2.4L-3.7,5L-2.2,.8L-6,-2L-1.5,-2Z",
    "": "",
}
_DASHES: Final = {"-": "", "--": "7 4", "-.": "7 3 2 3", ":": "2 3"}


def legend(section: Section) -> str:
    """The buttons of a section's variants."""
    buttons = [
        f'<li><button type="button" aria-pressed="true" data-group="{group(variant.name)}">'
        f"{sample(section.looks[variant.name])}{escape(variant.name)}</button></li>"
        for variant in section.variants
    ]
    return f'<ul class="legend" aria-label="show or hide">{"".join(buttons)}</ul>'


def sample(look: MethodStyle) -> str:
    """A short piece of a line with its marker."""
    mark, dashes = _MARKS.get(look.marker, _MARKS["o"]), _DASHES.get(look.dashes, "")
    return (
        '<svg width="34" height="14" viewBox="-17 -7 34 14" aria-hidden="true">'
        f'<path d="M-17,0H17" stroke="{look.colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        f'<path d="{mark}" fill="{look.colour}" stroke="#fff" stroke-width=".8"/></svg>'
    )
