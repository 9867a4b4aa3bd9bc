"""`ssil inspect`: a model's classes, the images it keeps, and its accuracy on images that it has not learnt."""

from collections.abc import Iterator, Mapping, Sequence
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
    plain,
    table,
)

if TYPE_CHECKING:
    from ssil.classifier.holdout import HoldoutResult
    from ssil.classifier.model_directory import ModelVersion
    from ssil.classifier.prediction import Classifier

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
    screen = console()
    versions = f"version {found.number} of {', '.join(map(str, directory.numbers()))}"
    screen.print(f"[bold]{plain(model)}[/], {versions}: {len(rows)} classes")
    screen.print(_class_table(rows))
    for line in _sentences(known, rows, summary["bytes"]):
        screen.print(line, markup=False)


def _class_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a table of the classes; the photos of each, or those that are kept where no others are known."""
    counted = all(row["images"] is not None for row in rows)
    kept = {"photos": "images"} if counted else {"kept to learn": "exemplars", "kept to try": "quiz"}
    shown = table("class", "since update", *kept, "recognised")
    for row in rows:
        counts = (str(row[key]) for key in ("arrived", *kept.values()))
        shown.add_row(plain(row["class"]), *counts, f"{row['right']} of {row['tried']}" if row["tried"] else "-")
    return shown


def _sentences(known: "Classifier", rows: Sequence[Mapping[str, Any]], size: int) -> Iterator[str]:
    """Yield what the table means, and what the model is."""
    tried = sum(row["tried"] for row in rows)
    yield f"recognised: of the {tried:,} photos that were tried, each left out of learning when tried"
    if known.counted:
        kept = sum(map(len, known.holdout))
        yield f"photos: those that were learnt; the model keeps small copies of {kept:,} of them, to try later updates"
    yield f"technical: {known.settings.described()}; {size / 1e6:.1f} MB on disk"


def _rows(found: "ModelVersion", result: "HoldoutResult | None") -> list[dict[str, Any]]:
    """Return one row per class."""
    known, sizes = found.classifier, found.classifier.image_counts()
    return [
        {
            "class": name,
            "arrived": arrival,
            "exemplars": len(known.exemplars[label]),
            "quiz": len(known.holdout[label]),
            "images": sizes.get(name),
            "accuracy": result.accuracy([name]) if result else None,
            "right": result.result([name]).correct if result else 0,
            "tried": result.result([name]).total if result else 0,
        }
        for label, (name, arrival) in enumerate(zip(known.classes.names, found.arrivals(), strict=True))
    ]
