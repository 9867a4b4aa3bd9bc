"""The settings of a run, from TOML files and flags: *what* is computed, and *how* the run is carried out."""

import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ssil.benchmark.stream_functions import check_stream_name, source_file
from ssil.benchmark.stream_table import is_table, read_stream_table
from ssil.core.errors import UserError
from ssil.core.settings import MAX_SHOWN, Positive, Settings, setting, validated
from ssil.data.data_settings import DataSettings
from ssil.data.image_index import as_utf8
from ssil.learning.learning_settings import (
    ExecutionSettings,
    MemorySettings,
    MethodSettings,
    NetworkSettings,
    NumericSettings,
    TrainingSettings,
)
from ssil.learning.schedule import scale_later_milestones, scale_settings


class StreamSettings(Settings, group="Stream", resolved=True):
    """In which order the classes arrive, and how many in each task."""

    tasks: Positive = setting(10, "tasks of equal size")
    task_sizes: tuple[Positive, ...] | None = setting(None, "classes of each task, e.g. 50,10,10")
    large_base: bool = setting(False, "half of the classes first, then --tasks more tasks")
    class_order: int | str | None = setting(
        None, "a seed, numpy:1993 (NumPy's), or a file of class names or indices, one per line (default: the seed)"
    )
    stream: str | None = setting(
        None,
        "classes that return: blurry:10, returning:30, repeating:20 (%), a table FILE.csv of images (path or index) "
        "and their tasks, or FILE.py:function; see docs/own-stream.md",
        resolved=False,
    )

    @model_validator(mode="after")
    def _one_way_to_give_sizes(self) -> Self:
        if self.task_sizes and (self.large_base or "tasks" in self.model_fields_set):
            raise ValueError("task_sizes: give --task-sizes alone, or --tasks with or without --large-base")
        return self

    @model_validator(mode="after")
    def _known_stream(self) -> Self:
        if self.stream is not None:
            check_stream_name(self.stream)
            if source_file(self.stream) and (self.task_sizes or self.large_base):
                raise ValueError(f"stream: {self.stream} decides the tasks; leave out --task-sizes and --large-base")
        return self

    @property
    def increments(self) -> int:
        """T: the tasks of an equal stream, those after a large base, all tasks of `task_sizes`, or of a table."""
        if self.stream and is_table(self.stream):
            return self._tasks_of_table(Path(self.stream))
        return len(self.task_sizes) if self.task_sizes else self.tasks

    def _tasks_of_table(self, path: Path) -> int:
        """Return the number of tasks of a table; raise UserError if another number is asked for."""
        count = max(read_stream_table(path).tasks)
        if "tasks" in self.model_fields_set and self.tasks != count:
            raise UserError(f"tasks: {self.tasks} are asked for, and {path} has {count}; leave out --tasks")
        return count


class RunDirectorySettings(Settings, group="How", how=True):
    """Where a run is kept, how often its state is saved, and where it can be followed live."""

    out: Path | None = setting(None, "the run's directory; the same command goes on where it stopped")
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = setting(
        None, "what tables call the run, in place of its method; seeds of one name share a row"
    )
    stream_name: Annotated[str, Field(min_length=1, max_length=100)] | None = setting(
        None, "what tables call the stream, in place of its data and tasks; `ssil grid` gives its scenarios' names"
    )
    checkpoint_every: str = setting("5min", "steps (200), seconds (90s) or minutes (5min) between checkpoints")
    track: Literal["tensorboard", "mlflow", "wandb"] | None = setting(
        None, "follow the run live in this tool; needs --out, in whose folder tracking/ it is kept"
    )

    @model_validator(mode="after")
    def _named_by_text(self) -> Self:
        if self.out and as_utf8(str(self.out)) != str(self.out):
            raise ValueError(f"out: {str(self.out)!r} is no text in UTF-8, which records are; give another directory")
        return self

    @model_validator(mode="after")
    def _interval(self) -> Self:
        checkpoint_interval(self.checkpoint_every)
        return self


class RunConfig(  # pydantic lists the fields of the last base first: data first, run directory last
    RunDirectorySettings,
    ExecutionSettings,
    NumericSettings,
    NetworkSettings,
    TrainingSettings,
    MethodSettings,
    MemorySettings,
    StreamSettings,
    DataSettings,
):
    """One run: a data set as a stream of tasks, a method, a seed. `None` leaves a choice to the profile or the data."""

    def what(self) -> dict[str, Any]:
        """Return the settings that decide the result as plain values, without those that a record states resolved."""
        exclude = {*self.names(how=True), *self.names(resolved=True)}
        return self.model_dump(mode="json", exclude=exclude, exclude_none=True)


