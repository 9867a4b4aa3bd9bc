"""What the attacks share: a server of commands, and small directories of each kind to damage."""

import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
import safetensors.torch

import tiny_classifiers
import tiny_runs
from attacked import LEARN, RUN, SHORT, TRUST, UNTRAINED, images
from command_lines import LONG, CommandLines, command_lines
from ssil.benchmark.runner import run

Line = tuple[object, ...]
"""Words of a command line."""


@pytest.fixture(scope="session")
def ssil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLines]:
    """Carries command lines out."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux has /proc, by which a command that hangs is found out")
    with command_lines(tmp_path_factory.mktemp("commands")) as server:
        yield server


@pytest.fixture(scope="session")
def patterns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six classes as arrays."""
    return tiny_runs.patterns(tmp_path_factory.mktemp("arrays") / "patterns.npz", [5] * 6)


@pytest.fixture(scope="session")
def run_command(patterns: Path) -> tuple[object, ...]:
    """The command line of a small run, but for `--out`."""
    return ("run", "--dataset", patterns, *RUN)


@pytest.fixture(scope="session")
def finished_run(ssil: CommandLines, run_command: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that is done."""
    out = tmp_path_factory.mktemp("finished") / "run"
    done = ssil(*run_command, "--out", out)
    assert done.code == 0, done.err
    return out


@pytest.fixture(scope="session")
def stopped_run(patterns: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the same run, stopped in its second task."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    config = tiny_runs.config(patterns, tasks=3, memory=9, checkpoint_every="2", out=out)
    with pytest.raises(KeyboardInterrupt):
        run(config, tiny_runs.Stopper(6))
    assert (out / "arrays" / "task-01.safetensors").exists()
    assert not (out / "arrays" / "task-02.safetensors").exists()
    return out


def stored(ssil: CommandLines, root: Path, suffix: str) -> Path:
    source = images(root / "images", ("ant", "bee", "cat", "dog"), suffix)
    (source / "ant" / f"broken.{suffix}").write_bytes(b"no image")
    done = ssil("data", "prepare", source, "--out", root / "store")
    assert done.code == 0, done.err
    return root / "store"


@pytest.fixture(scope="session")
def jpeg_store(ssil: CommandLines, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of JPEG images, with one file that was refused; its source lies beside it."""
    return stored(ssil, tmp_path_factory.mktemp("jpeg"), "jpg")


@pytest.fixture(scope="session")
def png_store(ssil: CommandLines, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of PNG images."""
    return stored(ssil, tmp_path_factory.mktemp("png"), "png")


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of images for a model's updates: first, second, third."""
    root = tmp_path_factory.mktemp("photos")
    for name, classes in {"first": ["ant", "bee"], "second": ["cat"], "third": ["dog"]}.items():
        tiny_classifiers.folder(root / name, classes)
    return root


@pytest.fixture(scope="session")
def model(ssil: CommandLines, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory with two versions."""
    folder = tmp_path_factory.mktemp("models") / "model"
    for name, settings in {"first": LEARN, "second": TRUST}.items():
        done = ssil("learn", folder, photos / name, *settings, *SHORT)
        assert done.code == 0, done.err
    return folder


def frozen(ssil: CommandLines, model: Path, photos: Path, root: Path, first: Line, later: Line = TRUST) -> Path:
    """Return a new model directory with two versions, whose backbone is frozen at the weights of `model`."""
    known = safetensors.torch.load((model / "versions/0001/weights.safetensors").read_bytes())
    start = "network/backbone."
    kept = {name.removeprefix(start): value for name, value in known.items() if name.startswith(start)}
    (root / "first.safetensors").write_bytes(safetensors.torch.save(kept))
    init = ("--init", root / "first.safetensors", "--freeze")
    for name, settings in {"first": (*first, *init), "second": later}.items():
        done = ssil("learn", root / "model", photos / name, *settings)
        assert done.code == 0, done.err
    return root / "model"


@pytest.fixture(scope="session")
def frozen_model(ssil: CommandLines, model: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory whose backbone is frozen, so that features lie beside the images."""
    first = (*LEARN, *SHORT, "--method", "icarl")
    return frozen(ssil, model, photos, tmp_path_factory.mktemp("frozen"), first, (*TRUST, *SHORT))


@pytest.fixture(scope="session")
def closed_form_models(
    ssil: CommandLines, model: Path, photos: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Returns a model directory whose weights hold statistics of features, by the method and its options."""

    def made(*method: object) -> Path:
        return frozen(ssil, model, photos, tmp_path_factory.mktemp("closed"), (*UNTRAINED, "--method", *method))

    return cache(made)


@pytest.fixture(scope="session")
def closed_form_model(closed_form_models: Callable[..., Path]) -> Path:
    """A model directory of the default method."""
    return closed_form_models("slda")


@pytest.fixture(scope="session")
def default_model(ssil: CommandLines, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory that was made without any option."""
    folder = tmp_path_factory.mktemp("default") / "model"
    done = ssil("learn", folder, photos / "first", seconds=300)
    assert done.code == 0, done.err
    return folder


LIST = Path(__file__).with_name("known_failures.toml")
THINNED = {
    "test_a_record_that_says_nonsense": 3,
    "test_a_strangers_model": 3,
    "test_an_odd_class_name": 3,
    "test_a_current_version": 3,
    "test_statistics": 8,
}
"""Tests of which the short form carries out one in so many."""


def is_spared(name: str) -> bool:
    """Return whether the short form leaves a test out."""
    return any(name.startswith(start) and crc32(name.encode()) % part for start, part in THINNED.items())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Expect the cases of `known_failures.toml` to fail, and thin out the others in the short form."""
    lists = tomllib.loads(LIST.read_text(encoding="utf-8"))
    known: dict[str, str] = {**lists["fails"], **(lists["long"] if LONG else {})}
    ours = [item for item in items if item.path.parent == LIST.parent]
    for item in ours:
        if reason := known.get(f"{item.path.name}::{item.name}"):
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
    spared = [item for item in ours if not LONG and is_spared(item.name)]
    config.hook.pytest_deselected(items=[item for item in spared if not item.get_closest_marker("xfail")])
    items[:] = [item for item in items if item not in spared or item.get_closest_marker("xfail")]
