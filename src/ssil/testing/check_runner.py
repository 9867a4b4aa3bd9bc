"""Run the checks of the contract on a method from anywhere, and say for each what it tried."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import extract_tb
from typing import Any

from ssil.learning.method import Method
from ssil.learning.registry import RECIPES, Recipe, find_recipe
from ssil.testing.checks import CHECKS, Check, NotApplicable, learns_a_stream_of_uneven_tasks
from ssil.testing.method_trace import Trial


class CheckOutcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class CheckResult:
    """The result of one check."""

    name: str
    tried: str
    """What the check tried, in a sentence."""
    outcome: CheckOutcome
    reason: str = ""
    """Why the check failed, does not apply, or was not run."""


def run_checks(method: str | Callable[..., Method], options: dict[str, Any] | None = None) -> Iterator[CheckResult]:
    """Try a method with each check, and yield the results one by one.

    Args:
        method: A name, my_file.py:my_method, or the recipe function itself.
        options: The method's own options; those that are not given have their defaults.

    Raises:
        UserError: There is no such method, or it has no such option.
    """
    with _named(method) as name, TemporaryDirectory() as folder:
        find_recipe(name)
        trial = Trial(name, Path(folder), options or {})
        learnt = True
        for check in CHECKS:
            result = carry_out(check, trial) if learnt else not_run(check)
            learnt = learnt and not (check is learns_a_stream_of_uneven_tasks and result.outcome is CheckOutcome.FAILED)
            yield result


def carry_out(check: Check, trial: Trial) -> CheckResult:
    """Run one check and return its result."""
    tried = _sentence(check)
    try:
        check(trial)
    except NotApplicable as reason:
        return CheckResult(check.__name__, tried, CheckOutcome.NOT_APPLICABLE, str(reason))
    except AssertionError as broken:
        return CheckResult(check.__name__, tried, CheckOutcome.FAILED, str(broken) or _source_line(broken))
    except Exception as error:  # whatever the method raises
        message = f"{type(error).__name__}: {' '.join(str(error).split())}{_place(error, trial.name)}"
        return CheckResult(check.__name__, tried, CheckOutcome.FAILED, message)
    return CheckResult(check.__name__, tried, CheckOutcome.PASSED)


def not_run(check: Check) -> CheckResult:
    """Return the result of a check that can't be run because the method does not get through the small stream."""
    return CheckResult(
        check.__name__, _sentence(check), CheckOutcome.NOT_RUN, "the method does not learn the small stream"
    )


def _sentence(check: Check) -> str:
    return (inspect.getdoc(check) or "").partition("\n")[0]


def _source_line(error: AssertionError) -> str:
    """Return the line of an assertion that has no message."""
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    code = frames[-1].code_context if frames else None
    return code[0].strip() if code else "an assertion failed"


def _place(error: Exception, method: str) -> str:
    """Return the line of the method's file at which an error was raised or passed on; nothing if it was elsewhere."""
    file = inspect.getsourcefile(find_recipe(method).build) or ""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({Path(file).name}, line {lines[-1]})" if lines else ""


@contextmanager
def _named(method: str | Callable[..., Method]) -> Iterator[str]:
    """Yield a name under which the registry finds the method; a function is registered for as long as it is checked."""
    if isinstance(method, str):
        yield method
        return
    name = method.__name__
    known = RECIPES.get(name)
    if known and known.build is method:
        yield name
        return
    RECIPES[name] = Recipe(name, method, {}, {}, {})
    try:
        yield name
    finally:
        del RECIPES[name]
        if known:
            RECIPES[name] = known


def check_method(method: str | Callable[..., Method], **options: Any) -> list[CheckResult]:
    """Check a method against the contract; the results say what each check tried.

    Args:
        method: A name, my_file.py:my_method, or the recipe function itself.
        options: The method's own options.

    Raises:
        AssertionError: A check failed; the message lists all that did.

    >>> from ssil import LinearHead, Method, Mixed, Phase, cross_entropy
    >>> def mine(training):
    ...     '''Mine: plain fine-tuning.'''
    ...     def plan(classes):
    ...         return (Phase("main", cross_entropy, Mixed(training.batch), training.schedule(classes.task)),)
    ...     return Method(plan, LinearHead)
    >>> results = check_method(mine)
    >>> print(results[0].name, results[0].outcome)
    options_are_typed_and_have_defaults passed
    """
    results = list(run_checks(method, options))
    broken = [f"- {result.name}: {result.reason}" for result in results if result.outcome is CheckOutcome.FAILED]
    assert not broken, "\n".join([f"{len(broken)} of {len(results)} checks failed:", *broken])
    return results
