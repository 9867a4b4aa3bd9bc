"""`ssil check`: whether a method meets the contract."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.padding import Padding
from rich.text import Text

from ssil.cli.flags import options
from ssil.cli.terminal import Json, console, json_line
from ssil.core.errors import RefusedError

if TYPE_CHECKING:
    from ssil.testing import CheckResult

app = App(
    name="check",
    help_epilogue="""METHOD learns a stream of six classes, which takes a second, and is tried with
each check of the contract that all built-in methods meet: finite losses, tasks
of one class, exact resumption, the memory budget and more. Each line says what
was tried. A check that has nothing to try is "not applicable".

The exit code is 0 if no check failed, 3 if one did.

Examples:
  ssil check ssil
  ssil check my_file.py:my_method
  ssil check my_file.py:my_method --option power=0.5""",
)

STYLES = {"passed": "green", "failed": "bold red", "not applicable": "dim", "not run": "dim"}


@app.default
def check(
    method: Annotated[str, Parameter(help="a method's name, or my_file.py:my_method")],
    /,
    *,
    option: Annotated[
        list[str] | None, Parameter(metavar="NAME=VALUE", negative_iterable="", help="the method's own options")
    ] = None,
    json: Json = False,
) -> None:
    """Check a method against the contract that all built-in methods meet."""
    from ssil.testing import CheckOutcome, run_checks  # imports torch

    results = []
    for result in run_checks(method, options(option or [])):
        results.append(result)
        if json:
            json_line(**asdict(result))
            continue
        _show(result)
    failed = sum(result.outcome is CheckOutcome.FAILED for result in results)
    if failed:
        raise RefusedError(f"{failed} of {len(results)} checks failed")


def _show(result: "CheckResult") -> None:
    """Print one result: outcome and name, then what was tried and the reason, indented."""
    screen = console()
    screen.print(f"[{STYLES[result.outcome]}]{result.outcome:>14}[/]  [bold]{result.name.replace('_', ' ')}[/]")
    for text, style in ((result.tried, "dim"), (result.reason, "")):
        if text:
            indented = Padding(Text(text, style), (0, 0, 0, 16)) if screen.is_terminal else f"{'':16}{text}"
            screen.print(indented, markup=False)
