"""`ssil verify`: whether every file of a model, a run, a grid of runs or a store is as it was written."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter

from ssil.cli.progress import counting
from ssil.cli.terminal import Json, Trust, json_line, printable
from ssil.core.defects import Defect, OnFile, refuse_busy
from ssil.core.errors import RefusedError, UserError

app = App(
    name="verify",
    help_epilogue="""DIR is a model, the --out directory of a run, a folder of such (a grid), or a
store. Every file and image is read and compared with its checksum and with the
files that refer to it. Each defect is one line: the file, what is wrong, what
that means.

--repair removes what killed processes have left and images that nothing refers
to, goes back to the newest whole version of a model, and rebuilds what other
files determine. What is damaged is moved to DIR.damaged, never deleted.

The exit code is 0 if all is sound (or was repaired), 3 if there are defects, 2
if DIR is none of these, or another process is at work in it.

Examples:
  ssil verify birds
  ssil verify runs/
  ssil verify my_store --repair""",
)


class Subject(NamedTuple):
    """A directory of ours: its kind, how it is verified, and its lock, which a repair holds."""

    kind: str
    folder: Path
    verify: Callable[[OnFile], list[Defect]]
    lock: Callable[[], AbstractContextManager[None]]


@app.default
def verify(
    directory: Annotated[Path, Parameter(metavar="DIR", help="a model, a run, a folder of runs, or a store")],
    /,
    *,
    repair: Annotated[bool, Parameter(negative="", show_default=False, help="mend what can be mended")] = False,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Compare every file of a model, a run or a store with its checksum."""
    subjects = list(find_subjects(directory, trust or ()))
    if not subjects:
        raise UserError(f"directory: {directory} is no model, run or store, and holds none; give one")
    left = 0
    for subject in subjects:
        left += len(_verify_one(subject, repair, json))
    if json:
        json_line(directories=len(subjects), defects=left)
    elif not left:
        print(f"{_listed(subjects)} in {printable(directory)}: sound")
    if left:
        hint = "" if repair else "; --repair mends what can be mended"
        raise RefusedError(f"{left:,} defect{'s' * (left > 1)} in {directory}, see above{hint}")


def find_subjects(directory: Path, trust: Sequence[str]) -> Iterator[Subject]:
    """Yield the model, run or store in a directory, or else those in the folders below it."""
    if found := _subject(directory, trust):
        yield found
    elif directory.is_dir():
        for folder in sorted(path for path in directory.iterdir() if path.is_dir() and not path.is_symlink()):
            yield from find_subjects(folder, trust)


def _subject(folder: Path, trust: Sequence[str]) -> Subject | None:
    from ssil.benchmark.run_directory import RunDirectory  # imports torch
    from ssil.benchmark.run_verification import is_run, verify_run
    from ssil.classifier.model_verification import is_model, verify_model
    from ssil.classifier.versions import VersionedDirectory
    from ssil.data.store.format import is_store, locked
    from ssil.data.store.verification import verify_store

    if is_model(folder):
        return Subject("model", folder, lambda on: verify_model(folder, on, trust), VersionedDirectory(folder).locked)
    if is_store(folder):
        return Subject("store", folder, lambda on: verify_store(folder, on), lambda: locked(folder))
    if is_run(folder):
        return Subject("run", folder, lambda on: verify_run(folder, on), RunDirectory(folder, "1").locked)
    return None


def _verify_one(subject: Subject, repair: bool, json: bool) -> list[Defect]:
    """Verify a directory, print its defects, repair them if asked to; return those that are left."""
    refuse_busy(subject.folder)
    with counting(f"verifying {subject.folder.name}", json) as on_file:
        found = subject.verify(on_file)
    if not (repair and found):
        for defect in found:
            _print(defect, None, json)
        return found
    with subject.lock():
        for defect in found:
            _print(defect, defect.repair() if defect.repair else "can't be repaired here", json)
    return subject.verify(lambda *_: None)


def _print(defect: Defect, done: str | None, json: bool) -> None:
    path, problem, meaning = str(defect.path), defect.problem, defect.meaning
    if json:
        repairable = defect.repair is not None
        json_line(
            path=path, problem=problem, meaning=meaning, repairable=repairable, **({"done": done} if done else {})
        )
    else:
        print(printable(f"{path}: {problem}; {meaning}" + (f" [{done}]" if done else "")))


def _listed(subjects: Sequence[Subject]) -> str:
    kinds = [subject.kind for subject in subjects]
    return ", ".join(f"{kinds.count(kind)} {kind}{'s' * (kinds.count(kind) > 1)}" for kind in dict.fromkeys(kinds))
