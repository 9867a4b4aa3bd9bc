"""Settings as small models: each part of the program declares its own, and commands and configurations combine them."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ssil.core.errors import UserError, did_you_mean

LARGEST_COUNT, LARGEST_RATE = 2**31 - 1, 1e30
"""Bounds far above all that is of use, and below what tensors' sizes and single precision can hold."""
Positive = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
"""A whole number, 1 or more."""
NotNegative = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
"""A whole number, 0 or more."""
Rate = Annotated[float, Field(gt=0, le=LARGEST_RATE, allow_inf_nan=False)]
"""A finite number above 0."""


class Settings(BaseModel):
    """Base of all settings: frozen, and unknown names are refused.

    Keywords of a subclass are the properties of its fields, where a field does not state its own (see `setting`).

    >>> class Speed(Settings, group="Training"):
    ...     lr: float = setting(0.1, "learning rate")
    ...     threads: int = setting(1, "CPU threads", how=True)
    >>> Speed.names(group="Training"), Speed.names(how=True)
    (['lr'], ['threads'])
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    def __init_subclass__(cls, **properties: Any) -> None:
        """Accept the properties; `__pydantic_init_subclass__` uses them."""
        super().__init_subclass__()

    @classmethod
    def __pydantic_init_subclass__(cls, **properties: Any) -> None:
        """Give the properties to the fields that do not state their own."""
        for name in cls.model_fields:
            cls.model_fields[name].json_schema_extra = properties | cls.properties(name)

    @classmethod
    def properties(cls, name: str) -> dict[str, Any]:
        """Return the properties of the field `name`, as `setting` describes them."""
        extra = cls.model_fields[name].json_schema_extra
        return dict(extra) if isinstance(extra, dict) else {}

    @classmethod
    def names(cls, **properties: Any) -> list[str]:
        """Return the names of the fields that have all of these properties, in their order."""
        return [name for name in cls.model_fields if properties.items() <= cls.properties(name).items()]


def setting(default: Any, description: str, *, alias: str | None = None, **properties: Any) -> Any:
    """Declare a field of `Settings`; flags, help, TOML keys and records follow from this one line.

    Args:
        default: Its value where none is given.
        description: The help of its flag.
        alias: The name that users give, where the field has another. Both are understood.
        **properties: Constraints that pydantic knows (`ge`, `gt`, `le`, `lt`), and properties of the setting:
            `group`, the part of the help that lists it;
            `how=True`, it says how a run is carried out, not what is computed;
            `resolved=True`, a record states what it came to, not what was given;
            `fixed=True`, a classifier keeps it from its first update on;
            `hidden=True`, it has no flag, and is stored only if it is not None.
    """
    constraints: dict[str, Any] = {
        name: properties.pop(name) for name in ("ge", "gt", "le", "lt") if name in properties
    }
    if properties.get("hidden"):
        constraints["exclude_if"] = _is_none
    if properties.get("how"):
        properties.setdefault("group", "How")
    return Field(default, alias=alias, description=description, json_schema_extra=properties, **constraints)


def _is_none(value: Any) -> bool:
    return value is None


MAX_SHOWN = 200
"""Characters of a value that an error message shows."""

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Return `model(**values)`.

    Raises:
        UserError: Names the first field that does not fit, its value, and the reason.
    """
    try:
        return model(**values)
    except ValidationError as error:
        raise UserError(_explanation(model, error.errors()[0])) from None


def _explanation(model: type[BaseModel], error: Any) -> str:
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    name = str(error["loc"][0])
    if error["type"] == "extra_forbidden":
        return f"{name}: no such setting; {did_you_mean(name, model.model_fields, 'see `ssil run --help`')}"
    field = model.model_fields.get(name)
    shown = field.alias if field and field.alias else name
    return f"{shown}: {_shortened(error['input'])} does not fit: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _shortened(value: object) -> str:
    """Return the value as it is written in Python; one with more digits than Python prints, or too long, is cut."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
