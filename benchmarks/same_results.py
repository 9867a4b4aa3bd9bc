"""Whether two checkouts compute the same: a fixed list of cases in each, compared bit for bit.

git worktree add /tmp/old COMMIT
python benchmarks/same_results.py /tmp/old . --work /tmp/same [--cifar DIR] [--skip demo ...] [--only old]

Each case is run through the command line, `PYTHONPATH=CHECKOUT/src python -m ssil ...`, on one thread, in a folder of
its own, so that modules may move and be renamed in between. `--cifar` names the folder that holds `cifar-100-binary`.

Results are kept in WORK/old and WORK/new. A case whose commands and whose checkout's source are as they were when it
was run is not run again. `--only old` runs that side and compares nothing.

Every file that a case leaves is compared: JSON key by key (with the order of the keys and the type of each number),
tensors and all others by their bytes. `DROPPED` lists the only values that may differ; their keys must be there all the
same. `lock`, `checksums.json` and `messages.txt` (what is said to people) are not compared. The exit code is 1 if
anything differs.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

DROPPED: Final[dict[str, tuple[str, ...]]] = {
    "record.json": (
        "provenance.ssil",  # of the installed package, not of the checkout
        "provenance.commit",
        "provenance.started",
        "provenance.finished",
        "tasks[].seconds",
        "tasks[].seconds_by_phase",  # the names of the phases are compared
        "tasks[].images_per_second",
        "tasks[].peak_memory_mb",
        "summary.seconds",
        "summary.training_seconds",
    ),
    "log.jsonl": ("[].time",),
    "model.json": ("checksum", "history[].time", "history[].seconds", "history[].ssil"),  # a checksum of all the rest
    "run.jsonl": ("[].seconds", "[].seconds_by_phase", "[].images_per_second", "[].peak_memory_mb"),
    "learn.jsonl": ("[].time", "[].seconds", "[].ssil"),
}
"""By a file's name, values that are not compared. The last two files are what `run --json` and `learn --json` print."""

IGNORED: Final = {"lock", "messages.txt", "checksums.json"}
CONFIG: Final = "configs/cifar100-small.toml"
COMBINATIONS: Final = ("ft,il2m", "ft,il2m,scail")

Command = tuple[str, ...]


class Case(NamedTuple):
    """Commands to run one after the other in a folder, and what has to be in it before."""

    name: str
    commands: tuple[Command, ...]
    prepare: Callable[[Path, Path], None] | None = None
    """Called with the folder and the checkout."""

    @property
    def group(self) -> str:
        """What `--skip` calls it."""
        return self.name.partition("-")[0]


class CommandError(Exception):
    """A command that ended with an error."""


# Cases


def cases(methods: Sequence[str]) -> list[Case]:
    made = [Case(f"digits-{name}", (on_digits("--memory", "50", "--method", name),)) for name in methods]
    branch = on_digits("--memory-per-class", "5", "--selection", "herding", "--method", "ft,il2m", "--branch", "ssil")
    made += [Case("branch", (branch,))]
    made += [Case(f"cifar-{name}", (on_cifar(name),), copy_config) for name in ("ssil", "eeil", "bic")]
    made += [
        Case(
            "unfrozen",
            (
                words(f"learn model week-1 --memory 60 --epochs 4 --later-epochs 3 {SMALL}"),
                words("learn model week-2 --json"),
                words("predict model look --top 3 --json"),
            ),
            draw_pictures,
        ),
        Case(
            "frozen",
            (
                words(f"learn base before --grey --no-flip --epochs 4 {SMALL}"),
                words(
                    "learn model week-1 --method ssil --memory 60 --grey --no-flip --epochs 4 --later-epochs 3 "
                    f"--init base/versions/0001/weights.safetensors --freeze {SMALL}"
                ),
                words("learn model week-2 --json"),
                words("predict model look --top 3 --json"),
            ),
            draw_pictures,
        ),
    ]
    return [*made, Case("demo", (words("demo --out demo"),))]


METHODS: Final = Case("methods", (("methods", "--json"),))
SMALL: Final = "--backbone resnet8 --image-size 24 --seed 1 --json"


def words(text: str) -> Command:
    return tuple(text.split())


def on_digits(*others: str) -> Command:
    shared = "run --dataset digits --task-sizes 4,3,2,1 --epochs 2 --seed 1 --backbone resnet8 --threads 1 --json"
    return (*words(shared), *others, "--out", "run")


def on_cifar(method: str) -> Command:
    """Two tasks of ten classes; all else is as the file says."""
    shared = "--classes 20 --tasks 2 --train-per-class 100 --test-per-class 20 --memory 100 --seed 1 --threads 1 --json"
    return (*words(f"run {Path(CONFIG).name} {shared}"), "--method", method, "--out", "run")


def copy_config(folder: Path, checkout: Path) -> None:
    shutil.copy(checkout / CONFIG, folder)


