"""`ssil inspect`: what a model knows, keeps and has been through."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ssil.cli.terminal import Json, Trust, console, json_line, table

if TYPE_CHECKING:
    from ssil.classifier.holdout import Marks
    from ssil.classifier.model_directory import ModelVersion

app = App(
    name="inspect",
    help_epilogue="""Examples:
  ssil inspect birds
  ssil inspect birds --html birds.html
  ssil inspect birds --json""",
)


@app.default
def inspect(
    model: Annotated[Path, Parameter(help="the model's directory")],
    /,
    *,
    version: Annotated[int | None, Parameter(help="of the model (default: the current one)")] = None,
    html: Annotated[Path | None, Parameter(help="write it as a page too, FILE.html")] = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Show a model's classes, what it keeps of each, and how well it knows it."""
    from ssil.classifier.classifier import judged
    from ssil.classifier.model_directory import ModelDirectory
    from ssil.cli.model_page import needs_plotly, write_page  # brings torch

    if html:
        needs_plotly()
    directory = ModelDirectory(model, trust or ())
    found = directory.load(version)
    known, marks = found.classifier, judged(found.classifier)
    if html:
        write_page(html, model.resolve().name, found, marks)
    rows = _rows(found, marks)
    summary: dict[str, Any] = {
        "version": found.number,
        "versions": directory.numbers(),
        "settings": known.settings.model_dump(mode="json"),
        "bytes": directory.size(),
        "accuracy": marks.accuracy(known.classes.names) if marks else None,
    }
    if json:
        json_line(**summary, classes=rows)
        return
    screen = console()
    settings = known.settings
    screen.print(
        f"[bold]{model}[/], version {found.number} of {', '.join(map(str, directory.numbers()))}: {len(rows)} classes, "
        f"{settings.method} on {settings.backbone} at {settings.image_size} pixels, {summary['bytes'] / 1e6:.1f} MB"
    )
    shown = table("class", "since update", "exemplars", "quiz", "right in the quiz")
    for row in rows:
        right = "-" if row["accuracy"] is None else f"{row['accuracy']:.0f} %"
        shown.add_row(row["class"], str(row["arrived"]), str(row["exemplars"]), str(row["quiz"]), right)
    screen.print(shown)


def _rows(found: "ModelVersion", marks: "Marks | None") -> list[dict[str, Any]]:
    """What is known of each class."""
    known = found.classifier
    return [
        {
            "class": name,
            "arrived": arrival,
            "exemplars": len(known.exemplars[label]),
            "quiz": len(known.quiz[label]),
            "accuracy": marks.accuracy([name]) if marks else None,
        }
        for label, (name, arrival) in enumerate(zip(known.classes.names, found.arrivals(), strict=True))
    ]
