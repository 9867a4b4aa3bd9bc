import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

import tiny_runs
from ssil.benchmark import run_directory
from ssil.benchmark.checkpoint import Checkpoints
from ssil.benchmark.record import Record, read_predictions, read_record, write_record
from ssil.benchmark.run_directory import RunDirectory
from ssil.benchmark.run_setup import set_up
from ssil.benchmark.runner import RunObserver, run
from ssil.core.errors import UserError
from ssil.learning.metrics import top1
from ssil.learning.task import ProgressReport


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("runs") / "patterns.npz", [5] * 6)


@pytest.fixture(scope="module")
def finished(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """The directory and the record of a run of three tasks."""
    out = tmp_path_factory.mktemp("finished")
    return out, run(tiny_runs.config(dataset, tasks=3, epochs=2, memory=8, out=out))


class Listener(RunObserver):
    """Writes down what it is told, and stops after so many steps."""

    def __init__(self, steps: int = 10**9) -> None:
        self.steps, self.paces, self.tasks = steps, list[tuple[int, ProgressReport]](), list[int]()

    def started(self, record: Record) -> None:
        self.tasks.append(len(record.tasks))

    def pace(self, task: int, pace: ProgressReport) -> None:
        self.paces.append((task, pace))

    def learnt(self, record: Record) -> None:
        self.tasks.append(len(record.tasks))

    def should_stop(self) -> bool:
        return len(self.paces) == self.steps


def test_the_record_on_disk_follows_its_schema(finished: tuple[Path, Record]) -> None:
    out, record = finished
    raw = json.loads((out / "record.json").read_text())
    jsonschema.validate(raw, json.loads(files("ssil.benchmark").joinpath("record.schema.json").read_text()))
    assert read_record(out) == record
    assert raw["provenance"]["finished"] >= raw["provenance"]["started"]


def test_the_record_tells_the_stream(finished: tuple[Path, Record]) -> None:
    _, record = finished
    assert [task.task for task in record.tasks] == [1, 2, 3]
    assert [task.classes_seen for task in record.tasks] == [2, 4, 6]
    assert [len(task.task_top1) for task in record.tasks] == [1, 2, 3]
    assert [sum(map(sum, task.confusion)) for task in record.tasks] == [8, 16, 24]
    assert record.tasks[1].memory_counts == [2, 2, 2, 2]
    assert record.tasks[2].memory_counts == [2, 2, 1, 1, 1, 1]
    assert [{part: len(values) for part, values in task.loss["main"].items()} for task in record.tasks] == [
        {"ce": 2},
        {"ce": 2, "kd": 2},
        {"ce": 2, "kd": 2},
    ]
    assert all(task.seconds >= sum(task.seconds_by_phase.values()) > 0 for task in record.tasks)


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


def test_a_finished_run_is_only_read(finished: tuple[Path, Record], dataset: Path) -> None:
    out, record = finished
    listener = Listener()
    assert run(tiny_runs.config(dataset, tasks=3, epochs=2, memory=8, out=out), listener) == record
    assert (listener.tasks, listener.paces) == ([3], [])


def test_a_finished_run_without_its_model_is_still_finished(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, out=tmp_path)
    record = run(config)
    shutil.rmtree(tmp_path / "checkpoint")
    assert run(config) == record


def test_watchers_are_told_of_every_step(dataset: Path) -> None:
    listener = Listener()
    run(tiny_runs.config(dataset, tasks=2, epochs=2), listener)
    assert listener.tasks == [0, 1, 2]
    told = [(task, pace.epoch, pace.step) for task, pace in listener.paces]
    epochs = [[(0, 1), (0, 2), (0, 3), (1, 0)], [(1, 1), (1, 2), (1, 3), (2, 0)]]
    assert told == [(task, *position) for task in (1, 2) for epoch in epochs for position in epoch]
    assert {(pace.epochs, pace.steps) for _, pace in listener.paces} == {(2, 3)}


def test_a_stopped_run_goes_on_where_it_stopped(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, epochs=2, out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(config, Listener(steps=10))
    listener = Listener()
    run(config, listener)
    assert listener.tasks == [1, 2]
    _, first = listener.paces[0]
    assert (first.epoch, first.step) == (0, 3)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"seed": 7}, r"class_order: \[.*\] there, \[.*\] here; seed: 0 there, 7 here"),
        ({"memory": 9}, "memory.total: 8 there, 9 here"),
        ({"tasks": 2}, r"task_sizes: \[2, 2, 2\] there, \[3, 3\] here; training.increments: 3 there, 2 here"),
        ({"options": {"temperature": 3}}, "options.temperature: 2.0 there, 3.0 here"),
        ({"epochs": 3}, "training.epochs: 2 there, 3 here"),
        ({"selection": "herding"}, "selection: 'random' there, 'herding' here"),
    ],
)
def test_another_configuration_is_refused(
    finished: tuple[Path, Record], dataset: Path, changes: dict[str, Any], shown: str
) -> None:
    out, _ = finished
    settings = {"tasks": 3, "epochs": 2, "memory": 8, "out": out} | changes
    with pytest.raises(UserError, match=rf"^out: .* holds a run with other settings \({shown}\); give another --out$"):
        run(tiny_runs.config(dataset, **settings))


def test_other_data_is_refused(finished: tuple[Path, Record], dataset: Path) -> None:
    pixels = dataset.read_bytes()
    try:
        tiny_runs.patterns(dataset, [6] * 6)
        with pytest.raises(UserError, match=r"was begun with other images .*; give another --out$"):
            run(tiny_runs.config(dataset, tasks=3, epochs=2, memory=8, out=finished[0]))
    finally:
        dataset.write_bytes(pixels)


