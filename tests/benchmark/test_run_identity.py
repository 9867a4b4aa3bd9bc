"""Which runs a directory continues, and which it refuses."""

from pathlib import Path
from typing import Any

import pytest

import tiny_runs
from ssil.benchmark.record import Record, read_record, write_record
from ssil.benchmark.runner import run
from ssil.core.errors import UserError


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


def test_how_a_run_is_carried_out_may_change(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tiny_runs.config(dataset, tasks=2, out=tmp_path), tiny_runs.Stopper(2))
    record = run(tiny_runs.config(dataset, tasks=2, out=tmp_path, checkpoint_every="3", device="auto"))
    assert tiny_runs.timeless(record) == tiny_runs.timeless(run(tiny_runs.config(dataset, tasks=2)))


def test_an_option_younger_than_a_record_has_its_default_there(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, tasks=2, method="ssil", out=tmp_path)
    record = run(config)
    del record.config["options"]["min_group"]
    write_record(tmp_path, record)
    assert run(config).tasks == record.tasks
    with pytest.raises(UserError, match=r"\(options.min_group: 2 there, 3 here\)"):
        run(tiny_runs.config(dataset, tasks=2, method="ssil", out=tmp_path, options={"min_group": 3}))


def test_a_changed_method_file_is_noticed(dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from ssil.methods.rehearsal import er\n")
    config = tiny_runs.config(dataset, tasks=2, method=f"{file}:er", out=tmp_path / "out")
    run(config)
    file.write_text("from ssil.methods.rehearsal import er  # changed\n")
    with pytest.raises(UserError, match=r"^out: .* was begun with another content of the method's file; give another"):
        run(config)
