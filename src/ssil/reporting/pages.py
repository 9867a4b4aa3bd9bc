"""HTML pages from the templates in templates/; a page contains its scripts and styles and fetches nothing."""

from typing import Any, Final

from markupsafe import Markup
from plotly import graph_objects as go
from plotly.offline import get_plotlyjs

from ssil.core import __version__
from ssil.core.html_templates import html_templates
from ssil.reporting import plotly_figures, plotly_maps

TEMPLATES: Final = html_templates("ssil.reporting")


def render(template: str, **values: Any) -> str:
    """Render a page; values are escaped unless they are `Markup`."""
    return TEMPLATES.get_template(template).render(plotly_script=Markup(get_plotlyjs()), **values)


def _script_json(figure: go.Figure) -> Markup:
    """Return a figure as JSON in which no text can end the surrounding script element."""
    return Markup(figure.to_json().replace("<", "\\u003c"))


TEMPLATES.filters["script_json"] = _script_json
TEMPLATES.globals.update(version=__version__, figures=plotly_figures, maps=plotly_maps)
