"""Validation of settings: a bad value becomes one line for the user."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ssil.core.errors import UserError, did_you_mean

Settings = TypeVar("Settings", bound=BaseModel)


def validated(model: type[Settings], values: Mapping[str, Any]) -> Settings:
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
    return f"{shown}: {error['input']!r} does not fit: {error['msg'][:1].lower()}{error['msg'][1:]}"
