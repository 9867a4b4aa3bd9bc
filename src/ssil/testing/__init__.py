"""Check a method against the contract that every method of the package meets.

Lives here: the small stream on which a method is tried, the trace of what its losses saw, and the checks.
May import everything up to `benchmark`. Start reading in `checks.py`; `check_method` is what users call,
from Python or as `ssil check my_file.py:my_method`.
"""

from ssil.testing.check_runner import CheckOutcome, CheckResult, check_method, run_checks
from ssil.testing.checks import CHECKS

__all__ = ["CHECKS", "CheckOutcome", "CheckResult", "check_method", "run_checks"]
