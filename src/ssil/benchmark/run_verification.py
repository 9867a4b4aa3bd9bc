"""Verify a run directory: records, checksums, predictions against the record, checkpoint, log."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ssil.benchmark.checkpoint import TENSOR_FILE, Checkpoints
from ssil.benchmark.checksums import ARRAYS, CHECKSUMS, read_checksums
from ssil.benchmark.record import Record, read_predictions, read_record
from ssil.benchmark.run_directory import is_record
from ssil.core.classes import ClassTable
from ssil.core.defects import Defect, OnFile, left_over, move_aside, told
from ssil.core.errors import UserError
from ssil.core.files import checksum, read_file, write_atomic, write_json
from ssil.learning.metrics import confusion

AGAIN = "restore it from a copy, or run again in a new folder"


def is_run(folder: Path) -> bool:
    """Return whether this is the directory of a run that has begun."""
    return is_record(folder / "record.json") or (folder / "checkpoint" / "state.json").is_file()


def verify_run(folder: Path, on_file: OnFile) -> list[Defect]:
    """Return all defects of a run directory.

    Args:
        folder: A directory of which `is_run` is true.
        on_file: Called after each file of predictions.
    """
    scorers = sorted(path.parent for path in folder.glob("*/record.json"))
    found: list[Defect] = []
    for one in (folder, *scorers):
        found += _scorer_defects(one, on_file)
    found += _checkpoint_defects(folder)
    found += _log_defects(folder)
    parts = [path for one in (folder, *scorers) for path in (*one.glob(".*.part"), *(one / ARRAYS).glob(".*.part"))]
    return [*found, *left_over(parts)]


def _scorer_defects(folder: Path, on_file: OnFile) -> list[Defect]:
    """Return the defects of a record, its checksums and its predictions."""
    found = _checksum_defects(folder)
    if found:
        return found
    try:
        record = read_record(folder)
    except UserError as error:
        path = folder / "record.json"
        return [Defect(path, told(error, path), f"the run can't be shown or continued; {AGAIN}")]
    for task in record.tasks:
        found += _prediction_defects(folder, record, task.task)
        on_file(task.task, len(record.tasks))
    return found


def _checksum_defects(folder: Path) -> list[Defect]:
    """Return a defect if checksums.json can't be read; it is made anew if record and predictions agree without it."""
    path = folder / CHECKSUMS
    try:
        read_checksums(path)
    except UserError as error:
        meaning = "whether the record and the predictions are unchanged can't be told"
        return [Defect(path, told(error, path), meaning, partial(_new_checksums, folder))]
    return []


def _new_checksums(folder: Path) -> str:
    """Make checksums.json anew; put the old one back if the record and the predictions contradict each other."""
    path, old = folder / CHECKSUMS, read_file(folder / CHECKSUMS)
    done = move_aside(folder, path)
    if _scorer_defects(folder, lambda *_: None):
        write_atomic(path, old)
        return f"not made anew: the record and the predictions contradict each other; {AGAIN}"
    files = [folder / "record.json", *sorted((folder / ARRAYS).glob("task-*.safetensors"))]
    write_json(path, {str(file.relative_to(folder)): [checksum(read_file(file))] for file in files})
    return f"made anew; the old one {done}"


def _prediction_defects(folder: Path, record: Record, task: int) -> list[Defect]:
    """Return a defect if the predictions after a task are missing, damaged, or not those of the record."""
    path = folder / ARRAYS / f"task-{task:02d}.safetensors"
    classes = ClassTable(tuple(map(str, range(sum(record.task_sizes[:task])))), _bounds(record, task))
    meaning = f"`ssil show --metrics`, `diff` and going on with the run need it; {AGAIN}"
    try:
        same = confusion(read_predictions(folder, task), classes) == record.tasks[task - 1].confusion
    except UserError as error:
        return [Defect(path, told(error, path), meaning)]
    except (RuntimeError, IndexError, ValueError) as error:
        return [Defect(path, f"other predictions than those of this run: {error}", meaning)]
    return [] if same else [Defect(path, "other predictions than the record's confusion matrix", meaning)]


def _bounds(record: Record, task: int) -> tuple[int, ...]:
    return tuple(sum(record.task_sizes[:number]) for number in range(task + 1))


def _checkpoint_defects(folder: Path) -> Iterator[Defect]:
    """Yield the defects of the checkpoint: a finished run can do without it, another one can't go on."""
    checkpoints, path = Checkpoints(folder / "checkpoint"), folder / "checkpoint" / "state.json"
    record = _record_or_none(folder)
    if not checkpoints.exists:
        if record and record.tasks and not record.summary:
            yield Defect(path, "missing", f"the run can't go on, it would begin again; {AGAIN}")
        return
    try:
        meta, _ = checkpoints.load()
        if record and meta["tasks_done"] > len(record.tasks):
            raise UserError(f"{meta['tasks_done']} finished tasks, of which the record has {len(record.tasks)}")
    except (UserError, KeyError, TypeError) as error:
        finished = record is not None and record.summary is not None
        meaning = "the results are whole, the model is lost" if finished else f"the run can't go on; {AGAIN}"
        yield Defect(
            path, told(error, path.parent), meaning, partial(move_aside, folder, path.parent) if finished else None
        )
        return
    named = {*json.loads(read_file(path))["files"].values()}
    others = [file for file in path.parent.iterdir() if TENSOR_FILE.fullmatch(file.name) and file.name not in named]
    yield from left_over([*others, *path.parent.glob(".state.json.part")])


def _record_or_none(folder: Path) -> Record | None:
    try:
        return read_record(folder)
    except UserError:
        return None


def _log_defects(folder: Path) -> Iterator[Defect]:
    """Yield a defect if a line of the log is no JSON: a kill can leave a part of a line."""
    path = folder / "log.jsonl"
    if not path.is_file():
        return
    lines = read_file(path).splitlines(keepends=True)
    good = [line for line in lines if _is_json(line)]
    if len(good) < len(lines):
        number = f"{len(lines) - len(good)} of {len(lines)} lines are not JSON"
        yield Defect(path, number, "no result depends on it", _shortening(folder, path, b"".join(good)))


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _shortening(folder: Path, path: Path, content: bytes) -> Callable[[], str]:
    def repair() -> str:
        done = move_aside(folder, path)
        write_atomic(path, content)
        return f"written again without these lines; the old one {done}"

    return repair
