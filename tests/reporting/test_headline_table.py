"""The headline table has the runs' own numbers, and marks as best only what can be."""

import csv
import io

from report_runs import run
from ssil.reporting.headline_table import headline, headlines, kept_megabytes, numbers
from ssil.reporting.sections import sections

RUNS = [run("ft", seed=0), run("ft", (80, 50, 30), seed=1), run("ssil", (90, 80, 70)), run("er", (100, 100))]
BOUND = run("joint", (99, 99, 99), memory={"kind": "unlimited"})


def test_rows() -> None:
    (section,) = sections([*RUNS, BOUND])
    table = headline(section)
    assert table.header[:4] == ["variant", "seeds", "tasks", "average top-1"]
    assert table.rows == [
        ["ssil", "1", "3/3", "80.0", "96.7", "70.0", "15.0", "75.0", "0.01", "2700", "27", "30", "503"],
        [
            *["ft", "2", "3/3", "58.3 ± 7.1", "76.7 ± 4.7", "35.0 ± 7.1", "35.0 ± 0.0", "75.0 ± 0.0"],
            *["0.01 ± 0.00", "2700 ± 0", "27 ± 0", "30 ± 0", "503 ± 0"],
        ],
        ["joint", "1", "3/3", "99.0", "100.0", "99.0", "0.0", "75.0", "0.01", "2700", "27", "30", "503"],
        ["er", "1", "2/3", "100.0", "100.0", "100.0", "0.0", "75.0", "0.01", "1800", "18", "20", "502"],
    ]


def test_best_is_neither_a_bound_nor_unfinished_and_ties_share() -> None:
    (section,) = sections([*RUNS, BOUND])
    best = headline(section).best
    assert {cell for cell in best if cell[1] < 7} == {(0, column) for column in (3, 4, 5, 6)}
    assert {cell for cell in best if cell[1] >= 7} == {(row, column) for row in (0, 1) for column in (7, 11, 12)}
    (alone,) = sections(RUNS[:2])
    assert not headline(alone).best


def test_the_best_share_is_the_nearest_to_that_of_the_images() -> None:
    far = run("ft")
    near = run("ssil")
    last = near.record.tasks[-1].model_copy(update={"confusion": [[8, 0, 0], [0, 6, 2], [2, 0, 6]]})  # 8 of 24: a third
    near.record.tasks[-1:] = [last]
    few = run("er")
    few.record.tasks[-1:] = [last.model_copy(update={"confusion": [[8, 0, 0], [0, 8, 0], [8, 0, 0]]})]
    table = headline(sections([far, few, near])[0])
    (best,) = (row for row, column in table.best if column == 7)
    assert table.rows[best][0] == "ssil"


def test_top1_with_the_task_known_is_averaged_over_the_tasks_and_missing_numbers_do_not_compete() -> None:
    known, other, old = run("ft"), run("er"), run("ssil", (90, 80, 70))
    for one, values in ((known, (90, 60, 30)), (other, (99, 96, 93))):
        tasks = one.record.tasks
        tasks[:] = [task.model_copy(update={"task_aware_top1": v}) for task, v in zip(tasks, values, strict=True)]
    table = headline(sections([known, other, old])[0])
    column = table.header.index("task known")
    assert {row[0]: row[column] for row in table.rows} == {"ft": "60.0", "er": "96.0", "ssil": "-"}
    assert [table.rows[row][0] for row, place in table.best if place == column] == ["er"]


def test_the_column_is_left_out_where_no_variant_has_the_number_of_all_its_runs() -> None:
    known, old = run("ft", seed=0), run("ft", (80, 50, 30), seed=1)
    known.record.tasks[:] = [task.model_copy(update={"task_aware_top1": 50.0}) for task in known.record.tasks]
    assert "task known" in headline(sections([known])[0]).header
    assert "task known" not in headline(sections([known, old])[0]).header


def test_several_streams_are_told_apart() -> None:
    found = sections([*RUNS, run("ft", sizes=(4, 1, 1)), run("ssil", (90, 80, 70), sizes=(4, 1, 1))])
    table = headlines(found)
    assert table.header[0] == "stream"
    assert [row[0] for row in table.rows] == [found[0].title] * 3 + [found[1].title] * 2
    assert {row for row, column in table.best if column == 4} == {0, 3}
    assert headlines(found[:1]) == headline(found[0])


def test_numbers_have_all_digits() -> None:
    rows = list(csv.DictReader(io.StringIO(numbers(sections(RUNS)).csv())))
    assert [row["variant"] for row in rows] == ["ssil", "ft", "er"]
    assert float(rows[1]["average_top1"]) == 175 / 3
    assert rows[0]["average_top1_deviation"] == ""
    assert round(float(rows[1]["last_top1_deviation"]) ** 2, 9) == 50


def test_costs_are_shown_and_none_is_best() -> None:
    counted, uncounted = run("ft"), run("ssil")
    uncounted.record.tasks[:] = [task.model_copy(update={"gradient_steps": None}) for task in uncounted.record.tasks]
    found = sections([counted, uncounted])
    table = headline(found[0])
    images, steps = table.header.index("images seen"), table.header.index("gradient steps")
    assert {row[images] for row in table.rows} == {"2700"}
    assert {row[0]: row[steps] for row in table.rows} == {"ft": "27", "ssil": "-"}
    assert not any(place in (images, steps) for _, place in table.best)
    cells = {row["variant"]: row["gradient_steps"] for row in csv.DictReader(io.StringIO(numbers(found).csv()))}
    assert cells == {"ft": "27.0", "ssil": ""}


def test_megabytes_are_those_of_model_exemplars_and_what_is_stored() -> None:
    """By hand: 4,000 bytes of images, 300 stored with them and 4,200 of the model."""
    known, unknown = run("ft"), run("ssil")
    unknown.record.tasks[:] = [task.model_copy(update={"model_bytes": None}) for task in unknown.record.tasks]
    assert kept_megabytes(known.record.tasks[-1]) == 8_500 / 1_048_576
    table = headline(sections([known, unknown])[0])
    column = table.header.index("MB kept")
    assert {row[0]: row[column] for row in table.rows} == {"ft": "0.01", "ssil": "-"}
