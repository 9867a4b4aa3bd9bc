"""`ssil demo`: what SS-IL is about, on a small stream of made-up characters."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

app = App(
    name="demo",
    help_epilogue="""Runs that are done are not run again; a demo that was stopped goes on.

Examples:
  ssil demo
  ssil demo --out somewhere
  ssil show ssil-demo/*""",
)

METHODS = ("ft", "ce_gkd", "ssil")
"""Fine-tuning, distillation over all old classes at once, and SS-IL."""

SETTINGS: dict[str, Any] = {
    "dataset": "glyphs",
    "classes": 100,
    "train_per_class": 40,
    "test_per_class": 20,
    "tasks": 10,
    "memory": 300,
    "backbone": "resnet14",
    "epochs": 8,
    "later_epochs": 8,
    "batch": 32,
}
"""Small enough for two cores; the same for all three."""


@app.default
def demo(*, out: Annotated[Path, Parameter(help="where runs and pictures go")] = Path("ssil-demo")) -> None:
    """Compare three methods on a small stream, in under 3 minutes."""
    from ssil.cli.comparison import compare  # brings torch and matplotlib

    compare(METHODS, SETTINGS, out)
