"""`ssil inspect`: a model's classes, the images it keeps, and its accuracy on images that it has not learnt."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ssil.cli.terminal import (
    Json,
    Model,
    Trust,
    Version,
    check_output,
    console,
    json_line,
    percent,
    plain,
    table,
)
from ssil.core.plugins import short_name

if TYPE_CHECKING:
    from ssil.classifier.holdout import HoldoutResult
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
    model: Model,
    /,
    *,
    version: Version = None,
    html: Annotated[Path | None, Parameter(help="also write a page, FILE.html")] = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Show a model's classes, their kept images and accuracies."""
    if html:
        check_output("html", html)
    from ssil.classifier.holdout import evaluate
    from ssil.classifier.model_directory import ModelDirectory  # imports torch

    directory = ModelDirectory(model, trust or ())
    found = directory.load(version)
    known, result = found.classifier, evaluate(found.classifier)
    if html:
        from ssil.classifier.update_page import write_update_page
        from ssil.classifier.update_report import UpdateReport

        write_update_page(html, UpdateReport.of_version(model.resolve().name, found, result))
    rows = _rows(found, result)
    summary: dict[str, Any] = {
        "version": found.number,
        "versions": directory.numbers(),
        "settings": known.settings.model_dump(mode="json"),
        "bytes": directory.size(),
        "accuracy": result.accuracy(known.classes.names) if result else None,
    }
    if json:
        json_line(**summary, classes=rows)
        return
    screen, settings = console(), known.settings
    versions = f"version {found.number} of {', '.join(map(str, directory.numbers()))}"
    learner = plain(f"{settings.method} on {short_name(settings.backbone)} at {settings.image_size} pixels")
    size = f"{summary['bytes'] / 1e6:.1f} MB"
    screen.print(f"[bold]{plain(model)}[/], {versions}: {len(rows)} classes, {learner}, {size}")
    shown = table("class", "since update", "kept to learn", "kept to try", "recognised")
    for row in rows:
        counts = (str(row[key]) for key in ("arrived", "exemplars", "quiz"))
        shown.add_row(plain(row["class"]), *counts, percent(row["accuracy"], decimals=0))
    screen.print(shown)


def _rows(found: "ModelVersion", result: "HoldoutResult | None") -> list[dict[str, Any]]:
    """Return one row per class."""
    known = found.classifier
    return [
        {
            "class": name,
            "arrived": arrival,
            "exemplars": len(known.exemplars[label]),
            "quiz": len(known.holdout[label]),
            "accuracy": result.accuracy([name]) if result else None,
        }
        for label, (name, arrival) in enumerate(zip(known.classes.names, found.arrivals(), strict=True))
    ]
