"""`ssil datasets`: list the data sets that can be loaded."""

from cyclopts import App
from rich.markup import escape

from ssil.cli.terminal import Json, console, json_line, table
from ssil.data import load

app = App(
    name="datasets",
    help_epilogue="""Examples:
  ssil datasets
  ssil run --dataset my_photos --tasks 4    (a folder with one folder per class)""",
)


@app.default
def datasets(*, json: Json = False) -> None:
    """List the data sets."""
    known = load.describe()
    if json:
        for info in known:
            json_line(**info._asdict())
        return
    rows = table("name", "what it is", words=2)
    for info in known:
        rows.add_row(info.name, escape(f"{info.description}; classes: {info.classes}; size: {info.size}"))
    console().print(rows)