def checkpoint_interval(text: str) -> tuple[int | None, float | None]:
    """Return the steps, or the seconds, between checkpoints.

    >>> checkpoint_interval("200"), checkpoint_interval("90s"), checkpoint_interval("5min")
    ((200, None), (None, 90.0), (None, 300.0))

    Raises:
        ValueError: `text` is neither.
    """
    number, unit = text.rstrip("mins "), text[len(text.rstrip("mins ")) :].strip()
    seconds = {"s": 1, "m": 60, "min": 60}
    with suppress(ValueError, KeyError):
        if not unit and int(number) > 0:
            return int(number), None
        if float(number) > 0:
            return None, float(number) * seconds[unit]
    raise ValueError(f"checkpoint_every: {text!r} is not a number of steps (200), 90s or 5min")


def read_toml(path: Path) -> dict[str, Any]:
    """Read the settings of a TOML file: keys as in `RunConfig`, the method's options as a table `[options]`.

    Raises:
        UserError: The file can't be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise UserError(f"config: {path} can't be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError) as error:  # also of numbers of thousands of digits, and of deep nesting
        raise UserError(f"config: {path} is not valid TOML: {str(error)[:MAX_SHOWN]}") from None


def make_config(settings: Mapping[str, Any]) -> RunConfig:
    """Return the validated configuration; raise UserError with one line about the first value that does not fit."""
    return validated(RunConfig, settings)


_CONTRADICTS = {
    "memory": {"memory_per_class", "memory_mb"},
    "memory_per_class": {"memory", "memory_mb"},
    "memory_mb": {"memory", "memory_per_class"},
    "tasks": {"task_sizes"},
    "large_base": {"task_sizes"},
    "task_sizes": {"tasks", "large_base"},
    "epochs": {"epoch_scale"},
    "epoch_scale": {"epochs", "later_epochs", "milestones", "later_milestones"},
}
"""The settings that a setting replaces, where it is given over them."""


def by_field_name(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with the names of fields in place of their aliases.

    >>> by_field_name({"validate": 0.1, "imbalance": 0.2, "tasks": 5})
    {'validation': 0.1, 'least': 0.2, 'tasks': 5}
    """
    names = {field.alias: name for name, field in RunConfig.model_fields.items() if field.alias}
    return {names.get(key, key): value for key, value in settings.items()}


def override(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `changes`, which also replace the settings that contradict them; options are merged.

    Where the epochs change, milestones and later epochs of `base` are scaled with them.

    >>> override({"memory": 500, "tasks": 10}, {"memory_per_class": 20})
    {'tasks': 10, 'memory_per_class': 20}
    >>> override({"epochs": 60, "later_epochs": 8, "lr": 0.1}, {"epoch_scale": 0.2})
    {'lr': 0.1, 'epoch_scale': 0.2}
    >>> override({"epochs": 100, "milestones": [40, 80]}, {"epochs": 10})
    {'epochs': 10, 'milestones': (4, 8)}
    """
    with suppress(ValueError, TypeError):  # `RunConfig` is going to refuse these
        base = {**base, **scale_later_milestones(base, changes)}
        if "epochs" in base and "epochs" in changes:
            base = scale_settings(base, int(base["epochs"]), int(changes["epochs"]))
    replaced = {other for name in changes for other in _CONTRADICTS.get(name, ())} - set(changes)
    merged = {name: value for name, value in base.items() if name not in replaced} | dict(changes)
    if "options" in base:  # if it is not a table, `RunConfig` is going to refuse it
        table = base["options"]
        merged["options"] = table | changes.get("options", {}) if isinstance(table, dict) else table
    return merged


def to_flags(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings as arguments of `ssil run`.

    >>> to_flags({"tasks": 5, "lr": (0.1, 0.01), "large_base": True, "options": {"batches": "mixed", "some": [1, 2]}})
    ['--tasks', '5', '--lr', '0.1,0.01', '--large-base', '--option', 'batches=mixed', '--option', 'some=[1, 2]']
    """
    aliases = {name: field.alias for name, field in RunConfig.model_fields.items() if field.alias}
    typed: list[str] = []
    for name, value in settings.items():
        flag = f"--{aliases.get(name, name).replace('_', '-')}"
        if name == "options":
            typed += [word for key, one in value.items() for word in ("--option", f"{key}={_option(one)}")]
        elif isinstance(value, bool):
            typed.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, list | tuple):
            single = name == "lr" and len(value) == 1  # the comma tells it from a rate that decays
            typed += [flag, ",".join(map(str, value)) + "," * single]
        elif value is not None:
            typed += [flag, str(value)]
    return typed


def _option(value: Any) -> str:
    """Return a plain string where `literal` reads it back as it is, otherwise JSON."""
    return value if isinstance(value, str) and literal(value) == value else json.dumps(value)


def literal(text: str) -> Any:
    """Read a TOML value; return `text` itself if it is none.

    >>> literal("2.5"), literal("true"), literal("[1, 2]"), literal("tkd")
    (2.5, True, [1, 2], 'tkd')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also of a number of thousands of digits, and of deep nesting
        return text
