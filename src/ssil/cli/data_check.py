"""`ssil data check`: whether every image can be used."""

from cyclopts import App

from ssil.cli.data_options import Choice, Name, Threads, known, packed, safe
from ssil.cli.progress import counting
from ssil.cli.terminal import Json, json_line
from ssil.core.errors import UserError
from ssil.data.assemble import on_classes
from ssil.data.file_validation import ProgressCallback
from ssil.data.image_index import Remark
from ssil.data.load import find_validated_index
from ssil.data.store import reader, verification

app = App(
    name="check",
    help_epilogue="""Every image is decoded anew, and those of a store are compared with their checksums.
What is odd is printed, a line each; the exit code is 2 if anything would be left out.

Examples:
  ssil data check my_photos
  ssil data check my_store""",
)


@app.default
def check(source: Name, /, *, choice: Choice | None = None, threads: Threads = None, json: Json = False) -> None:
    """Read every image, and say what is wrong."""
    with counting("checking", json) as count:
        images, remarks = _looked(source, choice or Choice(), threads, count)
    faults = sum(remark.left_out for remark in remarks)
    for remark in remarks:
        if json:
            json_line(**remark._asdict())
        else:
            print(f"{safe(remark.path)}: {safe(remark.reason)}")
    if json:
        json_line(images=images, faults=faults)
    elif not faults:
        print(f"{images:,} images, all good" + (f"; {len(remarks):,} remark(s), see above" if remarks else ""))
    if faults:
        raise UserError(f"data: {source} has {faults:,} fault{'s' * (faults > 1)} in {images:,} images; see above")


def _looked(
    source: str, choice: Choice, threads: int | None, on_progress: ProgressCallback
) -> tuple[int, list[Remark]]:
    """How many images there are, and what is to be said of them."""
    listing, found = known(source, find_validated_index(choice.settings(source), threads, on_progress, fresh=True))
    if kept := packed(listing.source):
        images, rows = kept
        remarks = verification.check(reader.open_store(images.path), on_progress, threads, rows)
    else:
        remarks = [*listing.remarks, *found.remarks(listing.source.names)]
    return len(listing), [*remarks, *on_classes(listing, found)]
