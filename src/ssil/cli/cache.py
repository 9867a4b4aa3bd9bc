"""`ssil cache`: what the cache holds, and removing what nobody needs."""

from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Json, console, json_line, plain, table
from ssil.core.cache_folder import cache_dir
from ssil.core.errors import UserError, did_you_mean
from ssil.data.cache_files import KINDS, CacheFile, cache_files, clearable, remove

app = App(
    name="cache",
    help_epilogue="""The cache is $SSIL_CACHE, or else the system's folder for caches.

Examples:
  ssil cache
  ssil cache clear
  ssil cache clear features --older-than 7""",
)
MB = 1e6


@app.default
def show(*, json: Json = False) -> None:
    """Show what is in the cache, with sizes and ages."""
    files = list(cache_files())
    rows = table("kind", "what it is", "files", "MB", "oldest, days", "newest", words=2)
    for kind, meaning in KINDS.items():
        found = [file for file in files if file.kind == kind]
        if json:
            ages = {"oldest_days": max(_ages(found)), "newest_days": min(_ages(found))} if found else {}
            json_line(kind=kind, files=len(found), bytes=_size(found), **ages)
        elif found:
            ages_shown = f"{max(_ages(found)):.0f}", f"{min(_ages(found)):.0f}"
            rows.add_row(kind, meaning, f"{len(found):,}", f"{_size(found) / MB:,.1f}", *ages_shown)
    if not json:
        screen = console()
        screen.print(f"{plain(cache_dir())}: {len(files):,} files, {_size(files) / MB:,.1f} MB")
        screen.print(rows if files else "nothing is cached yet")


@app.command(
    name="clear",
    help_epilogue="""Without KIND: unfinished files, and validation results older than 30 days. KIND
is unfinished, validation, arrays, features or weights.
Processes that use the cache go on; what they write at this moment stays.

Examples:
  ssil cache clear
  ssil cache clear validation --older-than 90""",
)
def clear(
    kind: Annotated[str | None, Parameter(help="only files of this kind, see `ssil cache`")] = None,
    /,
    *,
    older_than: Annotated[
        float | None, Parameter(metavar="DAYS", help="only files that were written more than DAYS days ago")
    ] = None,
    json: Json = False,
) -> None:
    """Remove what nobody needs, or a kind of files."""
    known = [name for name in KINDS if name != "other"]
    if kind is not None and kind not in known:
        hint = did_you_mean(kind, known, f"give one of {', '.join(known)}")
        raise UserError(f"kind: {kind!r} can't be cleared; {hint}")
    if older_than is not None and not 0 <= older_than < float("inf"):
        raise UserError(f"older_than: {older_than} is no number of days; give 0 or more")
    removed = [file for file in clearable(kind, older_than) if remove(file)]
    if json:
        json_line(removed=len(removed), bytes=_size(removed))
    else:
        print(f"removed {len(removed):,} files, {_size(removed) / MB:,.1f} MB")


def _ages(files: list[CacheFile]) -> list[float]:
    return [file.days for file in files]


def _size(files: list[CacheFile]) -> int:
    return sum(file.size for file in files)
