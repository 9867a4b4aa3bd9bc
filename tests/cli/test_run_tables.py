"""Tables and titles of runs."""

import io
from pathlib import Path

from rich.console import Console

from ssil.benchmark.record import Record, read_record
from ssil.cli.run_tables import run_table, run_title


def test_eighty_columns_hide_no_run(finished_record: Record) -> None:
    drawn = io.StringIO()
    Console(file=drawn, width=80).print(
        run_table({"runs/a": finished_record, "runs/some-longer-name": finished_record})
    )
    assert "runs/a" in drawn.getvalue()
    assert max(map(len, drawn.getvalue().splitlines())) <= 80


def test_the_title_says_what_the_numbers_are_of() -> None:
    record = read_record(Path(__file__).parents[2] / "docs" / "results" / "glyphs-10" / "ssil-0")
    assert run_title(record) == "ssil on glyphs (synthetic): 50 classes in 10 tasks, 100 exemplars, seed 0"
    some = record.model_copy(update={"task_sizes": [5, 5], "config": record.config | {"validation": 0.2}})
    assert "10 of 50 classes in 2 tasks" in run_title(some)
    assert run_title(some).endswith("tested on 20 % of the training images")
