"""Notebooks as pages of the documentation site: text, code and stored outputs, with figures as files beside them."""

import base64
import json
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
FOLDER = Path(__file__).parents[1] / "notebooks"


def notebook_pages() -> dict[str, str | bytes]:
    """Return the content of each page and figure by its path on the site."""
    found: dict[str, str | bytes] = {}
    for file in sorted(FOLDER.glob("*.ipynb")):
        figures = dict[str, bytes]()
        found[f"notebooks/{file.stem}.md"] = markdown(file, figures)
        found |= {f"notebooks/{name}": content for name, content in figures.items()}
    return found


def markdown(file: Path, figures: dict[str, bytes]) -> str:
    """Return a notebook as Markdown, and add its figures to `figures` by their names."""
    cells: list[Cell] = json.loads(file.read_text())["cells"]
    note = f"This page is the notebook `notebooks/{file.name}` of the repository, with the outputs stored in it."
    title, *rest = (_cell(cell, file.stem, figures) for cell in cells)
    heading, _, text = title.partition("\n")
    return "\n\n".join([heading, f"*{note}*", text.strip(), *rest, ""])


def _cell(cell: Cell, name: str, figures: dict[str, bytes]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    outputs = [_output(output, name, figures) for output in cell["outputs"]]
    return "\n\n".join([_fenced(source, "python"), *filter(None, outputs)])


def _output(output: Cell, name: str, figures: dict[str, bytes]) -> str:
    """Return an output as Markdown: a figure if it has one, otherwise its text."""
    data = output.get("data", {})
    if "image/png" in data:
        file = f"{name}-{len(figures) + 1}.png"
        figures[file] = base64.b64decode(data["image/png"])
        return f"![the figure that the code above draws]({file})"
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return _fenced(text.rstrip(), "text") if text else ""


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"
