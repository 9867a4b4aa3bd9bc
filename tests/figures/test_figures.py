"""Figures show what the records hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssil.figures import style
from ssil.figures.confusion import task_confusion
from ssil.figures.curves import accuracy_curves
from ssil.record import Record, TaskRecord


def _task(number: int, top1: float, confusion: list[list[int]]) -> TaskRecord:
    unseen: dict[str, Any] = dict.fromkeys(TaskRecord.model_fields)
    seen = {"task": number, "classes_seen": 5 * number, "top1": top1, "confusion": confusion}
    return TaskRecord.model_construct(**unseen | seen)


def _record(method: str, top1: list[float]) -> Record:
    confusion = [[3, 1], [0, 0]]
    return Record(
        config={"method": method, "dataset": "some"},
        provenance={},
        class_order=list(range(10)),
        class_names=[str(name) for name in range(10)],
        task_sizes=[5, 5],
    ).model_copy(update={"tasks": [_task(n, value, confusion) for n, value in enumerate(top1, 1)]})


def test_curves_hold_the_accuracies() -> None:
    figure = accuracy_curves([_record("ft", [90, 40]), _record("a/file.py:mine", [80])])
    first, second = figure.axes[0].lines
    assert np.array_equal(first.get_xydata(), [[5, 90], [10, 40]])
    assert np.array_equal(second.get_xydata(), [[5, 80]])
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "ft: 65.0 on average, 40.0 at the end",
        "mine: 80.0 on average, 80.0 at the end",
    ]


def test_confusion_holds_row_percentages() -> None:
    figure = task_confusion([_record("ft", [90, 40]), _record("ssil", [90, 50])])
    left, right = figure.axes[:2]
    assert np.array_equal(np.asarray(left.images[0].get_array()), [[75, 25], [0, 0]])
    assert left.get_title(loc="left") == "ft: 25 % on the newest task"
    assert right.get_title(loc="left").startswith("ssil")
    assert [text.get_text() for text in left.texts] == ["75", "25", "0", "0"]


def test_a_method_looks_the_same_in_any_company() -> None:
    alone, together = style.looks(["ft"]), style.looks(["mine", "ft", "ssil", "another"])
    assert alone["ft"] == together["ft"]
    assert len(set(together.values())) == 4


def test_many_looks_differ() -> None:
    assert len({style.look(index) for index in range(168)}) == 168


@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_saved_as_the_name_says(ending: str, tmp_path: Path) -> None:
    path = style.save(accuracy_curves([_record("ft", [90, 40])]), tmp_path / "new" / f"a.{ending}")
    assert path.read_bytes()[1:4].upper() in (b"PNG", b"PDF")