def draw_pictures(folder: Path, _: Path) -> None:
    """Written digits as files: some before, two weeks' new classes with more of an old one, and some to name."""
    digits = load_digits()
    parts = {"before": range(5, 10), "week-1": range(3), "week-2": range(3, 5)}
    wanted = [(f"{part}/{label}", label, 0, 50) for part, labels in parts.items() for label in labels]
    wanted += [("week-2/0", 0, 50, 60), *(("look", label, 60, 66) for label in range(10))]
    for place, label, start, stop in wanted:
        (folder / place).mkdir(parents=True, exist_ok=True)
        for row in np.flatnonzero(digits.target == label)[start:stop]:
            pixels = np.kron(digits.images[row] * 255 / 16, np.ones((3, 3))).astype(np.uint8)
            kind = "jpg" if row % 2 else "png"
            Image.fromarray(pixels).save(folder / place / f"{row:04d}.{kind}")


# Running


class Side:
    """A checkout, and the folder with its results."""

    def __init__(self, label: str, checkout: Path, work: Path, cifar: Path | None) -> None:
        self.label, self.checkout, self.folder = label, checkout.resolve(), work.resolve() / label
        self.source = source_digest(self.checkout)
        places = {"SSIL_DATA": str(cifar.resolve())} if cifar else {}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SSIL_")} | {
            "PYTHONPATH": str(self.checkout / "src"),
            "PYTHONSAFEPATH": "1",  # a result's folder is no place to import from
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            **places,
        }
        asked = [sys.executable, "-c", "import ssil; print(ssil.__file__)"]
        found = subprocess.run(asked, env=self.environment, cwd="/", capture_output=True, text=True, check=True).stdout
        if not Path(found.strip()).is_relative_to(self.checkout / "src"):
            raise SystemExit(f"{label}: Python takes ssil from {found.strip()}, not from {self.checkout}/src")

    def results(self, case: Case) -> tuple[Path, float]:
        """Where a case's results are, and the seconds that they took; it is run if that was not done before."""
        folder, note = self.folder / case.name, self.folder / f"{case.name}.json"
        key = {"source": self.source, "commands": [list(command) for command in case.commands]}
        if note.exists():
            kept = json.loads(note.read_text())
            if key == {name: kept[name] for name in key}:
                return folder, kept["seconds"]
            note.unlink()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if case.prepare:
            case.prepare(folder, self.checkout)
        began = time.monotonic()
        with TemporaryDirectory() as cache:  # what an earlier version has made must not be found
            for number, command in enumerate(case.commands, 1):
                self._run(command, folder, f"{number}-{command[0]}.jsonl", cache)
        seconds = round(time.monotonic() - began, 1)
        if source_digest(self.checkout) != self.source:
            raise SystemExit(f"{self.label}: {self.checkout} has changed since the start; start again")
        note.write_text(json.dumps({**key, "seconds": seconds}))
        return folder, seconds

    def _run(self, command: Command, folder: Path, output: str, cache: str) -> None:
        called = [sys.executable, "-m", "ssil", *command]
        environment = self.environment | {"SSIL_CACHE": cache}
        done = subprocess.run(called, cwd=folder, env=environment, capture_output=True, text=True)
        with (folder / "messages.txt").open("a") as file:
            file.write(done.stderr)
            if "--json" not in command:
                file.write(done.stdout)
        if "--json" in command:
            (folder / output).write_text(done.stdout)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise CommandError(f"failed in {self.label}: ssil {command[0]} ended with {done.returncode}: {last}")


