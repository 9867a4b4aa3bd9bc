"""Commands are followed in TensorBoard, or it is said why not."""

import json
import sys
from pathlib import Path

import pytest

import tiny_runs
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.tracking.backends import BACKENDS, TensorBoard
from ssil.benchmark.tracking.tracker import Tracker, history, hyperparameters, tracker
from ssil.cli import main, run_display

# ---- TensorBoard


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard reads."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def assert_all_is_there(folder: Path, record: Record) -> None:
    found = scalars(folder)
    found.pop("images_per_second/epoch", None)
    points = history(record)
    assert set(found) == {name for _, values in points for name in values}
    for name, sent in found.items():
        steps, values = zip(*sent, strict=True)
        assert steps == tuple(step for step, point in points if name in point)
        assert values == pytest.approx([point[name] for _, point in points if name in point])


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A run of three tasks that takes no time."""
    return tiny_runs.command(tmp_path, "ssil")


def test_a_command_is_followed(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main([*command, "--track", "tensorboard", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"tracked by tensorboard (see: tensorboard --logdir {out / 'tracking'})\n")
    assert_all_is_there(out / "tracking", read_record(out))
    assert main([*command, "--track", "tensorboard", "--json", "--out", str(out)]) == 0
    assert all(json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert_all_is_there(out / "tracking", read_record(out))


def test_tensorboard_hides_what_a_killed_process_sent_last(whole: Record, tmp_path: Path) -> None:
    """Between sending a point and writing that down."""
    file = tmp_path / "tensorboard.json"
    for done, forgotten in ((2, 2), (3, 0)):
        with Tracker(TensorBoard(tmp_path), file, print) as tracked:
            tracked.started(whole.after(done))
        kept = json.loads(file.read_text())
        file.write_text(json.dumps(kept | {"step": kept["step"] - forgotten}))
    assert_all_is_there(tmp_path, whole)


def test_tensorboard_knows_the_settings(whole: Record, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    with Tracker(TensorBoard(tmp_path), tmp_path / "tensorboard.json", print) as tracked:
        tracked.started(whole)
    (content,) = EventAccumulator(str(tmp_path)).Reload().PluginTagToContent("hparams").values()
    start = HParamsPluginData.FromString(content).session_start_info
    assert start.group_name
    assert set(start.hparams) == set(hyperparameters(whole))
    assert start.hparams["method"].string_value == "ssil"
    assert start.hparams["training.lr"].number_value == 0.1


# ---- what is refused


def test_without_a_directory_there_is_no_tracking(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--track", "tensorboard"]) == 2
    error = "error: track: tensorboard needs a place; give --out, where it is kept in tracking/\n"
    assert capsys.readouterr().err == error


@pytest.mark.parametrize("name", BACKENDS)
def test_a_missing_package_is_named_before_anything_is_written(
    name: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in [module for module in sys.modules if name in module.split(".")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    assert main([*command, "--track", name, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"error: track: {name} can't be imported (")
    assert said.err.endswith(f"); install it with pip install 'ssil[{name}]'\n")
    assert not (tmp_path / "out").exists()


def test_of_several_processes_only_the_first_tracks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_runs.config(tmp_path / "patterns.npz", track="tensorboard", out=tmp_path / "out")
    assert run_display._tracker(config, json=True) is not None
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert run_display._tracker(config, json=True) is None


def test_nobody_asked() -> None:
    assert tracker(tiny_runs.config(Path("patterns.npz")), print) is None
