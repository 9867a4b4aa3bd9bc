"""`ssil data export`: write any data set as folders of PNG files."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.data_options import DataRoot
from ssil.cli.progress import counting
from ssil.cli.terminal import printable
from ssil.data.data_settings import DataSettings
from ssil.data.load import load
from ssil.data.png_export import export_png

app = App(
    name="export",
    help_epilogue="""Images are written as a network would see them in testing.

Examples:
  ssil data export digits --out digits
  ssil data export cifar100 --data-root /data --out cifar100""",
)


@app.default
def export(
    name: Annotated[str, Parameter(help="a name (see `ssil datasets`), or the path of a set")],
    /,
    *,
    out: Annotated[Path, Parameter(help="a new directory; it gets train/CLASS/000001.png and so on")],
    data_root: DataRoot = None,
) -> None:
    """Write any data set as folders of PNG files."""
    with counting("reading") as progress:
        dataset = load(DataSettings(dataset=name, data_root=data_root), on_progress=progress)
    with counting("writing") as progress:
        export_png(dataset, out, progress)
    print(f"{len(dataset.train):,} training and {len(dataset.test):,} test images in {printable(out)}")
