"""`ssil data check`: whether every image can be used."""

from pathlib import Path

from cyclopts import App

from ssil.cli.data.common import DataRoot, Source, Threads, find
from ssil.cli.data.counting import counting
from ssil.cli.output import Json, json_line
from ssil.data import store
from ssil.data.listing import Remark
from ssil.data.survey import Told, survey
from ssil.errors import UserError

app = App(
    name="check",
    help_epilogue="""Every image is decoded, and those of a store are compared with their checksums.
What is wrong is printed, a line each; the exit code is 2 if there is anything.

Examples:
  ssil data check my_photos
  ssil data check my_store""",
)


@app.default
def check(source: Source, /, *, data_root: DataRoot = None, threads: Threads = None, json: Json = False) -> None:
    """Read every image, and say what is wrong."""
    with counting("checking", json) as count:
        images, remarks = _looked(source, data_root, threads, count)
    faults = sum(remark.left_out for remark in remarks)
    for remark in remarks:
        if json:
            json_line(**remark._asdict())
        else:
            print(f"{remark.path}: {remark.reason}")
    if json:
        json_line(images=images, faults=faults)
    elif not faults:
        print(f"{images:,} images, all good")
    if faults:
        raise UserError(f"data: {source} has {faults:,} fault{'s' * (faults > 1)} in {images:,} images; see above")


def _looked(source: str, root: Path | None, threads: int | None, told: Told) -> tuple[int, list[Remark]]:
    """How many images there are, and what is to be said of them."""
    listing = find(source, root)
    if isinstance(listing.source, store.Packed):
        return len(listing), store.check(store.open_store(listing.source.path), told, threads)
    return len(listing), [*listing.remarks, *survey(listing.source, told, threads=threads).remarks]
