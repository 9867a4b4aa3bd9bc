"""Settings models: properties of their fields, and one line for a bad value."""

from typing import Any

import pytest
from pydantic import ValidationError

from ssil.core.errors import UserError
from ssil.core.settings import Positive, Settings, setting, validated


class Shape(Settings, group="Shape"):
    sides: Positive = setting(3, "number of sides")
    part: float = setting(0.5, "part that is drawn", alias="draw", gt=0, le=1)
    pen: str = setting("blue", "colour", how=True)
    size: int = setting(1, "centimetres", how=True, group="Shape")


class Colour(Settings, group="Colour", resolved=True):
    red: int = setting(0, "amount of red")


class Drawing(Colour, Shape):
    pass


def test_a_field_states_its_properties_or_has_those_of_its_model() -> None:
    assert {name: Drawing.properties(name) for name in Drawing.model_fields} == {
        "sides": {"group": "Shape"},
        "part": {"group": "Shape"},
        "pen": {"group": "How", "how": True},
        "size": {"group": "Shape", "how": True},
        "red": {"group": "Colour", "resolved": True},
    }
    assert Drawing.names(how=True, group="Shape") == ["size"]


def test_constraints_and_descriptions_are_pydantics() -> None:
    assert Shape.model_fields["part"].description == "part that is drawn"
    with pytest.raises(ValidationError):
        Shape(part=0.0)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Shape().sides = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"draw": 2.0}, "draw: 2.0 does not fit: input should be less than or equal to 1"),
        ({"part": 2.0}, "draw: 2.0 does not fit: input should be less than or equal to 1"),
        ({"sides": "many"}, "sides: 'many' does not fit: input should be a valid integer, .*"),
        ({"sidez": 4}, "sidez: no such setting; did you mean 'sides'\\?"),
        ({"qqqq": 4}, "qqqq: no such setting; see `ssil run --help`"),
    ],
)
def test_a_bad_value_is_explained_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}$"):
        validated(Shape, values)
