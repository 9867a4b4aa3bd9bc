"""The notebooks run from start to end, and are stored with their outputs."""

import json
from pathlib import Path
from typing import Any

import pytest

from notebook_pages import markdown, notebook_pages

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SECONDS = 300
"""Of a cell at most, on a machine that does much else."""


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_there_are_four_notebooks() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["blurry-stream", "classifier", "comparing", "own-loop"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_stored_outputs_are_whole_small_and_free_of_warnings(file: Path) -> None:
    cells = code_cells(json.loads(file.read_text()))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 1
    assert file.stat().st_size < 200_000


def test_the_classifier_takes_five_cells() -> None:
    assert len(code_cells(json.loads((ROOT / "notebooks/classifier.ipynb").read_text()))) == 5


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(file: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    stored = [printed(cell) for cell in code_cells(notebook)]
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = [[output["output_type"] for output in cell["outputs"]] for cell in code_cells(notebook)]
    assert [bool(text) for text in stored] == [bool(printed(cell)) for cell in code_cells(notebook)]
    assert not [output for cell in code_cells(notebook) for output in cell["outputs"] if output.get("name") == "stderr"]
    assert any("display_data" in kind for kind in kinds)


def printed(cell: Any) -> str:
    """The text that a cell has printed or returned; the digits may differ between machines."""
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell["outputs"]]
    return "".join("".join(text) for text in texts)


def test_a_notebook_becomes_a_page_with_its_figures() -> None:
    pages = notebook_pages()
    page = pages["notebooks/own-loop.md"]
    assert isinstance(page, str)
    assert page.startswith("# Your own loop\n\n*This page is the notebook")
    assert "```python\nfrom ssil.benchmark.scenario import build_stream" in page
    assert "```text\ntask 1: " in page
    assert "](own-loop-1.png)" in page
    assert pages["notebooks/own-loop-1.png"][:4] == b"\x89PNG"


def test_the_figures_of_a_page_are_numbered(tmp_path: Path) -> None:
    figure = {"output_type": "display_data", "data": {"image/png": "aGVsbG8=", "text/plain": ["<Figure>"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# A\n", "\n", "text"]},
        {"cell_type": "code", "source": ["draw()"], "outputs": [figure, figure]},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    figures = dict[str, bytes]()
    page = markdown(tmp_path / "a.ipynb", figures)
    assert figures == {"a-1.png": b"hello", "a-2.png": b"hello"}
    assert page.index("text") < page.index("```python\ndraw()\n```") < page.index("a-1.png") < page.index("a-2.png")
