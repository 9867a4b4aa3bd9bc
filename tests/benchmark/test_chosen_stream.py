"""Runs on streams in which classes and images return."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny_runs
from image_trees import write_images
from ssil.benchmark.config import make_config
from ssil.benchmark.grid.cells import Cell, finished_record
from ssil.benchmark.record import Record, read_record
from ssil.benchmark.results import Run, variants
from ssil.benchmark.run_setup import RunSetup, set_up
from ssil.benchmark.runner import run
from ssil.cli import main
from ssil.core.errors import UserError

FUNCTION = """
import numpy as np


def halves(labels, random, tasks):
    order = random.permutation(len(labels))
    return [(image, 1 + place * tasks // len(order)) for place, image in enumerate(order)]


def twice(labels, random, tasks):
    return [(image, task) for image in range(len(labels)) for task in (1, tasks)]


def other(labels, random, tasks):
    return [(0, 1)]
"""


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("functions") / "own.py"
    path.write_text(FUNCTION)
    return path


def table(folder: Path, rows: Sequence[tuple[int | str, int]], column: str = "index") -> str:
    path = folder / "stream.csv"
    path.write_text(f"{column},task\n" + "".join(f"{image},{task}\n" for image, task in rows))
    return str(path)


def prepared(dataset: Path, **settings: Any) -> RunSetup:
    return set_up(tiny_runs.config(dataset, **settings))


def same_results(first: Record, second: Record) -> bool:
    ignored = {"config", "provenance"}
    ours, theirs = (tiny_runs.timeless(record) for record in (first, second))
    return all(ours[name] == theirs[name] for name in ours if name not in ignored)


@pytest.mark.parametrize("name", ["blurry", "returning", "repeating"])
def test_a_ready_made_stream_of_0_percent_is_the_stream_of_disjoint_classes(dataset: Path, name: str) -> None:
    settings = {"tasks": 3, "memory": 8, "seed": 3}
    plain = run(tiny_runs.config(dataset, **settings))
    assert same_results(run(tiny_runs.config(dataset, **settings, stream=f"{name}:0")), plain)


def test_a_table_of_disjoint_classes_is_that_stream_too(dataset: Path, tmp_path: Path) -> None:
    plain = prepared(dataset, tasks=3, seed=3).stream
    rows = [(image, task.number) for task in plain.tasks for image in task.indices.tolist()]
    settings = {"memory": 8, "seed": 3}
    own = run(tiny_runs.config(dataset, **settings, stream=table(tmp_path, rows)))
    assert same_results(own, run(tiny_runs.config(dataset, **settings, tasks=3)))


def test_a_class_belongs_to_the_first_task_that_has_it(dataset: Path, tmp_path: Path) -> None:
    """Five images of each of six classes; class 4 comes in the first task, class 0 in two, class 5 never."""
    rows = [(20, 1), (21, 1), (0, 1), (5, 2), (6, 2), (1, 2), (10, 3), (15, 3), (21, 3)]
    stream = prepared(dataset, stream=table(tmp_path, rows), class_order=0).stream
    order = prepared(dataset, tasks=1, class_order=0).stream.class_order
    assert [task.classes.sizes for task in stream.tasks] == [(2,), (2, 1), (2, 1, 2)]
    assert {*stream.class_order[:2]} == {0, 4}
    assert stream.class_order[2] == 1
    assert {*stream.class_order[3:5]} == {2, 3}
    for group in (stream.class_order[:2], stream.class_order[3:5]):
        assert [c for c in order if c in group] == list(group)
    assert [task.indices.tolist() for task in stream.tasks] == [[0, 20, 21], [1, 5, 6], [10, 15, 21]]
    tested = [sorted({stream.class_order[label] for label in stream.test.labels[stream.seen(t)]}) for t in stream.tasks]
    assert tested == [[0, 4], [0, 1, 4], [0, 1, 2, 3, 4]]


def test_a_task_without_a_new_class_is_tested_on_all_classes_seen(dataset: Path, tmp_path: Path) -> None:
    rows = [(image, 1) for image in range(10)] + [(image, 2) for image in range(6)]
    out = tmp_path / "out"
    record = run(tiny_runs.config(dataset, stream=table(tmp_path, rows), memory=8, out=out))
    first, second = record.tasks
    assert record.task_sizes == [2, 0]
    assert (first.classes_seen, second.classes_seen) == (2, 2)
    assert second.task_top1 == [second.top1, None]
    assert (second.score_new, second.softmax_new, second.score_gap) == (None, None, None)
    assert second.score_old is not None
    assert record.summary is not None
    assert record.summary.forgetting == pytest.approx(first.top1 - second.top1)
    assert read_record(out) == record


def test_records_of_disjoint_classes_have_a_class_in_each_task(dataset: Path, tmp_path: Path) -> None:
    run(tiny_runs.config(dataset, tasks=2, out=tmp_path))
    file = tmp_path / "record.json"
    damaged = json.loads(file.read_text()) | {"task_sizes": [6, 0]}
    (tmp_path / "checksums.json").unlink()
    file.write_text(json.dumps(damaged))
    with pytest.raises(UserError, match=r"task_sizes: \[6, 0\] do not fit 6 classes"):
        read_record(tmp_path)


def test_no_exemplar_is_kept_twice_and_known_ones_stay(dataset: Path, function: Path) -> None:
    """All images come in the first task and again in the third: the exemplars are those of the first task."""
    settings = {"stream": f"{function}:halves", "tasks": 3, "memory": 12}
    for stream, tasks in ((f"{function}:halves", 3), (f"{function}:twice", 2)):
        setup_counts = run(tiny_runs.config(dataset, **settings | {"stream": stream, "tasks": tasks})).tasks
        assert [sum(task.memory_counts) for task in setup_counts] == [10 if tasks == 3 else 12, *[12] * (tasks - 1)]
    joint = run(tiny_runs.config(dataset, stream=f"{function}:twice", tasks=2, method="joint"))
    assert [sum(task.memory_counts) for task in joint.tasks] == [30, 30]


def test_a_resumed_run_equals_an_uninterrupted_one(dataset: Path, function: Path, tmp_path: Path) -> None:
    settings = {"stream": f"{function}:halves", "tasks": 3, "memory": 12, "method": "ssil"}
    tiny_runs.resumed(dataset, tmp_path, 2, **settings)


@pytest.mark.parametrize(
    ("settings", "changes", "message"),
    [
        ({"stream": "blurry:20"}, {"stream": "blurry:30"}, r"stream: 'blurry:20' there, 'blurry:30' here"),
        ({"stream": "blurry:20"}, {"stream": None}, r"stream: 'blurry:20' there, None here"),
        ({"stream": "blurry:20"}, {"seed": 1}, r"seed: 0 there, 1 here; stream_fingerprint: "),
        ({"stream": "blurry:20"}, {"tasks": 2}, r"stream_fingerprint: .*; stream_settings.tasks: 3 there, 2 here"),
        ({}, {"stream": "returning:20"}, r"stream: None there, 'returning:20' here"),
    ],
)
def test_another_stream_is_another_run(
    dataset: Path, tmp_path: Path, settings: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    usual = {"tasks": 3, "out": tmp_path, "method": "slda"}
    run(tiny_runs.config(dataset, **usual | settings))
    with pytest.raises(UserError, match=rf"^out: .* holds a run with other settings \(.*{message}"):
        run(tiny_runs.config(dataset, **usual | settings | changes))


def test_a_changed_table_or_function_is_noticed(dataset: Path, tmp_path: Path) -> None:
    rows = [(image, 1 + image // 15) for image in range(30)]
    code = tmp_path / "own.py"
    code.write_text(FUNCTION)
    _check_change_is_noticed(dataset, tmp_path, table(tmp_path, rows), Path(table(tmp_path, rows)))
    _check_change_is_noticed(dataset, tmp_path, f"{code}:twice", code)


def _check_change_is_noticed(dataset: Path, folder: Path, stream: str, file: Path) -> None:
    config = tiny_runs.config(dataset, stream=stream, out=folder / f"out-{file.name}", method="slda", tasks=2)
    run(config)
    assert run(config).summary
    file.write_text(file.read_text() + "\n")
    with pytest.raises(UserError, match=r"was begun with another content of the stream's file; give another"):
        run(config)


def test_a_grid_knows_its_finished_cells(dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, stream="returning:40", tasks=3, method="slda")
    settings = {name: getattr(config, name) for name in config.model_fields_set}
    cell = Cell("", "slda", 0, settings)
    run(make_config({**settings, "out": tmp_path / cell.folder}))
    assert finished_record(cell, tmp_path) is not None
    for change in ({"stream": "returning:41"}, {"tasks": 2}, {"large_base": True}, {"class_order": 5}):
        assert finished_record(Cell("", "slda", 0, settings | change), tmp_path) is None


def test_seeds_of_a_stream_are_one_variant(dataset: Path) -> None:
    """Also where the number of classes that are new in a task depends on the seed."""
    records = [run(tiny_runs.config(dataset, stream="blurry:20", tasks=3, seed=s, method="slda")) for s in range(4)]
    assert len({tuple(record.task_sizes) for record in records}) > 1
    assert len({record.config["stream_fingerprint"] for record in records}) == 4
    (members,) = variants([Run(Path(str(seed)), record) for seed, record in enumerate(records)]).values()
    assert len(members) == 4


def test_paths_name_images_of_a_folder(tmp_path: Path) -> None:
    names = [f"{name}/{number}.png" for name in ("ant", "bee") for number in range(5)]
    write_images(tmp_path / "photos", *names)
    settings = {"image_size": 8, "augment": "none"}
    plain = prepared(tmp_path / "photos", tasks=1, **settings)
    images = plain.context.samples.images.names  # type: ignore[attr-defined]
    rows = [(images[0], 1), (images[-1], 1), (images[1], 2), (images[0], 2)]
    stream = prepared(tmp_path / "photos", stream=table(tmp_path, rows, "path"), **settings).stream
    assert [task.indices.tolist() for task in stream.tasks] == [[0, len(images) - 1], [0, 1]]


def test_images_held_out_for_validation_are_left_out_of_a_table(dataset: Path, tmp_path: Path) -> None:
    rows = [(image, 1 + image % 2) for image in range(30)]
    setup = prepared(dataset, stream=table(tmp_path, rows), validation=0.4)
    whole = np.load(dataset)["x_train"]
    assert sum(len(task.indices) for task in setup.stream.tasks) == 18
    for task in setup.stream.tasks:
        for pixels in setup.context.samples.images.fetch(task.indices).numpy():
            (place,) = [index for index, image in enumerate(whole) if np.array_equal(image, pixels[..., 0])]
            assert 1 + place % 2 == task.number


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([(0, 1), (0, 1)], {}, "stream: image 0 comes twice in task 1; give each pair once"),
        ([(0, 1), (5, 3)], {}, "stream: it has a task 3, but not all before it; count tasks from 1, without a gap"),
        ([(0, 2)], {}, "stream: it has a task 2, but not all before it"),
        ([(99, 1)], {}, "row 1: '99' is no training image; give numbers from 0 to 29"),
        ([(0, 1)], {"least": 0.5}, "imbalance: it changes the indices by which"),
        ([(0, 1)], {"classes": 2}, "classes: it changes the indices by which"),
        ([(0, 1)], {"train_per_class": 2}, "train_per_class: it changes the indices by which"),
    ],
)
def test_tables_that_do_not_fit(
    dataset: Path, tmp_path: Path, rows: list[tuple[int, int]], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as raised:
        prepared(dataset, stream=table(tmp_path, rows), **settings)
    assert message in str(raised.value)


def test_functions_that_do_not_fit(dataset: Path, function: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"stream: .*:other gave 1 tasks, and was asked for 3; see --tasks"):
        prepared(dataset, stream=f"{function}:other", tasks=3)
    with pytest.raises(UserError, match=r"has no 'nothing'"):
        prepared(dataset, stream=f"{function}:nothing", tasks=3)
    with pytest.raises(UserError, match=r"stream: '.*none.py': there is no such file"):
        prepared(dataset, stream=f"{tmp_path}/none.py", tasks=3)


def test_a_function_draws_with_the_seed(dataset: Path, function: Path) -> None:
    prints = [prepared(dataset, stream=f"{function}:halves", tasks=3, seed=seed).stream for seed in (0, 0, 1)]
    assert prints[0].fingerprint == prints[1].fingerprint != prints[2].fingerprint
    for before, after in pairwise(prints[0].tasks):
        assert not torch.isin(before.indices, after.indices).any()


def test_it_is_named_where_runs_are_shown(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also with tasks that bring no new class: in tables, on the report's page and in its figures."""
    for seed in range(2):
        settings = {"stream": "blurry:40", "tasks": 3, "method": "slda", "seed": seed}
        run(tiny_runs.config(dataset, **settings, out=tmp_path / f"runs/{seed}"))
    assert 0 in read_record(tmp_path / "runs/0").task_sizes
    assert main(["show", str(tmp_path / "runs/0"), "--metrics"]) == 0
    assert "classes in 3 tasks (blurry:40)" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "runs/0")]) == 0
    assert main(["diff", str(tmp_path / "runs/0"), str(tmp_path / "runs/1")]) == 0
    assert main(["report", str(tmp_path / "runs"), "--out", str(tmp_path / "page"), "--figures", "svg"]) == 0
    page = (tmp_path / "page/index.html").read_text()
    assert "in 3 tasks, blurry:40" in page
    assert "these are the new ones of each task" in page
