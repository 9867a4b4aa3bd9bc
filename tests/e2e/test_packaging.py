"""The package as others get it: a wheel that works without the source tree, and documents that state its version."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image

import ssil

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(name="built", scope="module")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, timeout=120)
    return folder


@pytest.fixture(name="installed", scope="module")
def _installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment: it has the wheel, finds the dependencies here, and knows no source tree."""
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python, [wheel] = home / "bin/python", built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, env=own_environment())
    [packages] = home.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def said(*command: str | Path, folder: Path) -> str:
    done = subprocess.run([*command], cwd=folder, env=own_environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_has_what_the_package_reads_and_no_more(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    sources = [file for file in (ROOT / "src/ssil").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert names == {str(file.relative_to(ROOT / "src")) for file in sources}
    kinds = {Path(name).suffix for name in names}
    assert kinds >= {".html", ".css", ".js", ".toml", ".csv", ".json", ".typed"}
    assert not [name for name in names if re.search(r"test_|conftest|\.(npz|bin|safetensors|onnx)$", name)]


@pytest.mark.slow
def test_the_source_archive_has_the_sources_and_no_results(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        tops = {Path(name).parts[1] for name in archive.getnames()}
    assert tops >= {"src", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    assert not tops & {"tests", "docs", "benchmarks"}


@pytest.mark.slow
def test_the_wheel_runs_without_the_source_tree(installed: Path, tmp_path: Path) -> None:
    where = said(installed / "python", "-c", "import ssil; print(ssil.__file__)", folder=tmp_path)
    assert where.startswith(str(installed.parent))
    assert said(installed / "ssil", "--version", folder=tmp_path).strip() == ssil.__version__
    assert "SS-IL" in said(installed / "ssil", "methods", "ssil", folder=tmp_path)
    run = "run --dataset digits --method ssil --tasks 5 --memory 50 --backbone resnet8 --epochs 1 --out runs/digits"
    said(installed / "ssil", *run.split(), folder=tmp_path)
    assert "ssil" in said(installed / "ssil", "show", "runs/digits", folder=tmp_path)


@pytest.mark.slow
def test_the_installed_wheel_learns_and_predicts(installed: Path, tmp_path: Path) -> None:
    draw_colours(tmp_path / "colours", images=8)
    printed = said(installed / "ssil", "learn", "model", "colours", "--html", "page.html", folder=tmp_path)
    assert "2 new classes" in printed
    assert "<style>" in (tmp_path / "page.html").read_text()
    assert "blue" in said(installed / "ssil", "predict", "model", "colours/blue/0.png", folder=tmp_path)


def draw_colours(folder: Path, images: int) -> None:
    """Write noisy red and noisy blue images."""
    random = np.random.default_rng(0)
    for name, colour in (("red", (200, 30, 30)), ("blue", (30, 30, 200))):
        (folder / name).mkdir(parents=True)
        for number in range(images):
            pixels = np.array(colour) + random.integers(-30, 30, (32, 32, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{number}.png")


def requirements() -> list[Requirement]:
    extras = PROJECT["project"]["optional-dependencies"]
    listed = [*PROJECT["project"]["dependencies"], *(line for lines in extras.values() for line in lines)]
    return [found for found in map(Requirement, listed) if found.name != "ssil"]


def test_the_tested_versions_are_allowed_and_each_requirement_has_a_floor() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    pinned = {canonicalize_name(found.name): found.specifier for found in map(Requirement, lines)}
    rare = {"datasets", "mlflow-skinny", "wandb"}  # of extras that no test installs
    for found in requirements():
        assert {one.operator for one in found.specifier} <= {">=", "=="}, found
        assert found.specifier, f"{found.name} has no floor"
        if (name := canonicalize_name(found.name)) not in rare:
            [pin] = pinned[name]
            assert found.specifier.contains(pin.version.partition("+")[0]), found


def test_a_library_has_one_floor() -> None:
    floors = {(canonicalize_name(found.name), str(found.specifier)) for found in requirements()}
    assert len(floors) == len({name for name, _ in floors})


def test_the_changelog_and_the_citation_have_the_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", changes, re.MULTILINE)
    assert released[0][0] == ssil.__version__
    assert re.findall(r"^## (\w+)", changes, re.MULTILINE)[0] == "Unreleased"
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {ssil.__version__}\ndate-released: {released[0][1]}\n" in citation


def test_changes_are_listed_under_known_headings() -> None:
    headings = re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert {*headings} <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