def test_data_that_have_moved_are_followed(dataset: Path, tmp_path: Path) -> None:
    run(tiny_runs.config(dataset, tasks=2, method="ft,il2m", out=tmp_path / "out"))
    moved = tmp_path / "moved.npz"
    moved.write_bytes(dataset.read_bytes())
    run(tiny_runs.config(moved, tasks=2, method="ft,il2m", out=tmp_path / "out"))
    for folder in ("out", "out/il2m"):
        assert read_record(tmp_path / folder).config["dataset"] == str(moved)


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
        run(config, Listener(steps=2))
    checkpoints = Checkpoints(tmp_path / "checkpoint")
    meta, parts = checkpoints.load()
    old = {name.removeprefix("model/"): tensor for name, tensor in parts["progress"].items()}
    assert old != parts["progress"]
    checkpoints.save(meta, {**parts, "progress": old})
    assert tiny_runs.timeless(run(config)) == tiny_runs.timeless(run(tiny_runs.config(dataset, tasks=2)))


def test_how_a_run_is_carried_out_may_change(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tiny_runs.config(dataset, tasks=2, out=tmp_path), Listener(steps=2))
    record = run(tiny_runs.config(dataset, tasks=2, out=tmp_path, checkpoint_every="3", device="auto"))
    assert tiny_runs.timeless(record) == tiny_runs.timeless(run(tiny_runs.config(dataset, tasks=2)))


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
        run(config, Listener(steps=2))
    (file,) = (tmp_path / "checkpoint").glob("progress-*")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match=rf"^checkpoint: .*{file.name} is damaged .*"):
        run(config)


def test_a_loss_that_is_no_number_leaves_the_last_good_checkpoint(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, epochs=20, lr=1e9, out=tmp_path, checkpoint_every="1")
    with pytest.raises(
        UserError, match=r"^(loss|weights): .* became -?(nan|inf) in task 1, epoch \d+; try a smaller --lr$"
    ):
        run(config)
    tensors = tiny_runs.tensors(tmp_path)
    assert tensors
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    state = RunDirectory(tmp_path, "1").restore(set_up(config))
    assert state.progress is not None
    assert state.progress.step > 0


def test_herding_keeps_other_exemplars_and_the_same_numbers(dataset: Path, tmp_path: Path) -> None:
    kept = []
    for selection in ("random", "herding"):
        run(tiny_runs.config(dataset, tasks=2, memory=6, selection=selection, out=tmp_path / selection))
        kept.append(tiny_runs.tensors(tmp_path / selection)["memory/indices"])
    assert kept[0].shape == kept[1].shape == (6,)
    assert not torch.equal(*kept)


def test_validation_takes_its_images_from_training(dataset: Path) -> None:
    whole, part = (set_up(tiny_runs.config(dataset, tasks=2, validate=share)).stream for share in (0, 0.4))
    assert (len(whole.train), len(whole.test)) == (30, 24)
    assert (len(part.train), len(part.test)) == (18, 12)


def test_a_class_order_from_a_seed_or_a_file(dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "order.txt"
    file.write_text("5\n3\n1\n0\n2\n4\n")
    orders = [
        set_up(tiny_runs.config(dataset, tasks=2, seed=4, class_order=order)).record.class_order
        for order in (None, 4, "4", str(file))
    ]
    assert orders[0] == orders[1] == orders[2]
    assert orders[3] == [5, 3, 1, 0, 2, 4]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": 5}, r"memory: 5 is less than one exemplar for each of 6 classes; give at least that"),
        ({"tasks": 7}, r"tasks: 7 tasks can't share 6 classes; give a number from 1 to 6"),
        ({"lr": [0.1, 0.2]}, r"lr: \[0.1, 0.2\] has 2 values for 2 milestones; .*"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(
    dataset: Path, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=f"^{message}$"):
        run(tiny_runs.config(dataset, **{"tasks": 2, "out": tmp_path / "out"} | settings))
    assert not (tmp_path / "out").exists()


def test_without_a_directory_nothing_is_written(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(tiny_runs.config(dataset, tasks=2))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed"])
def test_other_precisions(dataset: Path, precision: str) -> None:
    """They learn the same stream, not the same bits; precision belongs to what is computed."""
    plain, other = (run(tiny_runs.config(dataset, tasks=2, precision=p)) for p in ("32-true", precision))
    assert other.config["precision"] == precision
    pairs = zip(plain.tasks[0].loss["main"]["ce"], other.tasks[0].loss["main"]["ce"], strict=True)
    assert all(0 < abs(a - b) < 0.1 * a for a, b in pairs)


def test_an_option_younger_than_a_record_has_its_default_there(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, method="ssil", out=tmp_path)
    record = run(config)
    del record.config["options"]["min_group"]
    write_record(tmp_path, record)
    assert run(config).tasks == record.tasks
    with pytest.raises(UserError, match=r"\(options.min_group: 2 there, 3 here\)"):
        run(tiny_runs.config(dataset, tasks=2, method="ssil", out=tmp_path, options={"min_group": 3}))


def test_a_directory_with_other_things_in_it_is_left_alone(dataset: Path) -> None:
    with pytest.raises(UserError, match=r"^out: .* is not empty and holds no run; give a new directory$"):
        run(tiny_runs.config(dataset, tasks=2, out=dataset.parent))
    assert not (dataset.parent / "lock").exists()


def test_a_changed_method_file_is_noticed(dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from ssil.methods.rehearsal import er\n")
    config = tiny_runs.config(dataset, tasks=2, method=f"{file}:er", out=tmp_path / "out")
    run(config)
    file.write_text("from ssil.methods.rehearsal import er  # changed\n")
    with pytest.raises(UserError, match=r"^out: .* was begun with another content of the method's file; give another"):
        run(config)