def source_digest(checkout: Path) -> str:
    """A checksum of all that decides a checkout's results."""
    paths = (path for path in (checkout / "src").rglob("*") if "__pycache__" not in path.parts and path.is_file())
    digest = hashlib.sha256()
    for path in (*sorted(paths), checkout / CONFIG):
        digest.update(f"{path.relative_to(checkout)}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


# Comparing


def difference(old: Path, new: Path) -> str:
    """The first difference between two folders of results; nothing if they are equal."""
    before, after = files(old), files(new)
    if not before:
        return f"no results in {old}"
    found = []
    for name in sorted({*before, *after}, key=importance):
        if name not in after or name not in before:
            found.append(f"{name} is only in {'old' if name in before else 'new'}")
        elif said := file_difference(before[name], after[name]):
            found.append(f"{name}: {said}")
    return f"{found[0]} ({len(found)} of {len({*before, *after})} files differ)" if found else ""


def files(folder: Path) -> dict[str, Path]:
    """By name; that of a checkpoint's tensors has their checksum in it, which is left out."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in IGNORED]
    return {
        re.sub(r"(checkpoint/\w+)-[0-9a-f]{32}", r"\1", path.relative_to(folder).as_posix()): path for path in paths
    }


def importance(name: str) -> tuple[bool, bool, str]:
    """Records first, then tensors: they tell most about a difference."""
    return not name.endswith("record.json"), not name.endswith(".safetensors"), name


def file_difference(old: Path, new: Path) -> str:
    if old.read_bytes() == new.read_bytes():
        return ""
    dropped = DROPPED.get(re.sub(r"^\d-", "", old.name), ())
    if old.suffix == ".safetensors":
        return next(tensor_differences(old, new), "the same tensors, in another order or with another header")
    if old.suffix == ".toml":
        return next(differences(tomllib.loads(old.read_text()), tomllib.loads(new.read_text())), "")
    if old.suffix == ".json":
        return next(differences(json.loads(old.read_text()), json.loads(new.read_text()), dropped), "")
    if old.suffix == ".jsonl":
        return next(differences(lines(old), lines(new), dropped), "")
    return "other bytes"


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def differences(old: Any, new: Any, dropped: Sequence[str] = (), place: str = "") -> Iterator[str]:
    """Where two JSON values differ, and how."""
    if isinstance(old, dict) and isinstance(new, dict):
        if list(old) != list(new):
            missing, more = [key for key in old if key not in new], [key for key in new if key not in old]
            yield f"keys of {place or 'all'}: missing {missing}, new {more}" if missing or more else f"order of {place}"
        for key in (key for key in old if key in new):
            yield from differences(old[key], new[key], dropped, f"{place}.{key}".removeprefix("."))
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place} has {len(old)} and {len(new)} entries"
        for index, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from differences(before, after, dropped, f"{place}[{index}]")
    elif repr(old) != repr(new) and not is_dropped(place, dropped):  # tells 1 from 1.0, and takes NaN for NaN
        yield f"{place} is {old!r} and {new!r}"


def is_dropped(place: str, dropped: Sequence[str]) -> bool:
    general = re.sub(r"\[\d+\]", "[]", place)
    return any(general == name or general.startswith(f"{name}.") for name in dropped)


def tensor_differences(old: Path, new: Path) -> Iterator[str]:
    """Tensors that differ in name, type, shape or any bit."""
    before, after = tensors(old), tensors(new)
    for name in sorted({*before, *after}):
        if name not in before or name not in after:
            yield f"tensor {name} is only in {'old' if name in before else 'new'}"
            continue
        (kind, was), (other_kind, now) = before[name], after[name]
        if kind != other_kind:
            yield f"tensor {name} is {kind} and {other_kind}"
        elif was != now:
            yield f"tensor {name} has other values"


def tensors(path: Path) -> dict[str, tuple[str, bytes]]:
    """The types and bytes in a safetensors file: the length of the header, the header as JSON, the values."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {
        name: (f"{part['dtype']} {part['shape']}", data[end + part["data_offsets"][0] : end + part["data_offsets"][1]])
        for name, part in header.items()
    }


# The command


def method_names(side: Side) -> list[str]:
    folder, _ = side.results(METHODS)
    return [method["name"] for method in lines(folder / "1-methods.jsonl")]


def outcome(case: Case, sides: Sequence[Side]) -> tuple[str, list[float]]:
    """What is to be said of a case, and the seconds of each side."""
    try:
        found = [side.results(case) for side in sides]
    except CommandError as error:
        return str(error), []
    seconds = [took for _, took in found]
    if len(found) < 2:
        return "kept", seconds
    said = difference(found[0][0], found[1][0])
    return (f"differs: {said}" if said else f"equal ({len(files(found[0][0]))} files)"), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="a checkout")
    parser.add_argument("new", type=Path, help="another")
    parser.add_argument("--work", type=Path, required=True, help="where results are kept")
    parser.add_argument("--cifar", type=Path, help="the folder that holds cifar-100-binary")
    parser.add_argument("--skip", nargs="+", default=[], help="cases, or groups: digits, cifar, demo ...")
    parser.add_argument("--only", choices=["old", "new"], help="run this side, compare nothing")
    args = parser.parse_args()
    old = Side("old", args.old, args.work, args.cifar)
    new = Side("new", args.new, args.work, args.cifar)
    sides = [side for side in (old, new) if args.only in {None, side.label}]
    listed = [METHODS, *cases([*method_names(old), *COMBINATIONS])]
    if unknown := {*args.skip} - {name for case in listed for name in (case.name, case.group)}:
        parser.error(f"--skip: no case is called {', '.join(sorted(unknown))}")
    counts = {"equal": 0, "kept": 0, "skipped": 0, "different": 0}
    for case in listed:
        seconds: list[float] = []
        if {case.name, case.group} & {*args.skip}:
            said = "skipped"
        elif case.group == "cifar" and not args.cifar:
            said = "skipped: needs --cifar DIR"
        else:
            said, seconds = outcome(case, sides)
        print(f"{case.name:22}{''.join(f'{took:7.1f} s' for took in seconds):20}{said}", flush=True)
        counts[next((name for name in counts if said.startswith(name)), "different")] += 1
    print(", ".join(f"{number} {name}" for name, number in counts.items() if number))
    sys.exit(1 if counts["different"] else 0)


if __name__ == "__main__":
    main()
