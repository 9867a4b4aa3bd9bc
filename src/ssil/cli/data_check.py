"""`ssil data check`: find images that can't be used."""

from cyclopts import App

from ssil.cli.data_options import Choice, SourceName, Threads, require, stored_images
from ssil.cli.progress import counting
from ssil.cli.terminal import Json, json_line, printable
from ssil.core.errors import UserError
from ssil.data.assemble import class_remarks
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Remark
from ssil.data.load import find_validated_index
from ssil.data.store.reader import check_store, open_store

app = App(
    name="check",
    help_epilogue="""Every image is decoded anew; those of a store are compared with their checksums.
What is odd is printed, one line each. The exit code is 2 if anything would be
left out.

Examples:
  ssil data check my_photos
  ssil data check my_store""",
)


@app.default
def check(source: SourceName, /, *, choice: Choice | None = None, threads: Threads = None, json: Json = False) -> None:
    """Read every image, and say what is wrong."""
    with counting("checking", json) as progress:
        images, remarks = _check(source, choice or Choice(), threads, progress)
    faults = sum(remark.left_out for remark in remarks)
    for remark in remarks:
        if json:
            json_line(**remark._asdict())
        else:
            print(f"{printable(remark.path)}: {printable(remark.reason)}")
    if json:
        json_line(images=images, faults=faults)
    elif not faults:
        print(f"{images:,} images, all good" + (f"; {len(remarks):,} remark(s), see above" if remarks else ""))
    if faults:
        raise UserError(f"data: {source} has {faults:,} fault{'s' * (faults > 1)} in {images:,} images; see above")


def _check(source: str, choice: Choice, threads: int | None, on_progress: ProgressCallback) -> tuple[int, list[Remark]]:
    """Return the number of images, and the remarks on them."""
    found = find_validated_index(choice.settings(source), threads, on_progress, fresh=True)
    index, validation = require(source, found)
    if stored := stored_images(index.source):
        images, rows = stored
        remarks = check_store(open_store(images.path), on_progress, threads, rows)
    else:
        remarks = [*index.remarks, *validation.remarks(index.source.names)]
    return len(index), [*remarks, *class_remarks(index, validation)]
