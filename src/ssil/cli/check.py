"""`ssil check`: whether a method meets the contract."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.flags import options
from ssil.cli.terminal import Json, console, json_line
from ssil.core.errors import RefusedError

app = App(
    name="check",
    help_epilogue="""METHOD is learnt on a stream of six classes that takes a second, and tried with
each check of the contract that all built-in methods meet: finite losses, tasks of
one class, exact resumption, the memory's budget and more. Each line says what was
tried. A check that has nothing to try is "not applicable".

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
        mark = f"[{STYLES[result.outcome]}]{result.outcome:>14}[/]"
        console().print(f"{mark}  [bold]{result.name.replace('_', ' ')}[/]")
        console().print(f"{'':14}  {result.tried}", markup=False, style="dim")
        if result.reason:
            console().print(f"{'':14}  {result.reason}", markup=False)
    failed = sum(result.outcome is CheckOutcome.FAILED for result in results)
    if failed:
        raise RefusedError(f"{failed} of {len(results)} checks failed")
