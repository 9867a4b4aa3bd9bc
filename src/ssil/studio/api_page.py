"""The page that describes the routes: made from the OpenAPI schema, without scripts, so that it fetches nothing."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ssil.studio.page_templates import rendered


class Operation(NamedTuple):
    """A route, for the page."""

    method: str
    path: str
    text: str
    parameters: list[Mapping[str, Any]]
    takes_images: bool
    answers: Mapping[str, Mapping[str, Any]]


def operations(schema: Mapping[str, Any]) -> list[Operation]:
    """Return the routes of an OpenAPI schema."""
    return [
        Operation(
            method.upper(),
            path,
            one.get("description", ""),
            one.get("parameters", []),
            "requestBody" in one,
            one["responses"],
        )
        for path, methods in schema["paths"].items()
        for method, one in methods.items()
    ]


def api_page(schema: Mapping[str, Any], address: str) -> str:
    """Return the page as HTML."""
    return rendered("api.html", title=schema["info"]["title"], operations=operations(schema), address=address)
