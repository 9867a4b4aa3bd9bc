"""Directories that a stranger, or an accident, has prepared: nothing outside is touched, nothing of others is lost.

Links, pipes and devices in place of files, folders that only look like ours, JSON that says nonsense, and names that a
terminal or a spreadsheet would take for a command.
"""

import csv
import io
import json
import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attacked import LEARN, RUN, SHORT, TRAINING, TRUST, images, seal
from command_lines import Answer, CommandLines, contents

pytestmark = pytest.mark.slow

HANGS = 15.0
"""Seconds after which a command hangs that only has to refuse a file."""


class Victims:
    """Copies of the directories to attack, and the commands that use them."""

    def __init__(self, ssil: CommandLines, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        self.ssil, self.tmp, self.request = ssil, tmp_path, request

    def copy(self, fixture: str) -> Path:
        """Return a copy of a directory, by the name of its fixture."""
        return Path(shutil.copytree(self.request.getfixturevalue(fixture), self.tmp / fixture))

    def begun_store(self) -> Path:
        """Return a store that was stopped before its last file was written."""
        folder = self.copy("jpeg_store")
        for name in ("store.json", "index.arrow", "refused.csv", "data-00000.arrow"):
            (folder / name).unlink()
        return folder

    def run(self, out: Path, **more: Any) -> Answer:
        """Resume, or start, the run."""
        return self.ssil(*self.request.getfixturevalue("run_command"), "--out", out, seconds=HANGS, **more)

    def prepare(self, out: Path) -> Answer:
        """Prepare the store, or go on with it."""
        source = self.request.getfixturevalue("jpeg_store").parent / "images"
        return self.ssil("data", "prepare", source, "--out", out, seconds=HANGS)

    def learn(self, folder: Path, *more: object) -> Answer:
        """Update a model."""
        photos = self.request.getfixturevalue("photos")
        return self.ssil("learn", folder, photos / "third", *TRUST, *SHORT, *more, seconds=HANGS)

    def add_up(self, folder: Path) -> Answer:
        """Update a model that trains nothing."""
        photos = self.request.getfixturevalue("photos")
        return self.ssil("learn", folder, photos / "third", *TRUST, seconds=HANGS)


@pytest.fixture
def victims(ssil: CommandLines, tmp_path: Path, request: pytest.FixtureRequest) -> Victims:
    return Victims(ssil, tmp_path, request)


def assert_refused(answer: Answer, *names: str) -> None:
    """That it ended in one line that has one of the names."""
    assert not answer.hangs, "it hangs"
    assert not answer.crashed, answer.err[-2000:]
    assert answer.refused, (answer.code, answer.out[-500:], answer.err[-500:])
    assert not names or any(name in answer.last for name in names), answer.last


def assert_civil(answer: Answer) -> None:
    """That it ended well, or in one line."""
    assert not answer.hangs, "it hangs"
    assert not answer.crashed, answer.err[-2000:]
    assert answer.code == 0 or answer.refused, (answer.code, answer.err[-500:])


# Links


LINKS = {
    "run": [
        "lock",
        ".record.json.part",
        "log.jsonl",
        "remarks.csv",
        "checkpoint/.state.json.part",
        "arrays/.task-02.safetensors.part",
        "record.json",
        "checksums.json",
        ".checksums.json.part",
        "checkpoint/state.json",
    ],
    "store": ["lock", ".index.arrow.part", ".store.json.part", ".refused.csv.part", ".data-00000.arrow.part"],
    "model": ["lock", ".current.json.part", "current.json", "versions/.0003.part", "pictures/dog"],
    "closed_form_model": ["versions/0002/model.onnx", "versions/0002/weights.safetensors", "versions/.0003.part"],
}


@pytest.mark.parametrize("name", [f"{kind}, {name}" for kind, names in LINKS.items() for name in names])
def test_a_link_is_not_written_through(victims: Victims, tmp_path: Path, name: str) -> None:
    kind, _, inner = name.partition(", ")
    copies: dict[str, Callable[[], Path]] = {
        "run": lambda: victims.copy("stopped_run"),
        "store": victims.begun_store,
        "model": lambda: victims.copy("model"),
        "closed_form_model": lambda: victims.copy("closed_form_model"),
    }
    folder: Path = copies[kind]()
    victim = tmp_path / "victim"
    path = folder / inner
    victim.write_bytes(path.read_bytes() if path.is_file() and path.stat().st_size else b"precious\n")
    before = victim.read_bytes()
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    uses: dict[str, Callable[[Path], Answer]] = {"run": victims.run, "store": victims.prepare, "model": victims.learn}
    answer = uses.get(kind, victims.add_up)(folder)
    assert victim.read_bytes() == before
    assert_civil(answer)


@pytest.mark.parametrize("inner", ["arrays", "checkpoint"])
def test_a_linked_folder_of_a_run_is_not_written_into(victims: Victims, tmp_path: Path, inner: str) -> None:
    folder = victims.copy("stopped_run")
    victim = tmp_path / "victim"
    (folder / inner).rename(victim)
    (victim / "precious").write_text("mine")
    (folder / inner).symlink_to(victim)
    before = contents(victim)
    answer = victims.run(folder)
    assert contents(victim) == before
    assert_refused(answer, inner)


@pytest.mark.parametrize("command", ["report", "export", "inspect", "list", "sheet"])
def test_a_link_in_place_of_an_output_is_not_written_through(victims: Victims, tmp_path: Path, command: str) -> None:
    """The temporary file beside it, whose name is known beforehand, may be a stranger's too."""
    names = {"report": "index.html", "export": "x.onnx", "inspect": "x.html", "list": "x.csv", "sheet": "x.png"}
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    victim.write_text("precious")
    for name in (names[command], f".{names[command]}.part"):
        (out / name).symlink_to(victim)
    answer = output(victims, command, out / names[command])
    assert victim.read_text() == "precious"
    assert_civil(answer)


def output(victims: Victims, command: str, path: Path) -> Answer:
    """Carry out a command that writes a file."""
    ssil, get = victims.ssil, victims.request.getfixturevalue
    if command == "report":
        return ssil("report", get("finished_run"), "--out", path.parent, seconds=HANGS)
    if command in ("list", "sheet"):
        more = ("list", "--out") if command == "list" else ("show", "--sheet")
        return ssil("data", more[0], get("jpeg_store").parent / "images", more[1], path, seconds=HANGS)
    if command == "export":
        return ssil("export", get("model"), path, *TRUST, seconds=60)
    return ssil("inspect", get("model"), "--html", path, *TRUST, seconds=HANGS)


# Folders that are not ours


def test_a_folder_with_a_file_called_lock_is_no_run(victims: Victims, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "lock").write_text("my notes on locks\n")
    (folder / "checkpoint" / "mine.txt").write_text("mine\n")
    before = contents(folder)
    answer = victims.run(folder)
    assert contents(folder) == before
    assert_refused(answer, str(folder))


@pytest.mark.parametrize("kind", ["run", "store", "model"])
def test_a_lock_that_holds_text_is_not_ours(victims: Victims, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "lock").write_text("my notes on locks\n")
    act: Callable[[Path], Answer] = {
        "run": victims.run,
        "store": victims.prepare,
        "model": lambda out: victims.learn(out, *LEARN),
    }[kind]
    answer = act(folder)
    assert (folder / "lock").read_text() == "my notes on locks\n"
    assert_refused(answer, str(folder))


@pytest.mark.parametrize("name", ["mine.txt", "mine/notes.txt"])
def test_what_lies_in_a_runs_checkpoint_folder_stays(victims: Victims, name: str) -> None:
    folder = victims.copy("stopped_run")
    path = folder / "checkpoint" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    answer = victims.run(folder)
    assert path.exists()
    assert_civil(answer)


def test_a_users_file_beside_a_models_images_stays(victims: Victims) -> None:
    folder = victims.copy("model")
    path = folder / "pictures" / "ant" / f"{'0123456789abcdef' * 2}.jpg"
    path.write_text("the user's own, named by its MD5")
    answer = victims.learn(folder)
    assert path.exists()
    assert_civil(answer)


def test_a_report_does_not_replace_somebodys_page(victims: Victims, tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "index.html").write_text("<h1>My home page</h1>")
    answer = output(victims, "report", out / "index.html")
    assert (out / "index.html").read_text() == "<h1>My home page</h1>"
    assert_refused(answer, "index.html", str(out))


# Devices and pipes


def device(path: Path) -> None:
    """Make a device that is like /dev/null."""
    if os.geteuid():
        pytest.skip("only root can make a device")
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError as error:
        pytest.skip(f"a device can't be made here: {error}")


@pytest.mark.parametrize("command", ["report", "export", "inspect", "list", "sheet"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_only_regular_files_are_replaced(victims: Victims, tmp_path: Path, command: str, kind: str) -> None:
    names = {"report": "index.html", "export": "x.onnx", "inspect": "x.html", "list": "x.csv", "sheet": "x.png"}
    path = tmp_path / "out" / names[command]
    path.parent.mkdir()
    device(path) if kind == "device" else os.mkfifo(path)
    before = path.stat()
    answer = output(victims, command, path)
    assert path.stat().st_mode == before.st_mode
    assert_refused(answer, path.name)


PIPES = {
    "run": [
        "record.json",
        "checksums.json",
        "arrays/task-01.safetensors",
        "checkpoint/state.json",
        "checkpoint/snapshot-*",
        "log.jsonl",
        "lock",
        "remarks.csv",
        ".record.json.part",
    ],
    "show": ["record.json", "checksums.json", "arrays/task-01.safetensors"],
    "report": ["record.json", "arrays/task-03.safetensors"],
    "data": ["store.json", "index.arrow", "refused.csv", "data-00000.arrow"],
    "check": ["store.json", "index.arrow", "refused.csv", "data-00000.arrow"],
    "prepare": ["lock", "prepare.json", "store.json", "data-00000.arrow", ".data-00000.arrow.part"],
    "model": ["current.json", "versions/0002/weights.safetensors", "lock"],
    "predict": ["current.json", "versions/0002/model.json", "versions/0002/model.onnx"],
}


@pytest.mark.parametrize("name", [f"{use}, {name}" for use, names in PIPES.items() for name in names])
def test_a_pipe_in_place_of_a_file_does_not_hang(victims: Victims, tmp_path: Path, name: str) -> None:
    use, _, inner = name.partition(", ")
    fixture = {"run": "stopped_run", "show": "finished_run", "report": "finished_run"}
    fixture |= {"model": "model", "predict": "closed_form_model"}
    folder = victims.copy(fixture.get(use, "jpeg_store"))
    if inner.startswith(".data"):
        (folder / "store.json").unlink()
        (folder / "data-00000.arrow").unlink()
    path = next(folder.glob(inner), folder / inner)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    ssil = victims.ssil
    uses: dict[str, Callable[[], Answer]] = {
        "run": lambda: victims.run(folder),
        "show": lambda: ssil("show", folder, "--metrics", seconds=HANGS),
        "report": lambda: ssil("report", folder, "--out", tmp_path / "report", seconds=HANGS),
        "data": lambda: ssil("run", "--dataset", folder, "--image-size", 8, "--tasks", 2, *TRAINING, seconds=HANGS),
        "check": lambda: ssil("data", "check", folder, seconds=HANGS),
        "prepare": lambda: victims.prepare(folder),
        "model": lambda: victims.learn(folder),
        "predict": lambda: ssil(
            "predict", folder, victims.request.getfixturevalue("photos") / "first", *TRUST, seconds=HANGS
        ),
    }
    assert_civil(uses[use]())


@pytest.mark.parametrize("name", ["data.npz", "data.csv", "folder", "weights.safetensors"])
def test_a_pipe_given_as_input_does_not_hang(victims: Victims, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    ready = ("--init", path) if name.startswith("weights") else ()
    data = victims.request.getfixturevalue("patterns") if ready else path
    assert_refused(victims.ssil("run", "--dataset", data, *RUN, *ready, seconds=HANGS), name)


# Files that say nonsense


def rewritten(path: Path, change: Callable[[Any], object]) -> None:
    """Change a JSON file by a function of its content."""
    content = json.loads(path.read_text())
    changed = change(content)
    path.write_text(json.dumps(content if changed is None else changed))


def lacking(*keys: str) -> Callable[[Any], object]:
    """Return a function that takes a key out of JSON."""

    def change(said: Any) -> None:
        for key in keys[:-1]:
            said = said[key]
        del said[keys[-1]]

    return change


def shifted(counts: list[int]) -> None:
    """Let the first class have one exemplar more, the second one less."""
    counts[0] += 1
    counts[1] -= 1


RECORD: dict[str, Callable[[Any], object]] = {
    **{
        f"without {key}": lacking(key)
        for key in ("config", "provenance", "class_order", "class_names", "task_sizes", "tasks", "version")
    },
    **{
        f"config without {key}": lacking("config", key)
        for key in ("method", "dataset", "options", "memory", "training", "data_fingerprint")
    },
    "no provenance": lambda said: said.update(provenance={}),
    "huge version": lambda said: said.update(version=int("9" * 4_000)),
    "config is a list": lambda said: said.update(config=[1]),
    "options is a number": lambda said: said["config"].update(options=3),
    "memory of no kind": lambda said: said["config"].update(memory={"kind": "none such"}),
    "training is empty": lambda said: said["config"].update(training={}),
    "tasks out of order": lambda said: said["tasks"].reverse(),
    "tasks doubled": lambda said: said["tasks"].extend(said["tasks"]),
    "no task sizes": lambda said: said.update(task_sizes=[]),
    "negative task sizes": lambda said: said.update(task_sizes=[-2, 4, 4]),
    "other task sizes": lambda said: said.update(task_sizes=[1] * 6),
    "fewer class names": lambda said: said.update(class_names=["a"]),
    "confusion of no task": lambda said: said["tasks"][0].update(confusion=[]),
    "confusion of one row more": lambda said: said["tasks"][0]["confusion"].append([1, 2]),
    "no accuracies": lambda said: said["tasks"][0].update(task_top1=[]),
    "huge task number": lambda said: said["tasks"][0].update(task=10**30),
    "negative memory counts": lambda said: said["tasks"][0].update(memory_counts=[-1]),
    "infinite accuracy": lambda said: said["tasks"][0].update(top1=float("inf")),
    "losses of nothing": lambda said: said["tasks"][0].update(loss={"": {"": []}}),
    "text for an accuracy": lambda said: said["tasks"][0].update(top1="much"),
    "scorer that is a path": lambda said: said["config"].update(scorer="../../x"),
    "method that is a number": lambda said: said["config"].update(method=3),
    "not a JSON object": lambda said: [1],
}
USES = ("run", "show", "report", "diff")


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("case", [*RECORD, "deep", "long number", "not UTF-8", "NUL"])
def test_a_record_that_says_nonsense(victims: Victims, tmp_path: Path, case: str, use: str) -> None:
    folder = victims.copy("stopped_run" if use == "run" else "finished_run")
    (folder / "checksums.json").unlink()  # as a stranger would, or an earlier version
    path = folder / "record.json"
    if case in RECORD:
        rewritten(path, RECORD[case])
    else:
        kinds = {"deep": b"[" * 100_000, "long number": b'{"version": ' + b"9" * 5_000 + b"}", "NUL": b"\0" * 100}
        path.write_bytes(kinds.get(case, b'{"version": "\xff\xfe"}'))
    if use == "run":
        assert_civil(victims.run(folder))
        return
    more = {"show": ("--metrics",), "report": ("--out", tmp_path / "report"), "diff": ()}[use]
    other = (victims.request.getfixturevalue("finished_run"),) if use == "diff" else ()
    assert_civil(victims.ssil(use, folder, *other, *more, seconds=HANGS))


STATE: dict[str, Callable[[Any], object]] = {
    **{f"without {key}": lacking(key) for key in ("tasks_done", "memory_counts", "progress", "files")},
    **{f"without {part}": lacking("files", part) for part in ("snapshot", "memory", "progress")},
    **{
        f"progress without {key}": lacking("progress", key)
        for key in ("phase", "epoch", "step", "images", "losses", "seconds")
    },
    "more tasks done": lambda said: said.update(tasks_done=2),
    "too many tasks done": lambda said: said.update(tasks_done=9),
    "negative tasks done": lambda said: said.update(tasks_done=-1),
    "text for tasks done": lambda said: said.update(tasks_done="one"),
    "another step": lambda said: said["progress"].update(step=said["progress"]["step"] + 1),
    "a later epoch": lambda said: said["progress"].update(epoch=said["progress"]["epoch"] + 2),
    "another phase": lambda said: said["progress"].update(phase=7),
    "other memory counts": lambda said: shifted(said["memory_counts"]),
    "fewer memory counts": lambda said: said.update(memory_counts=said["memory_counts"][:1]),
    "too large memory counts": lambda said: said.update(memory_counts=[10**12]),
    "files that lead out": lambda said: said["files"].update(snapshot="../../../etc/passwd"),
    "files that are numbers": lambda said: said.update(files={"snapshot": 3}),
    "not a JSON object": lambda said: [1],
}


@pytest.mark.parametrize("case", [*STATE, "deep", "long number", "not UTF-8"])
def test_a_checkpoint_that_says_nonsense_is_refused(victims: Victims, case: str) -> None:
    folder = victims.copy("stopped_run")
    path = folder / "checkpoint" / "state.json"
    if case in STATE:
        rewritten(path, STATE[case])
    else:
        kinds = {"deep": b"[" * 100_000, "long number": b'{"tasks_done": ' + b"9" * 5_000 + b"}"}
        path.write_bytes(kinds.get(case, b'{"tasks_done": "\xff\xfe"}'))
    assert_refused(victims.run(folder), "state.json", str(folder))


@pytest.mark.parametrize("case", STATE)
def test_a_sealed_checkpoint_that_says_nonsense(victims: Victims, case: str) -> None:
    """A stranger can compute a checksum; what can't be told from a right state may be resumed."""
    folder = victims.copy("stopped_run")
    path = folder / "checkpoint" / "state.json"
    rewritten(path, STATE[case])
    said = json.loads(path.read_text())
    if isinstance(said, dict):
        said.pop("checksum")
        seal(path, said)
    assert_civil(victims.run(folder))


@pytest.mark.parametrize("use", ["show", "show, JSON", "report"])
@pytest.mark.parametrize("length", [0, 7, 40, -1])
def test_truncated_arrays_are_named(victims: Victims, tmp_path: Path, use: str, length: int) -> None:
    folder = victims.copy("finished_run")
    path = folder / "arrays" / "task-03.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    if use == "report":
        answer = victims.ssil("report", folder, "--out", tmp_path / "report", seconds=HANGS)
    else:
        answer = victims.ssil("show", folder, "--metrics", *(["--json"] if "JSON" in use else []), seconds=HANGS)
    assert_civil(answer)
    assert path.name in answer.out + answer.err


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 50_000, "[a" + ".a" * 50_000 + "]", "tasks = " + "9" * 5_000], ids=["deep", "long", "huge"]
)
@pytest.mark.parametrize("command", ["run", "grid"])
def test_a_settings_file_that_says_nonsense_is_refused(
    victims: Victims, tmp_path: Path, text: str, command: str
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    assert_refused(victims.ssil(command, path, seconds=HANGS), "settings.toml", "tasks")


def npz(path: Path, shape: str) -> Path:
    """Write an .npz file whose arrays claim a shape."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            kind = "|u1" if name.startswith("x") else "<i8"
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return path


@pytest.mark.parametrize("shape", ["(1000000000, 1000, 1000000)", "(1000000000, 32, 32)", "(-1, 8, 8)", "(3, 0, 0)"])
def test_arrays_that_claim_too_much_are_refused(victims: Victims, tmp_path: Path, shape: str) -> None:
    path = npz(tmp_path / "huge.npz", shape)
    assert_refused(victims.ssil("run", "--dataset", path, *RUN, seconds=HANGS), path.name)


@pytest.mark.parametrize(
    "label", ["9" * 5_000, "1e400", "-1", "\x1b[31m", ""], ids=["long", "huge", "-1", "ESC", "none"]
)
def test_a_table_with_an_odd_label(victims: Victims, tmp_path: Path, label: str) -> None:
    source = images(tmp_path / "images", ("ant", "bee"), "png")
    rows = [
        f"{path.relative_to(tmp_path)},{label if 'ant' in str(path) else 1}" for path in sorted(source.rglob("*.png"))
    ]
    (tmp_path / "table.csv").write_text("\n".join(["path,label", *rows]) + "\n")
    answer = victims.ssil("data", "check", tmp_path / "table.csv", seconds=HANGS)
    assert_civil(answer)
    assert "\x1b" not in answer.out + answer.err


def forged(folder: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a version of a model says, with the right checksum."""
    path = folder / "versions" / f"{number:04d}" / "model.json"
    said = json.loads(path.read_text())
    del said["checksum"]
    change(said)
    seal(path, said)


MODELS: dict[str, tuple[int, Callable[[dict[str, Any]], object]]] = {
    "history of a number": (2, lambda said: said.update(history=[1])),
    "old history of a number": (1, lambda said: said.update(history=[1])),
    "old version without classes": (1, lambda said: said.pop("classes")),
    "old version with NUL in a file": (1, lambda said: said["exemplars"][0][0].update(file="pictures/a\0b")),
    "old version whose file is a number": (1, lambda said: said["exemplars"][0][0].update(file=3)),
    "old version whose groups are numbers": (1, lambda said: said.update(exemplars=[1, 2])),
    "history with other keys": (2, lambda said: said.update(history=[{"new": 3, "renamed": [1]}])),
    "history without keys": (2, lambda said: said.update(history=[{}])),
    "history with texts": (2, lambda said: said.update(history=[{**said["history"][0], "old_before": "x"}])),
    "history with a huge number": (2, lambda said: said["history"][-1].update(seconds=10**400)),
    "deep history": (2, lambda said: said.update(history=[{"new": nested(500)}])),
    "class names of control characters": (2, lambda said: said["classes"].update(names=["\x1b[2J", "a\nb", "\0"])),
    "class names that are equal": (2, lambda said: said["classes"].update(names=["a", "a", "a"])),
    "class names that are empty": (2, lambda said: said["classes"].update(names=["", " ", "x"])),
    "temperature is text": (2, lambda said: said.update(temperature="warm")),
    "huge image": (2, lambda said: said["settings"].update(image_size=10**9)),
    "huge memory": (2, lambda said: said["settings"].update(memory=10**30)),
}


def nested(depth: int) -> list[Any]:
    """Lists in lists."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


MODEL_USES: dict[str, tuple[object, ...]] = {
    "inspect": (),
    "history": (),
    "forget": ("bee", *TRUST),
    "rename": ("bee", "wasp", *TRUST),
    "prune": ("--keep", 1),
    "rollback": (1, *TRUST),
}


@pytest.mark.parametrize("use", [*MODEL_USES, "predict", "learn"])
@pytest.mark.parametrize("case", MODELS)
def test_a_strangers_model_that_says_nonsense(victims: Victims, case: str, use: str) -> None:
    folder = victims.copy("model")
    forged(folder, *MODELS[case])
    limit = 16 << 30
    if use == "learn":
        answer = victims.learn(folder)
    elif use == "predict":
        photo = victims.request.getfixturevalue("photos") / "first" / "ant" / "0.png"
        answer = victims.ssil("predict", folder, photo, "--csv", *TRUST, seconds=HANGS, memory_limit=limit)
    else:
        trust = TRUST if use == "inspect" else ()
        answer = victims.ssil(use, folder, *MODEL_USES[use], *trust, seconds=HANGS, memory_limit=limit)
    assert_civil(answer)
    assert not {"\x1b", "\0"} & {*answer.out, *answer.err}


@pytest.mark.parametrize("use", ["inspect", "history", "learn", "rollback"])
@pytest.mark.parametrize("version", [10**4000, -1, 0, 1.5, True, "2", None], ids=lambda value: repr(value)[:9])
def test_a_current_version_that_cant_be(victims: Victims, use: str, version: object) -> None:
    folder = victims.copy("model")
    seal(folder / "current.json", {"format": 1, "version": version})
    if use == "learn":
        answer = victims.learn(folder)
    else:
        more = {"inspect": TRUST, "history": (), "rollback": (1, *TRUST)}[use]
        answer = victims.ssil(use, folder, *more, seconds=HANGS)
    assert_civil(answer)
    assert use in ("history", "rollback") or answer.code == 2


# Names


NAMES = [
    "[/b]",
    "[red]x",
    "a\x1b[31mb",
    "a\nb",
    "=cmd|'C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    "-2+3",
    "a\u202eb",
    "caf\udce9",
]


@pytest.fixture(scope="module")
def named_models(
    ssil: CommandLines, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, Path, Answer]]:
    """Models that have learnt a class of an odd name, made once each."""
    known = dict[str, tuple[Path, Path, Answer]]()

    def made(name: str) -> tuple[Path, Path, Answer]:
        if name not in known:
            root = tmp_path_factory.mktemp("named")
            source = images(root / "images", (name.replace("/", "|"), "plain"), "png")
            learnt = ssil("learn", root / "model", source, *LEARN, *SHORT)
            if "/" in name:
                learnt = ssil("rename", root / "model", name.replace("/", "|"), name, *TRUST)
            known[name] = root / "model", source, learnt
        return known[name]

    return made


def assert_printable(answer: Answer) -> None:
    """That a terminal would be told nothing but text."""
    odd = {character for character in answer.out + answer.err if not character.isprintable() and character != "\n"}
    assert not odd, odd


@pytest.mark.parametrize("use", ["learn", "inspect", "history", "predict", "csv", "html", "run", "check"])
@pytest.mark.parametrize("name", NAMES)
def test_an_odd_class_name_is_printed_as_text(
    victims: Victims, named_models: Callable[[str], tuple[Path, Path, Answer]], tmp_path: Path, name: str, use: str
) -> None:
    model, source, learnt = named_models(name)
    ssil = victims.ssil
    uses: dict[str, Callable[[], Answer]] = {
        "learn": lambda: learnt,
        "inspect": lambda: ssil("inspect", model, *TRUST),
        "history": lambda: ssil("history", model),
        "predict": lambda: ssil("predict", model, source, "--top", 2, *TRUST),
        "csv": lambda: ssil("predict", model, source, "--top", 2, "--csv", *TRUST),
        "html": lambda: ssil("inspect", model, "--html", tmp_path / "page.html", *TRUST),
        "run": lambda: ssil(
            "run", "--dataset", source, "--image-size", 8, "--tasks", 2, *TRAINING, "--out", tmp_path / "r"
        ),
        "check": lambda: ssil("data", "check", source),
    }
    answer = uses[use]()
    assert_civil(answer)
    assert_printable(answer)
    if use == "csv" and answer.code == 0:
        cells = [cell for row in csv.reader(io.StringIO(answer.out)) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
        assert all(len(row) == 5 for row in csv.reader(io.StringIO(answer.out)))
    elif use == "predict" and answer.code == 0:
        assert answer.out.count("\n") == 12
