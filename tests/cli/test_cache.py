"""`ssil cache`: kinds, sizes and ages; what is cleared, and what stays beside processes at work."""

import json
import os
import time
from pathlib import Path

import pytest

from ssil.cli import main
from ssil.core.files import replacing

OLD = 40 * 86_400
FILES = {
    ".glyphs-0123456789abcdef.npz.77.part": "unfinished",
    "cifar-100.tar.gz.partial": "unfinished",
    "surveys-1/0123456789abcdef/000000.arrow": "validation",
    "surveys-1/0123456789abcdef/000001.arrow": "validation",
    "glyphs-0123456789abcdef.npz": "arrays",
    "features-0123456789abcdef-train.npz": "features",
    f"weights/small-0123456789abcdef-{'0' * 32}.safetensors": "weights",
    "cifar-100-binary/train.bin": "other",
    "surveys-1/notes.txt": "other",
    "my.npz": "other",
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a file of each kind, 40 days old."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SSIL_CACHE", str(folder))
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(1_000))
        os.utime(folder / name, (time.time() - OLD,) * 2)
    return folder


def left(cache: Path) -> set[str]:
    return {str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()}


def of_kind(*kinds: str) -> set[str]:
    return {name for name, kind in FILES.items() if kind in kinds}


def test_show_tells_kinds_sizes_and_ages(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["kind"]: line["files"] for line in lines} == {kind: len(of_kind(kind)) for kind in FILES.values()}
    assert all(39.9 < line["oldest_days"] < 40.1 and line["bytes"] == 1_000 * line["files"] for line in lines)
    assert main(["cache"]) == 0
    said = capsys.readouterr().out
    assert f"{cache}: 10 files" in said
    assert all(kind in said for kind in FILES.values())
    assert left(cache) == set(FILES)


def test_an_empty_cache_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path / "none"))
    assert main(["cache"]) == main(["cache", "clear"]) == 0
    assert "nothing is cached yet" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


def test_clear_removes_unfinished_files_and_stale_results(cache: Path) -> None:
    fresh = cache / "surveys-1" / "0123456789abcdef" / "000001.arrow"
    fresh.touch()
    assert main(["cache", "clear"]) == 0
    removed = of_kind("unfinished") | {"surveys-1/0123456789abcdef/000000.arrow"}
    assert left(cache) == set(FILES) - removed


@pytest.mark.parametrize("kind", ["unfinished", "validation", "arrays", "features", "weights"])
def test_clear_removes_one_kind_and_empty_folders(kind: str, cache: Path) -> None:
    assert main(["cache", "clear", kind, "--older-than", "41"]) == 0
    assert left(cache) == set(FILES)
    assert main(["cache", "clear", kind]) == 0
    assert left(cache) == set(FILES) - of_kind(kind)
    assert (cache / "surveys-1" / "0123456789abcdef").exists() == (kind != "validation")


def test_a_file_that_a_process_is_writing_stays(cache: Path) -> None:
    with replacing(cache / "glyphs-1.npz", unique=True) as file:
        file.write(b"half")
        file.flush()
        part = next(path for path in cache.glob(".glyphs-1.npz.*.part"))
        os.utime(part, (time.time() - OLD,) * 2)  # a slow writer
        assert main(["cache", "clear"]) == 0
        assert part.exists()
    assert (cache / "glyphs-1.npz").read_bytes() == b"half"
    young = cache / ".young.npz.1.part"
    young.write_bytes(b"not locked yet")
    assert main(["cache", "clear"]) == 0
    assert young.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["other"], "kind: 'other' can't be cleared"),
        (["feature"], "did you mean 'features'"),
        (["--older-than", "-1"], "older_than: -1"),
        (["--older-than", "nan"], "older_than: nan"),
    ],
)
def test_bad_input(arguments: list[str], said: str, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "clear", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert left(cache) == set(FILES)


def test_a_linked_folder_is_not_cleared(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.partial").write_text("mine")
    os.utime(outside / "x.partial", (time.time() - OLD,) * 2)
    (cache / "link").symlink_to(outside)
    assert main(["cache", "clear"]) == 0
    assert (outside / "x.partial").exists()
