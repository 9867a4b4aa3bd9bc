"""Examples in docstrings become blocks of code on the site: an extension of griffe, which reads the docstrings."""

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?m)^>>> .*(?:\n(?!\s*$).*)*")
"""A line that begins with >>>, and all up to the next empty line."""


def with_code_blocks(docstring: str) -> str:
    r"""Return a docstring with fences around its examples.

    >>> with_code_blocks("Add.\n\n>>> 1 + 1\n2\n\nThe end.")
    'Add.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nThe end.'
    """
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)


class CodeBlocks(Extension):
    """Mark the examples of every docstring as code."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = with_code_blocks(obj.docstring.value)
