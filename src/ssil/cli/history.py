"""`ssil history`: a model's versions."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.output import Json, console, json_line, table

app = App(
    name="history",
    help_epilogue="""Examples:
  ssil history birds
  ssil rollback birds 2""",
)


@app.default
def history(model: Annotated[Path, Parameter(help="the model's directory")], /, *, json: Json = False) -> None:
    """List a model's versions, what each has learnt, and what that did to the classes before."""
    from ssil.model.disk import ModelDirectory  # brings torch

    directory = ModelDirectory(model)
    current = directory.current()
    entries = {number: directory.entry(number) for number in directory.numbers()}
    if json:
        for number, entry in entries.items():
            json_line(version=number, current=number == current, **entry)
        return
    shown = table("version", "from", "when", "new classes", "pictures", "old before", "old after", "new after", words=4)
    for number, entry in entries.items():
        mark = f"{number} (current)" if number == current else str(number)
        marks = (entry[name] for name in ("old_before", "old_after", "new_after"))
        numbers = ("-" if value is None else f"{value:.1f} %" for value in marks)
        news = ", ".join(entry["new"][:5]) + (f" and {len(entry['new']) - 5} more" if len(entry["new"]) > 5 else "")
        shown.add_row(mark, str(entry["parent"] or "-"), entry["time"], news or "-", str(entry["pictures"]), *numbers)
    console().print(shown)
