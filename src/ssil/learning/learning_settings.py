"""The settings of learning: exemplar memory, method, network, training, numerics, devices.

They are apart from the modules that they configure because those import torch, and a command's help need not.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ssil.core.settings import LARGEST_RATE, NotNegative, Positive, Rate, Settings, setting

EpochScale = Annotated[float, Field(gt=0, le=1000)]
"""A factor of epochs."""


class MemorySettings(Settings, group="Memory"):
    """How many exemplars are kept, and which."""

    memory: NotNegative | None = setting(
        None, "exemplars in all (default: 20 times the number of classes); 0 for methods that keep none", resolved=True
    )
    memory_per_class: Positive | None = setting(
        None, "exemplars per class, however many classes there are", resolved=True
    )
    memory_mb: Annotated[float, Field(gt=0, le=1e9)] | None = setting(
        None, "megabytes of model and exemplars together, as many as fit, to compare with equal bytes", resolved=True
    )
    selection: Literal["random", "herding"] = setting("random", "which images become exemplars")
    hold_exemplars: Literal["bytes", "decoded"] | None = setting(
        None, "hold the exemplars of a set that is not in memory, as their bytes or decoded", how=True
    )

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if sum(map(bool, (self.memory, self.memory_per_class, self.memory_mb))) > 1:
            raise ValueError(
                "memory: give --memory (fixed), --memory-per-class (growing) or --memory-mb (with model), not several"
            )
        return self


class MethodSettings(Settings, group="Method"):
    """The method and its own options."""

    method: str = setting(
        "ssil", "a name (see `ssil methods`), my_file.py:my_method, or names that share a training: ft,il2m"
    )
    profile: Literal["paper", "official", "quick"] = setting(
        "paper", "the paper's settings, what its authors' code runs, or a short schedule for a CPU", resolved=True
    )
    options: dict[str, Any] = setting({}, "the method's own options, name=value", resolved=True)
    branch: str | None = setting(
        None, "a method that learns each task too, from this one's last model; scored, then dropped (Fig. 9)"
    )


class NetworkSettings(Settings, group="Method"):
    """The network and its first weights."""

    backbone: str = setting(
        "resnet32", "resnet8, 14, 20, 32, resnet18, resnet18_small, efficientnet_lite0, or a file's"
    )
    norm: Literal["batch", "group"] = setting("batch", "normalisation layers")
    init: str | None = setting(
        None,
        "the backbone's first weights: a name of `ssil weights`, a .safetensors file, or a hub's name",
        resolved=True,
    )
    freeze: bool = setting(False, "learn only the head, on features of --init that are computed once", resolved=True)


class TrainingSettings(Settings, group="Training", resolved=True):
    """Changes to the training settings of the method's profile (`ssil.learning.schedule.Training`)."""

    epoch_scale: EpochScale | None = setting(
        None, "times the method's own epochs, in all tasks and phases (0.2: SS-IL 20, EEIL 8 + 6)"
    )
    epochs: Positive | None = setting(None, "epochs per task; milestones follow")
    later_epochs: Positive | None = setting(None, "epochs of the tasks after the first")
    lr: Rate | tuple[Rate, ...] | None = setting(None, "learning rate, or one for each stretch")
    milestones: tuple[Positive, ...] | None = setting(None, "epochs before which the rate changes")
    decay: Rate | None = setting(None, "what the rate is multiplied by at a milestone")
    lr_by_task: bool | None = setting(None, "divide the rate by the task's number, as the authors' code does")
    batch: Positive | None = setting(None, "new images in a mini-batch")
    momentum: float | None = setting(None, "of SGD; AdamW's first beta", ge=0, lt=1)
    weight_decay: float | None = setting(None, "of the optimiser", ge=0, le=LARGEST_RATE)
    new_head_init: Literal["default", "zero"] | None = setting(None, "how rows of new classes start")
    later_milestones: tuple[Positive, ...] | None = setting(None, "milestones of the tasks after the first")
    later_weight_decay: float | None = setting(None, "of the tasks after the first", ge=0, le=LARGEST_RATE)
    optimizer: Literal["sgd", "adamw"] | None = setting(None, "sgd, or adamw with a smaller --lr, such as 0.001")

    @model_validator(mode="after")
    def _one_way_to_give_epochs(self) -> Self:
        if self.epoch_scale and self.epochs:
            raise ValueError("epoch_scale: give --epoch-scale (times the method's epochs) or --epochs, not both")
        return self

    @property
    def training(self) -> dict[str, Any]:
        """The training settings that were given."""
        return {name: value for name in TrainingSettings.model_fields if (value := getattr(self, name)) is not None}


class NumericSettings(Settings, group="Training"):
    """What decides the numbers beside data, method and training."""

    seed: int = setting(0, "class order, first weights, exemplars, batches", ge=0)
    precision: Literal["32-true", "64-true", "tf32-true", "bf16-mixed", "16-mixed"] = setting(
        "32-true", "of training; mixed ones and tf32 are for GPUs"
    )


class ExecutionSettings(Settings, group="How", how=True):
    """The devices, processes and threads that carry a run out; they do not change what is computed."""

    device: Literal["auto", "cpu", "cuda"] = setting("auto", "where to train")
    devices: Positive = setting(1, "devices (processes) of each node to share each batch")
    nodes: Positive = setting(1, "machines to share each batch")
    accumulate: Positive = setting(1, "train on each batch in N parts, for devices of little memory")
    compile: bool = setting(False, "compile the backbone: slow to start, then faster")
    threads: Positive | None = setting(None, "CPU threads (default: torch's choice, at most the usable cores)")
