"""The settings of a run: *what* is computed, which decides whether a directory may be resumed, and *how*."""

import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ssil.core.errors import UserError
from ssil.core.settings import validated
from ssil.learning.schedule import scale_milestones

Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]

HOW = frozenset(
    {
        "out",
        "data_root",
        "class_list",
        "strict",
        "in_memory",
        "hold_exemplars",
        "device",
        "devices",
        "nodes",
        "accumulate",
        "compile",
        "threads",
        "checkpoint_every",
        "track",
    }
)
"""The settings that say how a run is carried out; all others say what is computed."""

TRAINING = (
    "epochs",
    "later_epochs",
    "lr",
    "milestones",
    "decay",
    "lr_by_task",
    "batch",
    "momentum",
    "weight_decay",
    "new_head_init",
)
"""The training settings that override a profile's."""


RESOLVED = (
    "profile",
    "options",
    "tasks",
    "task_sizes",
    "large_base",
    "class_order",
    "memory",
    "memory_per_class",
    "init",
    "freeze",
)
"""Other settings that a record states as what they came to."""


class RunConfig(BaseModel):
    """One run: a data set as a stream of tasks, a method, a seed. `None` leaves a choice to the profile or the data."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    dataset: str = Field(
        "glyphs", description="a name (see `ssil datasets`), a folder, a store, a .csv, .parquet or .npz file"
    )
    classes: Positive | None = Field(None, description="only the first so many classes")
    class_list: Path | None = Field(None, description="only the classes named in this file, one a line")
    min_per_class: Positive | None = Field(None, description="leave out classes with fewer images (image files)")
    max_per_class: Positive | None = Field(None, description="use at most so many images a class (image files)")
    train_per_class: Positive | None = Field(None, description="training images a class")
    test_per_class: Positive | None = Field(None, description="test images a class")
    least: float | None = Field(
        None, gt=0, le=1, description="make classes uneven: the smallest has this part of its training images"
    )
    split_seed: int | None = Field(None, ge=0, description="of a random test split (default: 0)")
    image_size: Positive | None = Field(None, description="pixels a side, where the data set leaves a choice")
    augment: Literal["crop", "shift", "none"] | None = Field(
        None, description="training views of image files: random resized crops, small shifts, or none of these"
    )
    validation: float = Field(
        0.0, alias="validate", ge=0, lt=1, description="test on this part of the training images, for choosing settings"
    )

    tasks: Positive = Field(10, description="tasks of equal size")
    task_sizes: tuple[Positive, ...] | None = Field(None, description="classes of each task, e.g. 50,10,10")
    large_base: bool = Field(False, description="half of the classes first, then --tasks more tasks")
    class_order: int | str | None = Field(None, description="a seed, or a file with a class a line (default: the seed)")

    memory: Positive | None = Field(None, description="exemplars in all (default: 20 times the number of classes)")
    memory_per_class: Positive | None = Field(None, description="exemplars a class, however many classes there are")
    selection: Literal["random", "herding"] = Field("random", description="which images become exemplars")

    method: str = Field(
        "ssil", description="a name (see `ssil methods`), my_file.py:my_method, or names that share a training: ft,il2m"
    )
    profile: Literal["paper", "official", "quick"] = Field(
        "paper", description="the paper's settings, what its authors' code runs, or a short schedule for a CPU"
    )
    options: dict[str, Any] = Field(default_factory=dict, description="the method's own options, name=value")
    branch: str | None = Field(
        None,
        description="a method that learns each task too, from this one's last model; scored, then dropped (Fig. 9)",
    )
    epochs: Positive | None = Field(None, description="epochs a task; milestones follow")
    later_epochs: Positive | None = Field(None, description="epochs of the tasks after the first")
    lr: Rate | tuple[Rate, ...] | None = Field(None, description="learning rate, or one for each stretch")
    milestones: tuple[Positive, ...] | None = Field(None, description="epochs before which the rate changes")
    decay: Rate | None = Field(None, description="what the rate is multiplied by at a milestone")
    lr_by_task: bool | None = Field(None, description="divide the rate by the task's number, as the authors' code does")
    batch: Positive | None = Field(None, description="new images in a mini-batch")
    momentum: float | None = Field(None, ge=0, lt=1, description="of SGD")
    weight_decay: float | None = Field(None, ge=0, description="of SGD")
    new_head_init: Literal["default", "zero"] | None = Field(None, description="how rows of new classes start")
    backbone: str = Field("resnet32", description="resnet8, 14, 20, 32, resnet18, resnet18_small, or a file's")
    norm: Literal["batch", "group"] = Field("batch", description="normalisation layers")
    init: str | None = Field(
        None, description="the backbone's first weights: a .safetensors file, or a hub's name (timm/resnet18.a1_in1k)"
    )
    freeze: bool = Field(False, description="learn only the head, on features of --init that are computed once")
    seed: int = Field(0, ge=0, description="class order, first weights, exemplars, batches")
    precision: Literal["32-true", "64-true", "tf32-true", "bf16-mixed", "16-mixed"] = Field(
        "32-true", description="of training; mixed ones and tf32 are for GPUs"
    )

    out: Path | None = Field(None, description="the run's directory; the same command goes on where it stopped")
    data_root: Path | None = Field(None, description="where downloads are or go (default: $SSIL_DATA)")
    strict: bool = Field(False, description="stop at anything odd about the image files, instead of going on")
    in_memory: bool | None = Field(
        None, description="hold all image files in memory (default: if a quarter of it is enough)"
    )
    hold_exemplars: Literal["bytes", "decoded"] | None = Field(
        None, description="hold the exemplars of a set that is not in memory, as their bytes or decoded"
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to train")
    devices: Positive = Field(1, description="devices (processes) of each node to share each batch")
    nodes: Positive = Field(1, description="machines to share each batch")
    accumulate: Positive = Field(1, description="train on each batch in so many parts, for devices of little memory")
    compile: bool = Field(False, description="compile the backbone: slow to start, then faster")
    threads: Positive | None = Field(None, description="CPU threads (default: torch's choice)")
    checkpoint_every: str = Field(
        "5min", description="steps (200), seconds (90s) or minutes (5min) between checkpoints"
    )
    track: Literal["tensorboard", "mlflow", "wandb"] | None = Field(
        None, description="follow the run live in this tool; needs --out, in whose folder tracking/ it is kept"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "RunConfig":
        if self.memory and self.memory_per_class:
            raise ValueError("memory: give --memory (fixed in all) or --memory-per-class (growing), not both")
        if self.task_sizes and (self.large_base or "tasks" in self.model_fields_set):
            raise ValueError("task_sizes: give --task-sizes alone, or --tasks with or without --large-base")
        checkpoint_interval(self.checkpoint_every)
        return self

    @property
    def training(self) -> dict[str, Any]:
        """The training settings that were given."""
        return {name: value for name in TRAINING if (value := getattr(self, name)) is not None}

    def what(self) -> dict[str, Any]:
        """The settings that decide the result, as plain values; those of training only as they are resolved."""
        return self.model_dump(mode="json", exclude={*HOW, *TRAINING, *RESOLVED}, exclude_none=True)


def checkpoint_interval(text: str) -> tuple[int | None, float | None]:
    """Steps or seconds between checkpoints.

    >>> checkpoint_interval("200"), checkpoint_interval("90s"), checkpoint_interval("5min")
    ((200, None), (None, 90.0), (None, 300.0))
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
    """The settings of a TOML file: keys as in `RunConfig`, the method's options as a table `[options]`."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise UserError(f"config: {path} can't be read ({error.strerror}); check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"config: {path} is not valid TOML: {error}") from None


def make_config(settings: Mapping[str, Any]) -> RunConfig:
    """A validated configuration; a bad value gets one line that names the field, the value and the cure."""
    return validated(RunConfig, settings)


_DISPLACES = {
    "memory": {"memory_per_class"},
    "memory_per_class": {"memory"},
    "tasks": {"task_sizes"},
    "large_base": {"task_sizes"},
    "task_sizes": {"tasks", "large_base"},
}
"""What a setting takes the place of, where it is given on top of others."""


def by_name(settings: Mapping[str, Any]) -> dict[str, Any]:
    """With fields called by their names, not by their aliases."""
    names = {field.alias: name for name, field in RunConfig.model_fields.items() if field.alias}
    return {names.get(key, key): value for key, value in settings.items()}


def over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` over `base`: a setting also takes the place of those that would contradict it; options are merged.

    Where the epochs change, milestones and later epochs of the base follow.

    >>> over({"memory": 500, "tasks": 10}, {"memory_per_class": 20})
    {'tasks': 10, 'memory_per_class': 20}
    >>> over({"epochs": 100, "milestones": [40, 80]}, {"epochs": 10})
    {'epochs': 10, 'milestones': (4, 8)}
    """
    if "epochs" in base and "epochs" in top:
        with suppress(ValueError, TypeError):  # what `RunConfig` is going to refuse
            base = _stretched(base, int(base["epochs"]), int(top["epochs"]))
    displaced = {rival for name in top for rival in _DISPLACES.get(name, ())} - set(top)
    merged = {name: value for name, value in base.items() if name not in displaced} | dict(top)
    if "options" in base:  # a table, or what `RunConfig` is going to refuse
        table = base["options"]
        merged["options"] = table | top.get("options", {}) if isinstance(table, dict) else table
    return merged


