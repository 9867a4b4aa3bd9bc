"""`ssil data prepare`: pack the images of a source into a store."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.data_options import (
    Choice,
    SourceName,
    Threads,
    chosen_images,
    format_bytes,
    print_remarks,
)
from ssil.cli.progress import counting
from ssil.cli.terminal import Json, console, json_line, plain
from ssil.data.assemble import class_remarks
from ssil.data.store import writer
from ssil.data.store.format import REFUSED, STORE
from ssil.data.store.reader import Store

app = App(
    name="prepare",
    help_epilogue="""A command that was stopped, by Ctrl-C or otherwise, continues when it is run
again. Files that can't be read are refused, each with a reason, in
STORE/refused.csv. If a disk was the cause, repair it, remove STORE/store.json,
and run the same command again.

Examples:
  ssil data prepare my_photos --out my_store
  ssil data prepare imagenet --data-root /data --short-side 256 --out in256
  ssil data prepare split.csv --strict --out my_store""",
)


@app.default
def prepare(
    source: SourceName,
    /,
    *,
    out: Annotated[Path, Parameter(help="the store's directory: new, or begun before")],
    choice: Choice | None = None,
    short_side: Annotated[
        int | None, Parameter(help="shrink larger images to this short side; others stay as they are")
    ] = None,
    quality: Annotated[int, Parameter(help="JPEG quality of shrunk images; 100 is PNG, without loss")] = 90,
    strict: Annotated[
        bool, Parameter(negative="", show_default=False, help="stop at any remark, as on a file that can't be read")
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Pack the images of a source into a store."""
    with counting("reading", json) as progress:
        index = chosen_images(source, choice or Choice(), progress, threads)
    was_complete = (out / STORE).exists()
    try:
        with counting("preparing", json) as progress:
            store = writer.prepare(index, out, short_side, quality, progress, threads, strict)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(out)) from None
    if json:
        json_line(store=out, **store.facts.model_dump(mode="json", exclude={"lengths", "index"}))
    else:
        _summary(store, was_complete)


def _kept(out: Path) -> str:
    done = sum(1 for _ in out.glob("data-*.arrow"))
    kept = f"what is finished is kept in {out} (shards: {done:,})" if done else "no shard had been finished yet"
    return f"{kept}; go on with: {shlex.join(['ssil', *sys.argv[1:]])}"


def _summary(store: Store, was_complete: bool) -> None:
    screen, facts = console(), store.facts
    if was_complete:
        screen.print(f"{plain(store.path)} was complete already; nothing was left to do")
    share = f"{100 * facts.bytes_after / max(facts.bytes_before, 1):.0f} %"
    screen.print(f"[bold]{facts.images:,} images[/] of {len(facts.classes):,} classes in {plain(store.path)}")
    screen.print(f"{format_bytes(facts.bytes_before)} before, {format_bytes(facts.bytes_after)} now ({share})")
    remarks = (*store.remarks(), *class_remarks(store.image_index(), store.source.validation()))
    for title, which in (("left out", True), ("worth a look", False)):
        if some := [remark for remark in remarks if remark.left_out is which]:
            screen.print(f"{title}: {len(some):,}")
            print_remarks(screen, some, f": see {store.path / REFUSED}")
