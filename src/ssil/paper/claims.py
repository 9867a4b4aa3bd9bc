"""The paper's claims, the runs that each needs, and what the runs say of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ssil.paper import effects
from ssil.paper.conditions import HIGH, LOW, MIDDLE, Condition
from ssil.paper.effects import BRANCH, GKD, MAIN, MEMORIES, OTHERS, RIVALS, TKD
from ssil.paper.evidence import Evidence, MissingError, Need
from ssil.paper.rows import ABLATION, NAMED, SUPPLEMENT, TABLE_1
from ssil.paper.verdicts import Effect, Verdict, together

Effects = Callable[[Evidence, int], list[Effect]]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: the runs it needs, and its effects for top-k (k = 1, 5), or for no k at all."""

    number: int
    text: str
    needs: tuple[Need, ...]
    effects: Effects
    by_accuracy: bool = True
    core: bool = False


@dataclass(frozen=True)
class Finding:
    """What the runs say of a claim."""

    claim: Claim
    k: int | None
    effects: tuple[Effect, ...]
    missing: str = ""
    """A run that has not been made, if there are no effects."""

    @property
    def verdict(self) -> Verdict:
        """Of all effects together."""
        return together(self.effects) if self.effects else Verdict.NOT_RUN


def check(claim: Claim, evidence: Evidence) -> list[Finding]:
    """One finding for top-1 and one for top-5, or a single one."""
    found = []
    for k in (1, 5) if claim.by_accuracy else (None,):
        try:
            found.append(Finding(claim, k, tuple(claim.effects(evidence, k or 1))))
        except MissingError as error:
            found.append(Finding(claim, k, (), str(error)))
    return found


def _needs(lines: Iterable[str], *conditions: Condition) -> tuple[Need, ...]:
    return tuple(Need(condition, line) for condition in conditions or (MAIN,) for line in lines)


def _at(level: int = MIDDLE, growing: bool = False, large_base: bool = False) -> Condition:
    return Condition(level=level, growing=growing, large_base=large_base)


CLAIMS = (
    Claim(1, "SS-IL has the best average accuracy of all methods", _needs((*TABLE_1, *NAMED)), effects.best_of_all),
    Claim(
        2,
        "after CE+GKD and FT most predictions for old tasks fall on the newest, after SS-IL they don't",
        _needs((GKD, "FT", "SS-IL")),
        effects.newest_task,
        by_accuracy=False,
        core=True,
    ),
    Claim(
        3,
        "under CE+GKD the old model's predictions on new data pile up on the latest old task",
        _needs((GKD,)),
        effects.pile,
        by_accuracy=False,
        core=True,
    ),
    Claim(4, "CE+TKD beats CE+GKD", _needs((TKD, GKD)), effects.tkd_beats_gkd, core=True),
    Claim(
        5,
        "from the same biased teacher, TKD beats GKD at every t >= 3",
        _needs((GKD, BRANCH)),
        effects.same_teacher,
        core=True,
    ),
    Claim(6, "CE-SS beats CE and CE+TKD", _needs(ABLATION[:-1]), effects.separate, core=True),
    Claim(7, "SS-IL is the best of the four ablations", _needs(ABLATION), effects.best_ablation, core=True),
    Claim(
        8,
        "old and new scores overlap with a separated softmax and drift apart without",
        _needs(ABLATION),
        effects.overlap,
        by_accuracy=False,
        core=True,
    ),
    Claim(
        9,
        "ER, or its size, changes little",
        _needs(("SS-IL", "SS-IL without ER", "SS-IL, N_M = 16", "SS-IL, N_M = 64")),
        effects.replay,
    ),
    Claim(10, "SS-IL loses least when the memory shrinks", _needs(TABLE_1, _at(HIGH), _at(LOW)), effects.shrinks),
    Claim(
        11,
        "and least when it grows with the classes instead",
        _needs(SUPPLEMENT, _at(HIGH), _at(HIGH, True)),
        effects.grows,
    ),
    Claim(
        12,
        "SS-IL holds its own against LUCIR and PODNet on a large base",
        _needs(("LUCIR", "PODNet", "SS-IL"), _at(large_base=True)),
        effects.large_base,
    ),
    Claim(13, "CE-SS+TKD beats CE-SS, and CE+TKD beats CE", _needs(ABLATION), effects.with_tkd, core=True),
    Claim(
        14,
        "CE+TKD alone stays biased to the newest task",
        _needs((ABLATION[2], TKD)),
        effects.tkd_alone,
        by_accuracy=False,
        core=True,
    ),
    Claim(
        15,
        "the gap to the baselines, and CE's score gap, widen with t",
        (*_needs(TABLE_1, _at(HIGH)), *_needs(("CE",))),
        effects.widens,
    ),
    Claim(
        16,
        "SS-IL with the fewest exemplars a class beats the others with twice and four times as many",
        (*_needs(("SS-IL",), _at(LOW, True)), *_needs(OTHERS, _at(MIDDLE, True), _at(HIGH, True))),
        effects.small_memory,
    ),
    Claim(
        17,
        "on a large base, a growing memory costs SS-IL little",
        _needs(("SS-IL",), _at(large_base=True), _at(growing=True, large_base=True)),
        effects.growing_base,
    ),
    Claim(18, "iCaRL and EEIL start lower at the first task", _needs(("iCaRL", "EEIL", "SS-IL")), effects.first_task),
    Claim(
        19,
        "no baseline wins everywhere",
        (
            *_needs(RIVALS, *MEMORIES),
            *_needs(OTHERS, *(_at(level, True) for level in (MIDDLE, HIGH))),
            *_needs(OTHERS, _at(large_base=True), _at(growing=True, large_base=True)),
        ),
        effects.no_winner,
    ),
    Claim(20, "GKD falls with t faster than TKD", _needs((TKD, GKD)), effects.falls),
)
