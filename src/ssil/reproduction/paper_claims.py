"""The paper's claims, the runs that each needs, and what the runs say of it."""

from collections.abc import Callable
from dataclasses import dataclass

from ssil.reproduction import effects
from ssil.reproduction.conditions import HIGH, LOW, MIDDLE, Condition
from ssil.reproduction.effects import MEMORIES, OTHERS, RIVALS
from ssil.reproduction.evidence import Evidence, MissingError, Need, needs
from ssil.reproduction.rows import ABLATION, BRANCH, GKD, NAMED, SUPPLEMENT, TABLE_1, TKD
from ssil.reproduction.verdicts import Effect, Verdict, together

Effects = Callable[[Evidence, int], list[Effect]]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: the runs it needs, and its effects for top-k (k = 1, 5), or for no k at all."""

    number: int
    text: str
    needs: tuple[Need, ...]
    effects: Effects
    by_accuracy: bool = True


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


def _at(level: int = MIDDLE, growing: bool = False, large_base: bool = False) -> Condition:
    return Condition(level=level, growing=growing, large_base=large_base)


CLAIMS = (
    Claim(1, "SS-IL has the best average accuracy of all methods", needs((*TABLE_1, *NAMED)), effects.best_of_all),
    Claim(
        2,
        "after CE+GKD and FT most predictions for old tasks fall on the newest, after SS-IL they don't",
        needs((GKD, "FT", "SS-IL")),
        effects.newest_task,
        by_accuracy=False,
    ),
    Claim(
        3,
        "under CE+GKD the old model's predictions on new data pile up on the latest old task",
        needs((GKD,)),
        effects.pile,
        by_accuracy=False,
    ),
    Claim(4, "CE+TKD beats CE+GKD", needs((TKD, GKD)), effects.tkd_beats_gkd),
    Claim(
        5,
        "from the same biased teacher, TKD beats GKD at every t >= 3",
        needs((GKD, BRANCH)),
        effects.same_teacher,
    ),
    Claim(6, "CE-SS beats CE and CE+TKD", needs(ABLATION[:-1]), effects.separate),
    Claim(7, "SS-IL is the best of the four ablations", needs(ABLATION), effects.best_ablation),
    Claim(
        8,
        "old and new scores overlap with a separated softmax and drift apart without",
        needs(ABLATION),
        effects.overlap,
        by_accuracy=False,
    ),
    Claim(
        9,
        "ER, or its size, changes little",
        needs(("SS-IL", "SS-IL without ER", "SS-IL, N_M = 16", "SS-IL, N_M = 64")),
        effects.replay,
    ),
    Claim(10, "SS-IL loses least when the memory shrinks", needs(TABLE_1, _at(HIGH), _at(LOW)), effects.shrinks),
    Claim(
        11,
        "and least when it grows with the classes instead",
        needs(SUPPLEMENT, _at(HIGH), _at(HIGH, True)),
        effects.grows,
    ),
    Claim(
        12,
        "SS-IL holds its own against LUCIR and PODNet on a large base",
        needs(("LUCIR", "PODNet", "SS-IL"), _at(large_base=True)),
        effects.large_base,
    ),
    Claim(13, "CE-SS+TKD beats CE-SS, and CE+TKD beats CE", needs(ABLATION), effects.with_tkd),
    Claim(
        14,
        "CE+TKD alone stays biased to the newest task",
        needs((ABLATION[2], TKD)),
        effects.tkd_alone,
        by_accuracy=False,
    ),
    Claim(
        15,
        "the gap to the baselines, and CE's score gap, widen with t",
        (*needs(TABLE_1, _at(HIGH)), *needs(("CE",))),
        effects.widens,
    ),
    Claim(
        16,
        "SS-IL with the fewest exemplars a class beats the others with more",
        (*needs(("SS-IL",), _at(LOW, True)), *needs(OTHERS, _at(MIDDLE, True), _at(HIGH, True))),
        effects.small_memory,
    ),
    Claim(
        17,
        "on a large base, a growing memory costs SS-IL little",
        needs(("SS-IL",), _at(large_base=True), _at(growing=True, large_base=True)),
        effects.growing_base,
    ),
    Claim(18, "iCaRL and EEIL start lower at the first task", needs(("iCaRL", "EEIL", "SS-IL")), effects.first_task),
    Claim(
        19,
        "no baseline wins everywhere",
        (
            *needs(RIVALS, *MEMORIES),
            *needs(OTHERS, *(_at(level, True) for level in (MIDDLE, HIGH))),
            *needs(OTHERS, _at(large_base=True), _at(growing=True, large_base=True)),
        ),
        effects.no_winner,
    ),
    Claim(20, "GKD falls with t faster than TKD", needs((TKD, GKD)), effects.falls),
)
