"""The documents' examples do what they say: a block below `<!-- test: NAME -->` is taken word for word."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ssil.benchmark.record import read_record
from ssil.cli import main

ROOT = Path(__file__).parents[2]


def block(document: str, name: str) -> str:
    found = re.search(rf"<!-- test: {re.escape(name)} -->\n```\w+\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert found, f"{document} has no block {name!r}"
    return found[1]


def test_the_glossary_names_what_exists() -> None:
    """Each file, and each name in parentheses behind it."""
    text = (ROOT / "docs/glossary.md").read_text()
    found = re.findall(r"`((?!src)\w+/[\w/.]*)`(?: \(([^)]*)\))?", text)
    assert len(found) > 50
    for path, names in found:
        source = ROOT / "src/ssil" / path
        assert source.exists(), path
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", names):
            assert re.search(rf"\b(def|class) {name}\b|^ *{name}: ", source.read_text(), re.MULTILINE), (
                f"{path}: {name}"
            )


@pytest.mark.slow
def test_the_readmes_first_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in [line for name in ("commands", "chain") for line in block("README.md", name).splitlines()]:
        assert main(shlex.split(command)[1:]) == 0
    exec(block("README.md", "python"), {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "name", "said"),
    [
        ("docs/freezing.md", "commands", ["mine, version 1 of 1: 10 classes"]),
        (
            "docs/advice.md",
            "commands",
            ["photos/2/copy.png = photos/1/000020.png", "wrong class: photos/2/moved.png (like 0)"],
        ),
        ("docs/closed-form.md", "commands", ["runs/closed/ranpac", "runs/closed/slda"]),
        (
            "docs/weights.md",
            "commands",
            ["(x - 127) / 128", "more, version 1 of 1: 10 classes", "technical: eeil on efficientnet_lite0 at"],
        ),
    ],
)
def test_a_classifier_of_your_own(document: str, name: str, said: list[str], tmp_path: Path) -> None:
    """By a shell, as a reader would paste it."""
    printed = pasted(block(document, name), tmp_path)
    assert [words for words in said if words not in printed] == []


def pasted(commands: str, folder: Path, **variables: str) -> str:
    shell = ["bash", "-euo", "pipefail", "-c", commands]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = os.environ | {"PATH": path} | variables
    done = subprocess.run(shell, cwd=folder, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_readmes_classifier(tmp_path: Path) -> None:
    """On images of our own in CIFAR's format, which need no download."""
    commands = block("README.md", "classifier")
    names = re.findall(r"^take week-\d (.*)$", commands, re.MULTILINE)
    make_cifar100(tmp_path / "data/cifar-100-binary", " ".join(names).split())
    printed = pasted(commands, tmp_path, SSIL_DATA=str(tmp_path / "data"))
    assert "technical: slda on efficientnet_lite0 at 224 pixels, two views" in printed
    assert "000001.png: wolf" in printed
    assert "things, version 3 of 1, 2, 3: 16 classes" in printed


def make_cifar100(folder: Path, names: list[str]) -> None:
    """Each class is a coarse pattern of its own; the first pixels tell its images apart."""
    random = np.random.default_rng(0)
    patterns = np.kron(random.integers(256, size=(100, 3, 4, 4)), np.ones((8, 8))).astype(np.uint8).reshape(100, -1)
    folder.mkdir(parents=True)
    (folder / "fine_label_names.txt").write_text("\n".join([*names, *(f"other_{n}" for n in range(100 - len(names)))]))
    for part, count in (("train", 50_000), ("test", 10_000)):
        labels = np.arange(count, dtype=np.int64) % 100
        images = patterns[labels]
        images[:, :4] = np.arange(count, dtype="<u4").view(np.uint8).reshape(-1, 4)
        images[:, 40:1000] += random.integers(64, size=(count, 1), dtype=np.uint8)
        np.concatenate([np.zeros((count, 1), np.uint8), labels[:, None].astype(np.uint8), images], 1).tofile(
            folder / f"{part}.bin"
        )


@pytest.mark.slow
def test_the_readmes_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("configs").symlink_to(ROOT / "configs")
    for command in block("README.md", "compare").splitlines():
        assert main(shlex.split(command)[1:]) == 0
    assert Path("report/index.html").stat().st_size > 1_000_000


@pytest.mark.slow
def test_two_methods_with_error_bars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("compare.toml").write_text(block("docs/comparing.md", "compare.toml"))
    for command in block("docs/comparing.md", "error bars").splitlines():
        assert main(shlex.split(command)[1:]) == 0
    assert re.search(r"ssil +3 +\d+\.\d ± \d+\.\d", capsys.readouterr().out)
    assert Path("two/accuracy.pdf").exists()
    assert "\\toprule" in Path("two/methods.tex").read_text()


@pytest.mark.slow
def test_a_new_method_as_contributing_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("my_method.py", "my_branches.py", "my_scorer.py", "my_net.py"):
        Path(file).write_text(block("CONTRIBUTING.md", file))
    for command in (
        line
        for name in ("commands", "check", "branches", "scorer", "backbone")
        for line in block("CONTRIBUTING.md", name).splitlines()
    ):
        assert main(shlex.split(command)[1:]) == 0
    shown = capsys.readouterr().out
    assert "weighted" in shown
    assert "er" in shown
    assert "newest_scaled" in shown


@pytest.mark.slow
def test_streams_of_your_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "docs/own-stream.md"
    monkeypatch.chdir(tmp_path)
    for file in ("my_stream.py", "streams.toml"):
        Path(file).write_text(block(page, file))
    exec(block(page, "table"), {})
    for name in ("ready-made", "table commands", "function", "grid"):
        for command in block(page, name).splitlines():
            assert main(shlex.split(command)[1:]) == 0
    assert "returning" in capsys.readouterr().out
    assert "& disjoint & returning" in Path("report/methods.tex").read_text()
    assert "average top-1,slda,3," in Path("report/significance.csv").read_text()


@pytest.mark.slow
def test_backbones_features_optimisers_and_augmentation_of_your_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/own-backbone.md"
    monkeypatch.chdir(tmp_path)
    for file in ("my_module.py", "features.py", "my_phases.py", "my_views.py"):
        Path(file).write_text(block(page, file))
    exec(block(page, "features.py"), {})
    for name in ("module", "features", "phases", "views"):
        for command in block(page, name).splitlines():
            assert main(shlex.split(command)[1:]) == 0
    records = {folder.name: read_record(folder) for folder in Path("runs").iterdir()}
    assert len(records) == 6
    assert all(record.summary for record in records.values())
    assert set(records["phases"].tasks[-1].loss) == {"main", "tune"}
    assert records["cutout"].config["augment_sha256"]
