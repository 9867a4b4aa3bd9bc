"""Every method learns streams in which classes and images return, with tasks that bring known classes alone."""

from pathlib import Path

import pytest

import tiny_runs
from ssil.benchmark.runner import run
from ssil.learning.registry import recipes
from ssil.learning.schedule import Training

ROWS = [
    *((image, 1) for image in range(12)),
    *((image, 2) for image in (*range(4, 20), 24, 25)),
    *((image, 3) for image in range(0, 24, 2)),
    *((image, 4) for image in range(24, 32)),
]
"""Eight images of each of four classes: two new classes; one and a few of another, with known images again; no new
class; and more images of the last two."""


@pytest.mark.parametrize("name", list(recipes()))
def test_a_stream_of_returning_classes_and_images(name: str, tmp_path: Path) -> None:
    dataset, table = tiny_runs.patterns(tmp_path / "patterns.npz", [8] * 4), tmp_path / "stream.csv"
    table.write_text("index,task\n" + "".join(f"{image},{task}\n" for image, task in ROWS))
    settings = {"method": name, "memory": 8, "epochs": 12, "later_epochs": 12, "batch": 4, "lr": 0.03}
    record = run(tiny_runs.config(dataset, **settings, stream=str(table)))
    assert record.task_sizes == [2, 2, 0, 0]
    kept = sum(record.tasks[-1].memory_counts)
    assert (
        kept
        == {"none": 0, "budget": 8, "all": len({image for image, _ in ROWS})}[recipes()[name].build(Training()).memory]
    )
    assert record.summary is not None
    assert record.summary.average_top1 > 50, [task.top1 for task in record.tasks]
