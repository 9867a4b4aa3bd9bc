"""What a run leaves on disk, and what it continues from."""

import json
import shutil
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

import tiny_runs
from ssil.benchmark import run_directory
from ssil.benchmark.checkpoint import Checkpoints
from ssil.benchmark.record import Record, read_predictions, read_record
from ssil.benchmark.run_directory import RunDirectory
from ssil.benchmark.run_setup import set_up
from ssil.benchmark.runner import run
from ssil.core.errors import UserError
from ssil.learning.metrics import top1


def test_the_record_on_disk_follows_its_schema(finished: tuple[Path, Record]) -> None:
    out, record = finished
    raw = json.loads((out / "record.json").read_text())
    jsonschema.validate(raw, json.loads(files("ssil.benchmark").joinpath("record.schema.json").read_text()))
    assert read_record(out) == record
    assert raw["provenance"]["finished"] >= raw["provenance"]["started"]


def test_predictions_are_kept_for_every_task(finished: tuple[Path, Record]) -> None:
    out, record = finished
    for task in record.tasks:
        predictions = read_predictions(out, task.task)
        assert len(predictions.labels) == 4 * task.classes_seen
        assert top1(predictions) == task.top1


def test_the_log_has_a_line_for_every_epoch(finished: tuple[Path, Record]) -> None:
    out, record = finished
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [(line["task"], line["epoch"]) for line in lines] == [(t, e) for t in (1, 2, 3) for e in (1, 2)]
    assert lines[-1]["loss"] == {part: values[-1] for part, values in record.tasks[-1].loss["main"].items()}


def test_a_finished_run_without_its_model_is_still_finished(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, out=tmp_path)
    record = run(config)
    shutil.rmtree(tmp_path / "checkpoint")
    assert run(config) == record


def test_the_methods_own_record_is_the_last_to_be_done(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    monkeypatch.setattr(run_directory, "write_record", lambda folder, record: written.append(folder))
    run(tiny_runs.config(dataset, tasks=1, method="ft,il2m,scail", out=tmp_path))
    assert written == [tmp_path / "scail", tmp_path / "il2m", tmp_path]


def test_a_run_stopped_before_scorers_had_a_state_goes_on(dataset: Path, tmp_path: Path) -> None:
    """Its progress named the network's tensors without a group of models."""
    config = tiny_runs.config(dataset, tasks=2, out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(config, tiny_runs.Stopper(2))
    checkpoints = Checkpoints(tmp_path / "checkpoint")
    meta, parts = checkpoints.load()
    old = {name.removeprefix("model/"): tensor for name, tensor in parts["progress"].items()}
    assert old != parts["progress"]
    checkpoints.save(meta, {**parts, "progress": old})
    assert tiny_runs.timeless(run(config)) == tiny_runs.timeless(run(tiny_runs.config(dataset, tasks=2)))


def test_a_second_process_is_refused(finished: tuple[Path, Record], dataset: Path) -> None:
    out, record = finished
    config = tiny_runs.config(dataset, tasks=3, epochs=2, memory=8, out=out)
    with (
        RunDirectory(out, "5min").locked(),
        pytest.raises(UserError, match=r"^out: another process is at work in .*; wait, or give another$"),
    ):
        run(config)
    assert run(config) == record


def test_out_must_be_a_directory(dataset: Path) -> None:
    with pytest.raises(
        UserError, match=r"^out: .*patterns.npz can't be written \(File exists\); give another directory$"
    ):
        run(tiny_runs.config(dataset, tasks=2, out=dataset))


def test_a_damaged_checkpoint_is_named(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(config, tiny_runs.Stopper(2))
    (file,) = (tmp_path / "checkpoint").glob("progress-*")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match=rf"^checkpoint: .*{file.name} is damaged .*"):
        run(config)


def test_a_loss_of_nan_leaves_the_last_good_checkpoint(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, epochs=20, lr=1e9, out=tmp_path, checkpoint_every="1")
    with pytest.raises(
        UserError,
        match=r"^(loss|weights): .* became -?(nan|inf) in task 1, epoch \d+; try a smaller --lr and another --out; ",
    ):
        run(config)
    tensors = tiny_runs.tensors(tmp_path)
    assert tensors
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    state = RunDirectory(tmp_path, "1").restore(set_up(config))
    assert state.progress is not None
    assert state.progress.step > 0


def test_a_directory_with_other_things_in_it_is_left_alone(dataset: Path) -> None:
    with pytest.raises(UserError, match=r"^out: .* is not empty and holds no run; give a new directory$"):
        run(tiny_runs.config(dataset, tasks=2, out=dataset.parent))
    assert not (dataset.parent / "lock").exists()
