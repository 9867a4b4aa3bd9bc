"""The paper's claims, the runs that each needs, and the findings on them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssil.benchmark.results import Estimate
from ssil.reporting.text_tables import Table
from ssil.reproduction import bias_effects, effects
from ssil.reproduction.effects import MEMORIES, RIVALS, SUPPLEMENT_RIVALS
from ssil.reproduction.evidence import Evidence, MissingError, Need, needs
from ssil.reproduction.paper_scenarios import HIGH, LOW, MIDDLE, Condition
from ssil.reproduction.rows import ABLATION, BRANCH, GKD, SUPPLEMENT, TABLE_1, TKD, UNCOMPARED
from ssil.reproduction.verdicts import Effect, Verdict, joint_verdict

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
        """The verdict on all effects: a claim holds if all that count do, and fails if one does."""
        return joint_verdict(self.effects) if self.effects else Verdict.NOT_RUN

    @property
    def accuracy(self) -> str:
        """The accuracy that the finding is about, as text."""
        return f"top-{self.k}" if self.k else "-"

    @property
    def indicative(self) -> bool:
        """Whether the verdict rests on a single seed."""
        return any(len(effect.values) == 1 for effect in self.effects if not effect.beside)


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
    head = [str(finding.claim.number), finding.claim.text, finding.accuracy]
    verdict = f"{finding.verdict}{' (indicative)' if finding.indicative else ''}"
    first, *others = effect_cells(finding)
    return [[*head, *first, verdict], *(["", "", "", *other, ""] for other in others)]


def effect_cells(finding: Finding) -> list[list[str]]:
    """Return the effects of a finding as text: what, mean, interval, range; one row that names what is not run."""
    if not finding.effects:
        return [[f"needs {finding.missing}", "-", "-", "-"]]
    return [
        [effect.what, f"{effect.estimate.mean:z.2f}", _interval(effect.estimate), effect.wanted]
        for effect in finding.effects
    ]


def _interval(found: Estimate) -> str:
    return f"{found.low:z.2f} to {found.high:z.2f}" if found.count > 1 else "one seed"


def tally(findings: Sequence[Finding]) -> str:
    """Return the number of findings per verdict, on one line."""
    counts = Counter(finding.verdict for finding in findings)
    shares = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in Verdict if counts[verdict])
    return f"{shares} (of {len(findings)})"


def _at(level: int = MIDDLE, growing: bool = False, large_base: bool = False) -> Condition:
    return Condition(level=level, growing=growing, large_base=large_base)


CLAIMS = (
    Claim(1, "SS-IL has the best average accuracy", needs((*TABLE_1, *UNCOMPARED)), effects.best_of_all),
    Claim(
        2,
        "CE+GKD and FT lean to the newest task, SS-IL does not",
        needs((GKD, "FT", "SS-IL")),
        bias_effects.newest_task,
        by_accuracy=False,
    ),
    Claim(
        3,
        "CE+GKD's old model leans to its latest task",
        needs((GKD,)),
        bias_effects.biased_teacher,
        by_accuracy=False,
    ),
    Claim(4, "CE+TKD beats CE+GKD", needs((TKD, GKD)), effects.tkd_beats_gkd),
    Claim(
        5,
        "from one biased teacher, TKD beats GKD at every t >= 3",
        needs((GKD, BRANCH)),
        effects.same_teacher,
    ),
    Claim(6, "CE-SS beats CE and CE+TKD", needs(ABLATION[:-1]), effects.separated_beats_one_softmax),
    Claim(7, "SS-IL is the best of the four ablations", needs(ABLATION), effects.best_ablation),
    Claim(
        8,
        "old and new scores overlap with SS, not without",
        needs(ABLATION),
        bias_effects.score_overlap,
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
        "SS-IL loses least with a memory that grows",
        needs(SUPPLEMENT, _at(HIGH), _at(HIGH, True)),
        effects.growing_memory,
    ),
    Claim(
        12,
        "on a large base SS-IL keeps up with LUCIR and PODNet",
        needs(("LUCIR", "PODNet", "SS-IL"), _at(large_base=True)),
        effects.large_base,
    ),
    Claim(13, "CE-SS+TKD beats CE-SS, and CE+TKD beats CE", needs(ABLATION), effects.with_tkd),
    Claim(
        14,
        "CE+TKD alone stays biased to the newest task",
        needs((ABLATION[2], TKD)),
        bias_effects.tkd_alone,
        by_accuracy=False,
    ),
    Claim(
        15,
        "SS-IL's lead, and CE's score gap, widen with t",
        (*needs(TABLE_1, _at(HIGH)), *needs(("CE",))),
        effects.widening_gap,
    ),
    Claim(
        16,
        "SS-IL with fewest exemplars beats others with more",
        (*needs(("SS-IL",), _at(LOW, True)), *needs(SUPPLEMENT_RIVALS, _at(MIDDLE, True), _at(HIGH, True))),
        effects.fewest_exemplars,
    ),
    Claim(
        17,
        "on a large base, growing memory changes SS-IL little",
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
    Claim(
        21,
        "with SS, old and new softmax are almost the same",
        needs(bias_effects.SEPARATED),
        bias_effects.equal_softmax,
        by_accuracy=False,
    ),
    Claim(
        22,
        "with SS, the newest task gets its fair share",
        needs(bias_effects.SEPARATED),
        bias_effects.balanced_predictions,
        by_accuracy=False,
    ),
)
"""By number; 21 and 22 are about Fig. 6 (c) and 7. SS is the separated softmax."""
