"""What all interactive figures share: a plotly figure without legend and zoom, and its colours."""

from collections.abc import Sequence
from typing import Any

from plotly import graph_objects as go

INK, GRID = "#333333", "#e6e6e6"


def framed(traces: Sequence[Any], x: str, y: str, **layout: Any) -> go.Figure:
    """Create a figure that fills its box, without a legend, and without zoom, which would interfere with scrolling."""
    axis = {"fixedrange": True, "zeroline": False, "automargin": True, "gridcolor": GRID, "linecolor": "#999999"}
    frame = go.Layout(
        template="none",
        autosize=True,
        dragmode=False,
        hovermode="closest",
        showlegend=False,
        font={"family": "system-ui, sans-serif", "size": 12, "color": INK},
        margin={"l": 8, "r": 10, "t": 10, "b": 8},
        hoverlabel={"bgcolor": "white", "bordercolor": "#999999", "font": {"color": INK}, "namelength": -1},
        xaxis=axis | {"title": {"text": x, "standoff": 8}, "showgrid": False, "ticks": "outside", "ticklen": 4},
        yaxis=axis | {"title": {"text": y, "standoff": 8}},
    )
    return go.Figure(traces, frame).update_layout(**layout)
