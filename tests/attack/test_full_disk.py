"""A full disk, or files that may not grow, end a command in one line; what was there before is kept."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from attacked import LEARN, SHORT, TRUST, images
from command_lines import Answer, CommandLines, contents, run_result

pytestmark = pytest.mark.slow


def assert_told(answer: Answer, reason: str) -> None:
    """That it ended in one line that says why."""
    assert not answer.hangs
    assert not answer.crashed, answer.err[-1500:]
    assert answer.refused, (answer.code, answer.err[-500:])
    assert reason in answer.last, answer.last


@pytest.mark.parametrize("limit", [0, 300, 2_000, 8_000, 20_000])
def test_a_run_whose_files_may_not_grow(
    ssil: CommandLines, run_command: tuple[object, ...], finished_run: Path, tmp_path: Path, limit: int
) -> None:
    out = tmp_path / "run"
    assert_told(ssil(*run_command, "--out", out, file_limit=limit), "File too large")
    assert not list(tmp_path.rglob("*.part"))
    assert ssil(*run_command, "--out", out).code == 0
    assert run_result(out) == run_result(finished_run)


@pytest.mark.parametrize("limit", [0, 300, 2_000, 8_000])
def test_a_resumed_run_whose_files_may_not_grow(
    ssil: CommandLines,
    run_command: tuple[object, ...],
    finished_run: Path,
    stopped_run: Path,
    tmp_path: Path,
    limit: int,
) -> None:
    out = Path(shutil.copytree(stopped_run, tmp_path / "run"))
    assert_told(ssil(*run_command, "--out", out, file_limit=limit), "File too large")
    assert ssil(*run_command, "--out", out).code == 0
    assert run_result(out) == run_result(finished_run)


def outputs(ssil: CommandLines, request: pytest.FixtureRequest) -> dict[str, tuple[str, Callable[..., Answer]]]:
    """Commands that write a file or a folder: its name, and how it is written into a folder."""
    model, run = request.getfixturevalue("model"), request.getfixturevalue("finished_run")
    source = request.getfixturevalue("jpeg_store").parent / "images"
    return {
        "report": ("report", lambda out, **limit: ssil("report", run, "--out", out / "report", **limit)),
        "export": ("x.onnx", lambda out, **limit: ssil("export", model, out / "x.onnx", *TRUST, **limit)),
        "inspect": ("x.html", lambda out, **limit: ssil("inspect", model, "--html", out / "x.html", *TRUST, **limit)),
        "list": ("x.csv", lambda out, **limit: ssil("data", "list", source, "--out", out / "x.csv", **limit)),
        "sheet": ("x.png", lambda out, **limit: ssil("data", "show", source, "--sheet", out / "x.png", **limit)),
        "prepare": ("store", lambda out, **limit: ssil("data", "prepare", source, "--out", out / "store", **limit)),
        "images": ("images", lambda out, **limit: ssil("data", "export", "digits", "--out", out / "images", **limit)),
    }


OUTPUTS = ["report", "export", "inspect", "list", "sheet", "prepare", "images"]


@pytest.mark.parametrize("command", OUTPUTS)
def test_an_output_that_may_not_grow(
    ssil: CommandLines, request: pytest.FixtureRequest, tmp_path: Path, command: str
) -> None:
    _, act = outputs(ssil, request)[command]
    assert act(tmp_path / "before").code == 0  # fills the cache
    out = tmp_path / "out"
    out.mkdir()
    assert_told(act(out, file_limit=100), "File too large")
    assert not [path for path in out.rglob("*") if path.name.endswith(".part")]
    assert act(out).code == 0 or command == "images"


@pytest.mark.parametrize("limit", [100, 1_000, 5_000])
def test_an_update_whose_page_may_not_grow_is_not_published(
    ssil: CommandLines, model: Path, photos: Path, tmp_path: Path, limit: int
) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    before = contents(folder)
    page = tmp_path / "page.html"
    answer = ssil("learn", folder, photos / "third", "--html", page, *TRUST, *SHORT, file_limit=limit)
    assert_told(answer, "File too large")
    assert contents(folder) == before
    assert not page.exists()


@pytest.mark.parametrize("place", ["/proc/x.html", "missing-root", ""])
def test_an_update_whose_page_has_no_place_is_not_published(
    ssil: CommandLines, model: Path, photos: Path, tmp_path: Path, place: str
) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    before = contents(folder)
    (tmp_path / "missing-root").write_text("a file, no folder")
    page = tmp_path / "missing-root" / "x.html" if place == "missing-root" else place
    answer = ssil("learn", folder, photos / "third", "--html", page, *TRUST, *SHORT)
    assert answer.refused, answer.err[-1000:]
    assert contents(folder) == before


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk of a number of kilobytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")

    def mounted(size: int) -> Path:
        options = ["-t", "tmpfs", "-o", f"size={size}k", "tmpfs"]
        if os.geteuid() or not mount or subprocess.run([mount, *options, folder], capture_output=True).returncode:
            pytest.skip("only root, where it may mount, can make a small disk")
        return folder

    yield mounted
    if folder.is_mount():
        subprocess.run(["umount", folder], check=True)


FULL = "No space left on device"


@pytest.mark.parametrize("free", [0, 8, 24, 40])
def test_a_run_on_a_full_disk(
    ssil: CommandLines,
    run_command: tuple[object, ...],
    finished_run: Path,
    stopped_run: Path,
    disk: Callable[[int], Path],
    free: int,
) -> None:
    """Four pages are the file that fills the disk; what is free is less than the run needs."""
    folder = disk(400)
    out = Path(shutil.copytree(stopped_run, folder / "run"))
    filler = folder / "filler"
    left = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    filler.write_bytes(bytes(max(left - 1024 * free, 0)))
    assert_told(ssil(*run_command, "--out", out), FULL)
    filler.unlink()
    assert ssil(*run_command, "--out", out).code == 0
    assert run_result(out) == run_result(finished_run)


@pytest.mark.parametrize("command", OUTPUTS)
def test_an_output_on_a_full_disk(
    ssil: CommandLines, request: pytest.FixtureRequest, disk: Callable[[int], Path], tmp_path: Path, command: str
) -> None:
    name, act = outputs(ssil, request)[command]
    assert act(tmp_path / "before").code == 0  # fills the cache
    folder = disk(64)
    (folder / "filler").write_bytes(bytes(64 * 1024))
    assert_told(act(folder), FULL)
    (folder / "filler").unlink()
    assert not [path for path in folder.rglob("*") if path.name.endswith(".part")]
    assert command in ("prepare", "images") or not [path for path in (folder / name).rglob("*") if path.is_file()]


@pytest.mark.parametrize("free", [0, 8, 16])
def test_a_new_model_on_a_full_disk(ssil: CommandLines, disk: Callable[[int], Path], tmp_path: Path, free: int) -> None:
    folder = disk(400)
    (folder / "filler").write_bytes(bytes((400 - free) * 1024))
    source = images(tmp_path / "images", ("ant", "bee"), "png")
    assert_told(ssil("learn", folder / "model", source, *LEARN, *SHORT), FULL)
    assert not (folder / "model" / "current.json").exists()
