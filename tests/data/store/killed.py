"""Stores whose making is killed, and goes on: each time in a process of its own, forked from this one.

    PYTHONPATH=tests/support python tests/data/store/killed.py PHOTOS OUT < {"name": [["write", 3]]}

makes stores of PHOTOS in OUT, and prints for each name how many of the kills took place and what differs in the end
from a store whose making nobody killed.
"""

import json
import sys
from pathlib import Path
from typing import Any

from kill_points import Fuse, forked, kill, killed
from ssil.data.sources.folder import folder
from ssil.data.store import format
from ssil.data.store.writer import prepare


def make(photos: Path, out: Path, fuse: Fuse | None = None) -> None:
    def image(done: int, total: int) -> None:
        if fuse:
            fuse.tick("image")

    prepare(folder(photos), out, short_side=16, threads=2, on_progress=image)


def differences(one: Path, other: Path) -> list[str]:
    """The files that two directories don't share, byte for byte."""
    these, those = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in (one, other))
    return [name for name in sorted(these | those) if these.get(name) != those.get(name)]


def outcome(photos: Path, out: Path, whole: Path, kills: list[tuple[str, float]]) -> dict[str, Any]:
    """One case: the kills, and the rest of the work."""
    try:
        count = sum(kill(lambda fuse: make(photos, out, fuse), event, when) for event, when in kills)
        killed(forked(lambda: make(photos, out)))
    except RuntimeError as error:
        return {"error": repr(error)}
    return {"kills": count, "differences": differences(out, whole)}


def main(photos: Path, out: Path) -> None:
    format.PER_SHARD, format.PER_BATCH = 7, 3
    whole = out / "whole"
    killed(forked(lambda: make(photos, whole)))
    cases = enumerate(json.load(sys.stdin).items())
    json.dump({name: outcome(photos, out / f"case-{n}", whole, kills) for n, (name, kills) in cases}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
