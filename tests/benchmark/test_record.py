import json
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from ssil.benchmark.record import Record, TaskRecord, read_predictions, read_record, write_predictions, write_record
from ssil.core.errors import UserError
from ssil.learning.metrics import Predictions

GOLDEN = Path(__file__).parents[1] / "golden"
SIZES = [(174_450, 702_400), (174_580, 702_920), (174_710, 703_440)]
"""Parameters and bytes of the golden record's models: each task adds two rows of 64 weights and a bias."""
SCHEMA = json.loads(files("ssil.benchmark").joinpath("record.schema.json").read_text())


def golden(version: int = 4) -> dict[str, Any]:
    """A record that was written when this version was the newest."""
    raw: dict[str, Any] = json.loads((GOLDEN / f"record-v{version}.json").read_text())
    return raw


def stored(folder: Path, raw: object) -> Path:
    (folder / "record.json").write_text(raw if isinstance(raw, str) else json.dumps(raw))
    return folder


def test_the_schema_is_up_to_date() -> None:
    update = "python -m ssil.benchmark.record > src/ssil/benchmark/record.schema.json"
    assert Record.model_json_schema(mode="serialization") == SCHEMA, f"record.py has changed; update with: {update}"


def test_the_schema_describes_the_stored_record() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(golden(), SCHEMA)


@pytest.mark.parametrize(
    "damage", [{"version": 2}, {"tasks": [{}]}, {"summary": {}}, {"colour": "red"}, {"task_sizes": ["two"]}]
)
def test_the_schema_refuses_other_records(damage: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(golden() | damage, SCHEMA)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_stored_record_of_any_version_loads(version: int, tmp_path: Path) -> None:
    record = read_record(stored(tmp_path, golden(version)))
    assert (record.task_sizes, len(record.tasks), record.config["method"]) == ([2, 2, 2], 3, "ssil")
    assert record.summary is not None
    assert record.summary.last_top1 == record.tasks[-1].top1
    assert [task.score_gap for task in record.tasks] == ([None] * 3 if version == 1 else [None, 1.5, 3.0])
    assert [task.images_seen for task in record.tasks] == [16, 30, 30]
    assert [task.gradient_steps for task in record.tasks] == [2 if version >= 3 else None] * 3
    assert (record.summary.images_seen, record.summary.gradient_steps) == (76, 6 if version >= 3 else None)
    sizes = [(task.parameters, task.model_bytes) for task in record.tasks]
    assert sizes == (SIZES if version == 4 else [(None, None)] * 3)
    assert record.summary.training_seconds == sum(task.training_seconds for task in record.tasks)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    record = read_record(stored(tmp_path, golden()))
    write_record(tmp_path, record)
    assert read_record(tmp_path) == record
    assert json.loads((tmp_path / "record.json").read_text()) == golden()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (golden() | {"version": 99}, "version 99 is not known; this ssil reads up to version 4"),
        ({"tasks": []}, "version None is not known; this ssil reads up to version 4"),
        (golden() | {"colour": "red"}, "colour: extra inputs are not permitted"),
        ("{", "Expecting property name enclosed in double quotes.*"),
        ("[]", "it is not a JSON object"),
    ],
)
def test_a_record_that_cannot_be_read(tmp_path: Path, raw: object, reason: str) -> None:
    cure = "restore it or run again in a new folder"
    with pytest.raises(UserError, match=rf"^record: .*record.json can't be read \({reason}\); {cure}$"):
        read_record(stored(tmp_path, raw))


def test_a_folder_without_a_record(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^run: .* holds no record.json; give the --out directory of a run$"):
        read_record(tmp_path)


def test_a_folder_of_runs_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    stored(tmp_path / "one", golden())
    with pytest.raises(UserError, match=rf"holds no record.json; give its runs: {tmp_path}/\*$"):
        read_record(tmp_path)


def test_the_summary_comes_with_the_last_task() -> None:
    raw = golden()
    tasks = [TaskRecord(**task) for task in raw.pop("tasks")]
    summary = raw.pop("summary")
    record = Record(**raw)
    for task in tasks:
        assert record.summary is None
        record = record.with_task(task)
    assert record.summary is not None
    assert record.summary.model_dump() == summary
    assert summary["average_top1"] == pytest.approx(sum(task.top1 for task in tasks) / 3)
    one, two, _ = (list(column) for column in zip(*(task.task_top1 + [0.0] * 2 for task in tasks), strict=False))
    drops = [max(one[:2]) - one[2], two[1] - two[2]]
    assert summary["forgetting"] == pytest.approx(sum(drops) / 2)


def test_predictions_come_back_as_they_were(tmp_path: Path) -> None:
    columns = {part.name: torch.tensor([0.5, torch.nan]) for part in fields(Predictions)}
    predictions = Predictions(**columns | {"labels": torch.tensor([3, 1]), "top": torch.tensor([[3, 1], [0, 2]])})
    write_predictions(tmp_path, 7, predictions)
    back = read_predictions(tmp_path, 7)
    for part in fields(Predictions):
        torch.testing.assert_close(getattr(back, part.name), getattr(predictions, part.name), equal_nan=True)
    assert [file.name for file in (tmp_path / "arrays").iterdir()] == ["task-07.safetensors"]


def test_predictions_of_older_versions_lack_the_best_class_of_the_task(tmp_path: Path) -> None:
    older = {part.name: torch.ones(3) for part in fields(Predictions) if part.name != "within_task"}
    write_predictions(tmp_path, 1, Predictions(**older))
    assert read_predictions(tmp_path, 1).within_task is None
    tasks = [{name: value for name, value in task.items() if name != "task_aware_top1"} for task in golden()["tasks"]]
    assert [task.task_aware_top1 for task in read_record(stored(tmp_path, golden() | {"tasks": tasks})).tasks] == [
        None
    ] * 3


def test_a_deeply_nested_record_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^record: .*record\.json can't be read .*; restore it") as refused:
        read_record(stored(tmp_path, "[" * 100_000))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("length", [0, 7, 40, -1])
def test_truncated_predictions_are_named(tmp_path: Path, length: int) -> None:
    path = tmp_path / "arrays" / "task-01.safetensors"
    ones = {part.name: torch.ones(3) for part in fields(Predictions)}
    write_predictions(tmp_path, 1, Predictions(**ones))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(UserError, match=r"^run: .*task-01\.safetensors is damaged"):
        read_predictions(tmp_path, 1)
    (tmp_path / "checksums.json").unlink()
    with pytest.raises(UserError, match=r"^arrays: .*task-01\.safetensors can't be read"):
        read_predictions(tmp_path, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"task_sizes": []},
        {"task_sizes": [-2, 4, 4]},
        {"tasks": golden()["tasks"][::-1]},
        {"tasks": golden()["tasks"] * 2},
        {"tasks": [golden()["tasks"][0] | {"task_top1": []}, *golden()["tasks"][1:]]},
        {"config": golden()["config"] | {"options": 3}},
    ],
)
def test_a_record_that_contradicts_itself_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^record: .*record\.json can't be read"):
        read_record(stored(tmp_path, golden() | change))
