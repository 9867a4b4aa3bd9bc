"""`ssil doctor`: what is installed, what this machine offers, and whether learning works here."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Json, console, json_line, plain
from ssil.core.errors import RefusedError

if TYPE_CHECKING:
    from ssil.testing.installation import InstallationFact

app = App(
    name="doctor",
    help_epilogue="""Versions, extras, cores and accelerators, the cache, data and weights; then a
self-test of under a minute, which learns and predicts on made-up images. A line
that begins with "!" says what is wrong and what to do. Nothing is sent away.
Add the output to a report of a defect.

The exit code is 0 if all is well, 3 if something is wrong.

Examples:
  ssil doctor
  ssil doctor --no-self-test --json""",
)


@app.default
def doctor(
    *,
    self_test: Annotated[bool, Parameter(help="also learn and predict on made-up images")] = True,
    json: Json = False,
) -> None:
    """Show what is installed and what this machine offers, and test whether learning works."""
    faults, topic = 0, ""
    for fact in _facts(self_test):
        faults += bool(fact.fault)
        if json:
            json_line(**asdict(fact))
            continue
        if fact.topic != topic:
            console().print(f"[bold]{fact.topic}[/]")
            topic = fact.topic
        _show(fact)
    if faults:
        raise RefusedError(f"{faults} {'thing is' if faults == 1 else 'things are'} wrong; see the lines with !")
    if not json:
        console().print("all is well")


def _facts(self_test: bool) -> "Iterator[InstallationFact]":
    from ssil.testing import installation  # imports torch

    return chain(installation.installation_facts(), installation.self_test() if self_test else ())


def _show(fact: "InstallationFact") -> None:
    """Print a line, and below it what is wrong, if something is."""
    console().print(f"  {plain(fact.name)}: {plain(fact.value)}")
    if fact.fault:
        console().print(f"[bold red]![/] {plain(fact.fault)}")
