"""Every built-in method meets the contract."""

import pytest

from ssil.learning.registry import recipes
from ssil.testing.check_runner import CheckOutcome, carry_out
from ssil.testing.checks import (
    CHECKS,
    Check,
    loss_terms_are_finite_and_have_a_gradient,
    one_seed_gives_the_same_start,
    replay_batches_keep_their_ratio,
)
from ssil.testing.method_trace import Trial

WITHOUT_REPLAY = [
    "bic",
    "ce_gkd",
    "ce_tkd",
    "der",
    "eeil",
    "foster",
    "ft",
    "icarl",
    "il2m",
    "joint",
    "lucir",
    "lwf",
    "memo",
    "podnet",
    "scail",
    "uw",
    "wa",
]
"""The methods that train, but of which no phase has replay batches."""

WITHOUT_TRAINING = ["fecam", "ncm", "ranpac", "slda"]
"""The methods that have no phase at all."""

NOT_APPLICABLE: dict[str, tuple[Check, ...]] = {
    **dict.fromkeys(WITHOUT_REPLAY, (replay_batches_keep_their_ratio,)),
    **dict.fromkeys(
        WITHOUT_TRAINING,
        (
            replay_batches_keep_their_ratio,
            loss_terms_are_finite_and_have_a_gradient,
            one_seed_gives_the_same_start,
        ),
    ),
}
"""The checks that have nothing to try in a method. All others apply to all methods."""


@pytest.fixture(scope="module", params=list(recipes()))
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(str(request.param), tmp_path_factory.mktemp(str(request.param)))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
def test_a_built_in_method(trial: Trial, check: Check) -> None:
    result = carry_out(check, trial)
    if check in NOT_APPLICABLE.get(trial.name, ()):
        assert result.outcome is CheckOutcome.NOT_APPLICABLE
    else:
        assert (result.outcome, result.reason) == (CheckOutcome.PASSED, "")
