"""Every built-in method meets the contract."""

import pytest

from ssil.learning.registry import recipes
from ssil.testing.check_runner import CheckOutcome, carry_out
from ssil.testing.checks import CHECKS, Check, replay_batches_keep_their_ratio
from ssil.testing.method_trace import Trial

WITHOUT_REPLAY = [
    "bic",
    "ce_gkd",
    "ce_tkd",
    "eeil",
    "ft",
    "icarl",
    "il2m",
    "joint",
    "lucir",
    "lwf",
    "podnet",
    "scail",
    "uw",
    "wa",
]
"""The methods of which no phase has replay batches. All other checks apply to all methods."""


@pytest.fixture(scope="module", params=list(recipes()))
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(str(request.param), tmp_path_factory.mktemp(str(request.param)))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
def test_a_built_in_method(trial: Trial, check: Check) -> None:
    result = carry_out(check, trial)
    if check is replay_batches_keep_their_ratio and trial.name in WITHOUT_REPLAY:
        assert result.outcome is CheckOutcome.NOT_APPLICABLE
    else:
        assert (result.outcome, result.reason) == (CheckOutcome.PASSED, "")
