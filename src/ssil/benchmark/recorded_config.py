"""What the `config` of a record must state, so that every reader of records can rely on it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ssil.core.files import json_bytes
from ssil.core.settings import Positive

Count = Annotated[int, Field(ge=0)]


class _Stated(BaseModel):
    """A part of the settings; more may be stated."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _FixedMemory(_Stated):
    kind: Literal["fixed"]
    total: Count


class _GrowingMemory(_Stated):
    kind: Literal["growing"]
    per_class: Count


class _MegabyteMemory(_Stated):
    kind: Literal["megabytes"]
    megabytes: Annotated[float, Field(gt=0)]


class _OtherMemory(_Stated):
    kind: Literal["unlimited", "nothing"]


class _Training(_Stated):
    epochs: Positive
    later_epochs: Positive | None
    lr: float | list[float]
    milestones: list[int]
    batch: Positive
    increments: Positive | None = None


class RecordedConfig(_Stated):
    """The settings that readers of records use. A memory that is a number is that of the first records."""

    method: str
    dataset: str
    seed: int
    options: dict[str, Any]
    memory: (
        Count | Annotated[_FixedMemory | _GrowingMemory | _MegabyteMemory | _OtherMemory, Field(discriminator="kind")]
    )
    training: _Training | None = None
    scorer: str | None = None
    chain: str | None = None
    validation: float | None = None
    selection: str | None = None
    data_fingerprint: str | None = None
    riders: dict[str, dict[str, Any]] = {}


def check_recorded_config(config: Mapping[str, Any]) -> None:
    """Raise ValueError if a record's settings lack one that readers use, or one is not what it should be."""
    RecordedConfig.model_validate(config)
    json_bytes(config)  # of infinities, which JSON does not have, anywhere


def recorded_memory(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the memory budget that a record's settings state.

    >>> recorded_memory({"memory": 12})
    {'kind': 'fixed', 'total': 12}
    """
    budget = config["memory"]
    return {"kind": "fixed", "total": budget} if isinstance(budget, int) else dict(budget)
