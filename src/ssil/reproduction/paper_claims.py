"""The paper's twenty claims, the runs that each needs, and the findings on them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssil.reporting.text_tables import Table
from ssil.reproduction import effects
from ssil.reproduction.effects import MEMORIES, RIVALS, SUPPLEMENT_RIVALS
from ssil.reproduction.evidence import Evidence, MissingError, Need, needs
from ssil.reproduction.paper_scenarios import HIGH, LOW, MIDDLE, Condition
from ssil.reproduction.rows import ABLATION, BRANCH, GKD, SUPPLEMENT, TABLE_1, TKD, UNCOMPARED
from ssil.reproduction.verdicts import Effect, Verdict, weakest

Effects = Callable[[Evidence, int], list[Effect]]
HEADER = ("", "claim", "accuracy", "effect", "mean", "95 % interval", "holds if", "verdict")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the runs it needs, and its effects for k = 1 and 5, or without k."""

    number: int
    text: str
    needs: tuple[Need, ...]
    effects: Effects
    by_accuracy: bool = True


@dataclass(frozen=True)
class Finding:
    """The effects of a claim in the evidence; none if a run is missing."""

    claim: Claim
    k: int | None
    effects: tuple[Effect, ...]
    missing: str = ""
    """The first missing run."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the weakest effect: a claim holds if all of its effects do."""
        return weakest(self.effects).verdict if self.effects else Verdict.NOT_RUN


def check(claim: Claim, evidence: Evidence) -> list[Finding]:
    """Return one finding for top-1 and one for top-5, or a single one for claims that are not about accuracy."""
    found = []
    for k in (1, 5) if claim.by_accuracy else (None,):
        try:
            found.append(Finding(claim, k, tuple(claim.effects(evidence, k or 1))))
        except MissingError as error:
            found.append(Finding(claim, k, (), str(error)))
    return found


def findings_table(findings: Sequence[Finding]) -> Table:
    """Return a table with one row per finding, and below it one row per further effect."""
    return Table(HEADER, [row for finding in findings for row in _rows(finding)], words=len(HEADER))


def _rows(finding: Finding) -> list[list[str]]:
    accuracy = f"top-{finding.k}" if finding.k else "-"
    head = [str(finding.claim.number), finding.claim.text, accuracy]
    if not finding.effects:
        return [[*head, f"needs {finding.missing}", "-", "-", "-", str(Verdict.NOT_RUN)]]
    single = any(len(effect.values) == 1 for effect in finding.effects)
    verdict = f"{finding.verdict}{' (indicative)' if single else ''}"
    first, *others = map(_effect_cells, finding.effects)
    return [[*head, *first, verdict], *(["", "", "", *other, ""] for other in others)]


def _effect_cells(effect: Effect) -> list[str]:
    found = effect.estimate
    interval = f"{found.low:z.2f} to {found.high:z.2f}" if found.count > 1 else "one seed"
    return [effect.what, f"{found.mean:z.2f}", interval, effect.wanted]


def tally(findings: Sequence[Finding]) -> str:
    """Return the number of findings per verdict, on one line."""
    counts = Counter(finding.verdict for finding in findings)
    shares = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in Verdict if counts[verdict])
    return f"{shares} (of {len(findings)})"


def _at(level: int = MIDDLE, growing: bool = False, large_base: bool = False) -> Condition:
    return Condition(level=level, growing=growing, large_base=large_base)


CLAIMS = (
    Claim(1, "SS-IL has the best average accuracy of all methods", needs((*TABLE_1, *UNCOMPARED)), effects.best_of_all),
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
        effects.biased_teacher,
        by_accuracy=False,
    ),
    Claim(4, "CE+TKD beats CE+GKD", needs((TKD, GKD)), effects.tkd_beats_gkd),
    Claim(
        5,
        "from the same biased teacher, TKD beats GKD at every t >= 3",
        needs((GKD, BRANCH)),
        effects.same_teacher,
    ),
    Claim(6, "CE-SS beats CE and CE+TKD", needs(ABLATION[:-1]), effects.separated_beats_one_softmax),
    Claim(7, "SS-IL is the best of the four ablations", needs(ABLATION), effects.best_ablation),
    Claim(
        8,
        "old and new scores overlap with a separated softmax and drift apart without",
        needs(ABLATION),
        effects.score_overlap,
        by_accuracy=False,
    ),
    Claim(
        9,
        "ER, or its size, changes little",
        needs(("SS-IL", "SS-IL without ER", "SS-IL, N_M = 16", "SS-IL, N_M = 64")),
        effects.replay,
    ),
    Claim(10, "SS-IL loses least when the memory shrinks", needs(TABLE_1, _at(HIGH), _at(LOW)), effects.smaller_memory),
    Claim(
        11,
        "and least when it grows with the classes instead",
        needs(SUPPLEMENT, _at(HIGH), _at(HIGH, True)),
        effects.growing_memory,
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
        effects.widening_gap,
    ),
    Claim(
        16,
        "SS-IL with the fewest exemplars a class beats the others with more",
        (*needs(("SS-IL",), _at(LOW, True)), *needs(SUPPLEMENT_RIVALS, _at(MIDDLE, True), _at(HIGH, True))),
        effects.fewest_exemplars,
    ),
    Claim(
        17,
        "on a large base, a growing memory costs SS-IL little",
        needs(("SS-IL",), _at(large_base=True), _at(growing=True, large_base=True)),
        effects.growing_large_base,
    ),
    Claim(18, "iCaRL and EEIL start lower at the first task", needs(("iCaRL", "EEIL", "SS-IL")), effects.first_task),
    Claim(
        19,
        "no baseline wins everywhere",
        (
            *needs(RIVALS, *MEMORIES),
            *needs(SUPPLEMENT_RIVALS, *(_at(level, True) for level in (MIDDLE, HIGH))),
            *needs(SUPPLEMENT_RIVALS, _at(large_base=True), _at(growing=True, large_base=True)),
        ),
        effects.no_winner,
    ),
    Claim(20, "GKD falls with t faster than TKD", needs((TKD, GKD)), effects.faster_fall),
)
"""By number."""