def _stretched(settings: Mapping[str, Any], epochs: int, wanted: int) -> dict[str, Any]:
    """The settings for `wanted` epochs instead of `epochs`."""
    changed = dict(settings)
    if "milestones" in changed:
        changed["milestones"] = scale_milestones(tuple(changed["milestones"]), epochs, wanted)
    if "later_epochs" in changed:
        changed["later_epochs"] = max(1, round(changed["later_epochs"] * wanted / epochs))
    return changed


def flags(settings: Mapping[str, Any]) -> list[str]:
    """The same settings as one would type them for `ssil run`.

    >>> flags({"tasks": 5, "lr": (0.1, 0.01), "large_base": True, "options": {"batches": "mixed", "some": [1, 2]}})
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
    """Plain where that says the same, in quotes where it would be read as something else."""
    return value if isinstance(value, str) and literal(value) == value else json.dumps(value)


def literal(text: str) -> Any:
    """A TOML value; what is none is a plain string.

    >>> literal("2.5"), literal("true"), literal("[1, 2]"), literal("tkd")
    (2.5, True, [1, 2], 'tkd')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def numbers(text: str) -> list[str]:
    """What stands between commas.

    >>> numbers("40,80"), numbers("0.1,"), numbers("")
    (['40', '80'], ['0.1'], [])
    """
    return text.removesuffix(",").split(",") if text else []
