"""The templates of pages, and the texts that several of them use."""

from collections.abc import Mapping
from typing import Any, Final

from ssil.core import __version__
from ssil.core.html_templates import html_templates

TEMPLATES: Final = html_templates("ssil.studio")


def rendered(template: str, **values: Any) -> str:
    """Return a page, or a part of one, as HTML; values are escaped."""
    return TEMPLATES.get_template(template).render(**values)


def photos_text(count: int) -> str:
    """Return a number of photos as text.

    >>> photos_text(1), photos_text(1200)
    ('1 photo', '1,200 photos')
    """
    return f"{count:,} photo{'' if count == 1 else 's'}"


def percent_text(value: float | None) -> str:
    r"""Return a percentage as text that is not broken into two lines.

    >>> percent_text(66.6), percent_text(None)
    ('67\xa0%', 'not measured')
    """
    return "not measured" if value is None else f"{value:.0f}\xa0%"


def seconds_text(seconds: float) -> str:
    """Return a rough duration as text.

    >>> seconds_text(7.2), seconds_text(95), seconds_text(4000)
    ('10 seconds', '2 minutes', '67 minutes')
    """
    return f"{max(5, 5 * round(seconds / 5 + 0.49))} seconds" if seconds < 90 else f"{round(seconds / 60)} minutes"


def points_text(points: float) -> str:
    """Return a difference of percentages as text.

    >>> points_text(4.2), points_text(1), points_text(0.3)
    ('4 points', '1 point', 'less than 1 point')
    """
    if points < 0.5:
        return "less than 1 point"
    return f"{points:.0f} point{'' if round(points) == 1 else 's'}"


def mark_words(mark: Mapping[str, Any]) -> str:
    """Return why a photo is marked; marks of earlier versions have a title and a class."""
    other = f" ({mark['other']}?)" if mark["other"] else ""
    return str(mark.get("text") or f"{mark['kind']}{other}")


TEMPLATES.filters.update(
    photos=photos_text, percent=percent_text, seconds=seconds_text, points=points_text, mark=mark_words
)
TEMPLATES.globals.update(software=__version__)
