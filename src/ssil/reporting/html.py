"""HTML that all pages share; a page needs nothing but itself."""

from html import escape
from pathlib import Path

from plotly import graph_objects as go
from plotly.offline import get_plotlyjs


def document(title: str, soft: str, body: str) -> str:
    """A page with scripts and styles included; `title` is text, `soft` (a line below it) and `body` are HTML."""
    named = escape(title)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{named}</title>
<link rel="icon" href="data:,">
<style>{_beside("page.css")}</style>
</head>
<body>
<h1>{named}</h1>
<p class="soft">{soft}</p>
<noscript><p>The plots need JavaScript; all else doesn't.</p></noscript>
{body}
<script>{get_plotlyjs()}</script>
<script>{_beside("page.js")}</script>
</body>
</html>
"""


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text()


def heading(title: str, *sentences: str) -> str:
    """A small heading, and what is to be said below it."""
    return f"<h4>{title}</h4>" + "".join(f"<p>{sentence}</p>" for sentence in sentences)


def note(*sentences: str) -> str:
    """How to read what follows."""
    return "".join(f'<p class="note">{sentence}</p>' for sentence in sentences)


def pair(*figures: str) -> str:
    """Figures side by side where there is room."""
    return f'<div class="pair">{"".join(figures)}</div>'


def plot(figure: go.Figure, label: str, style: str = "") -> str:
    """A box, and what to draw in it; no text can end the script early."""
    data = figure.to_json().replace("<", "\\u003c")
    return (
        f'<div class="plot" role="img" aria-label="{escape(label)}" style="{style}">'
        f'<script type="application/json">{data}</script></div>'
    )
