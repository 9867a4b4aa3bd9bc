"""The effects behind the claims about accuracy: one function per claim, with values paired by seed.

Each takes the evidence and k. Where a claim is about the best of several, or about every t, the effect is that of the
comparison which decides (`families`).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from statistics import fmean

import numpy as np

from ssil.benchmark.record import Record
from ssil.benchmark.results import estimate
from ssil.reproduction.bias_effects import score_gaps
from ssil.reproduction.evidence import Evidence, MissingError
from ssil.reproduction.families import Family, every, some
from ssil.reproduction.paper_scenarios import ALL, HIGH, LOW, MAIN, MIDDLE, Condition
from ssil.reproduction.rows import ABLATION, BRANCH, GKD, SUPPLEMENT, TABLE_1, TKD, UNCOMPARED
from ssil.reproduction.verdicts import Effect

LITTLE = 1.0
"""Points of accuracy that count as a small change."""
NO_DIFFERENCE = 2.0
"""Points of accuracy that are "no significant difference": the paper's own, where it says so, are 1.4 and 1.8."""
ALMOST_EVERY = 75.0
"""Percentage of conditions that is "almost every" one; the paper's SS-IL is the best in 80, 90 and 95 % (top-1)."""

RIVALS = tuple(name for name in TABLE_1 if name != "SS-IL")
SUPPLEMENT_RIVALS = tuple(name for name in SUPPLEMENT if name != "SS-IL")
MEMORIES = tuple(Condition(level=level) for level in (LOW, MIDDLE, HIGH))
FROM_T_2 = frozenset({"later_epochs", "increments", "lr_by_task"})
"""Settings of a training that the first task does not depend on."""


def average(record: Record, k: int) -> float:
    """Return the average incremental top-k accuracy."""
    assert record.summary
    return record.summary.average_top1 if k == 1 else record.summary.average_top5


def _curve(record: Record, k: int) -> list[float]:
    """Return the top-k accuracy after each task."""
    return [task.top1 if k == 1 else task.top5 for task in record.tasks]


def slope(values: Sequence[float]) -> float:
    """Return the least-squares rise from one value to the next.

    >>> slope([3.0, 2.0, 1.0])
    -1.0
    """
    return round(float(np.polyfit(range(len(values)), values, 1)[0]), 9)


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Return the differences, paired by seed."""
    return tuple(a - b for a, b in zip(ours, theirs, strict=True))


def _averages(evidence: Evidence, k: int, line: str, condition: Condition = MAIN) -> tuple[float, ...]:
    """Return a line's average top-k accuracies, one per seed."""
    return evidence.values(partial(average, k=k), line, condition)


def _lead(
    evidence: Evidence,
    k: int,
    ours: str,
    theirs: str,
    condition: Condition = MAIN,
    low: float = 0.0,
    high: float = inf,
) -> Effect:
    """Return the lead of one line over another in average top-k accuracy."""
    values = _difference(*(_averages(evidence, k, line, condition) for line in (ours, theirs)))
    return Effect(f"{ours} - {theirs}", values, low, high)


def _weakest(effects: Sequence[Effect]) -> Effect:
    """Return the effect that decides whether all of them support the claim."""
    found = every(effects).effect
    return replace(found, what=f"{found.what} (the weakest of {len(effects)})")


def _lead_over_all(
    evidence: Evidence, k: int, rivals: Sequence[str], condition: Condition = MAIN, low: float = 0.0
) -> Effect:
    """Return the lead of SS-IL over the rival that decides."""
    return _weakest([_lead(evidence, k, "SS-IL", rival, condition, low) for rival in rivals])


def rivals_in(condition: Condition) -> tuple[str, ...]:
    """Return the methods with which the paper compares SS-IL under a condition: seven in Table 1, four in S3 to S5."""
    return SUPPLEMENT_RIVALS if condition.growing or condition.large_base else RIVALS


def _compared_conditions(evidence: Evidence) -> list[Condition]:
    """Return `MAIN` and the other conditions for which SS-IL and all of the paper's rivals there have been run."""
    return [
        condition
        for condition in ALL
        if condition == MAIN or all(evidence.has(condition, line) for line in ("SS-IL", *rivals_in(condition)))
    ]


def _mean_lead(evidence: Evidence, k: int, rival: str, conditions: Sequence[Condition]) -> Effect:
    """Return the lead of SS-IL over a rival in the mean over conditions."""
    leads = [_lead(evidence, k, "SS-IL", rival, condition).values for condition in conditions]
    mean = f", mean of {len(conditions)} conditions" if len(conditions) > 1 else ""
    return Effect(f"SS-IL - {rival}{mean}", tuple(map(fmean, zip(*leads, strict=True))))


def _share_of_wins(evidence: Evidence, k: int, conditions: Sequence[Condition]) -> Effect:
    """Return the percentage of conditions in which SS-IL is ahead of all of the paper's rivals there."""

    def wins(condition: Condition) -> list[bool]:
        leads = [_lead(evidence, k, "SS-IL", rival, condition).values for rival in rivals_in(condition)]
        return [min(seed) > 0 for seed in zip(*leads, strict=True)]

    shares = [100 * fmean(seed) for seed in zip(*map(wins, conditions), strict=True)]
    return Effect(f"SS-IL is the best, % of {len(conditions)} conditions", tuple(shares), ALMOST_EVERY)


def best_of_all(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 1: SS-IL's lead over the paper's rivals, and in how many conditions it is the best; others beside."""
    conditions = _compared_conditions(evidence)
    places = {rival: [place for place in conditions if rival in rivals_in(place)] for rival in RIVALS}
    lead = _weakest([_mean_lead(evidence, k, rival, places[rival]) for rival in RIVALS])
    others = [
        replace(_lead(evidence, k, "SS-IL", line), beside=True) for line in UNCOMPARED if evidence.has(MAIN, line)
    ]
    return [lead, _share_of_wins(evidence, k, conditions), *others]


def tkd_beats_gkd(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 4: the lead of CE+TKD over CE+GKD."""
    return [_lead(evidence, k, TKD, GKD)]


def same_teacher(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 5: the lead of TKD over GKD from the same teacher, at the task t >= 3 that decides."""
    chains, branches = (evidence.records(MAIN, line) for line in (GKD, BRANCH))
    by_seed = [_difference(_curve(b, k), _curve(c, k)) for b, c in zip(branches, chains, strict=True)]
    by_task = {t: tuple(seed[t - 1] for seed in by_seed) for t in range(3, len(by_seed[0]) + 1)}
    return [_weakest([Effect(f"TKD - GKD from one teacher, t = {t}", by_task[t]) for t in by_task])]


def separated_beats_one_softmax(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 6: the leads of CE-SS over CE and CE+TKD."""
    return [_lead(evidence, k, "CE-SS", other) for other in ("CE", "CE+TKD (replay)")]


def best_ablation(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 7: the lead of SS-IL over the other ablations."""
    return [_lead_over_all(evidence, k, ABLATION[:-1])]


def replay(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 9: the change in accuracy without exemplars in every batch, and with fewer or more of them."""
    sizes = ("SS-IL without ER", "SS-IL, N_M = 16", "SS-IL, N_M = 64")
    return [_lead(evidence, k, line, "SS-IL", low=-LITTLE, high=LITTLE) for line in sizes]


def _smaller_loss(
    evidence: Evidence, k: int, lines: Sequence[str], rich: Condition, poor: Condition, what: str
) -> list[Effect]:
    """Return how much less accuracy SS-IL loses than the rival that decides, from condition `rich` to `poor`."""

    def loss(line: str) -> tuple[float, ...]:
        return _difference(*(_averages(evidence, k, line, condition) for condition in (rich, poor)))

    def compared(line: str) -> Effect:
        theirs, ours = loss(line), loss("SS-IL")
        words = f"loss of {line} ({estimate(theirs).text()}) - SS-IL's ({estimate(ours).text()})"
        return Effect(f"{what}: {words}", _difference(theirs, ours))

    return [_weakest([compared(line) for line in lines])]


def smaller_memory(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 10: the loss from the largest to the smallest memory, rivals' minus SS-IL's."""
    fewest, _, most = evidence.preset.exemplars
    what = f"{fewest} for {most} a class"
    return _smaller_loss(evidence, k, RIVALS, Condition(level=HIGH), Condition(level=LOW), what)


def growing_memory(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 11: the loss from a fixed to a growing memory, rivals' minus SS-IL's."""
    growing = Condition(level=HIGH, growing=True)
    return _smaller_loss(evidence, k, SUPPLEMENT_RIVALS, Condition(level=HIGH), growing, "growing memory")


def large_base(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 12: the lead of SS-IL over LUCIR and PODNet on a large base."""
    return [_lead_over_all(evidence, k, ("LUCIR", "PODNet"), Condition(large_base=True), -LITTLE)]


def with_tkd(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 13: the leads of SS-IL (CE-SS+TKD) over CE-SS, and of CE+TKD over CE."""
    return [_lead(evidence, k, "SS-IL", "CE-SS"), _lead(evidence, k, "CE+TKD (replay)", "CE")]


def widening_gap(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 15: the rise of SS-IL's lead with t (largest memory, as in Fig. 5), its final lead, and CE's score gap.

    The final lead must be positive: a deficit that shrinks is not a gap that widens.
    """
    most = Condition(level=HIGH)
    ours = [_curve(record, k) for record in evidence.records(most, "SS-IL")]
    theirs = [[_curve(record, k) for record in evidence.records(most, line)] for line in RIVALS]
    leads = [
        [own - sum(rival[seed][t] for rival in theirs) / len(theirs) for t, own in enumerate(curve)]
        for seed, curve in enumerate(ours)
    ]
    drift = evidence.values(lambda record: slope(score_gaps(record)), "CE")
    return [
        Effect("SS-IL - mean of the others, rise a task", tuple(map(slope, leads))),
        Effect("SS-IL - mean of the others, after the last task", tuple(lead[-1] for lead in leads)),
        Effect("CE's (new - old score) / deviation, rise a task", drift),
    ]


def fewest_exemplars(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 16: the lead of SS-IL with the smallest growing memory over others with larger ones (Table S3)."""

    def lead(rival: str, level: int) -> Effect:
        few, more = (evidence.preset.exemplars[place] for place in (LOW, level))
        what = f"SS-IL, {few} a class - {rival}, {more} a class"
        ours, theirs = (Condition(level=place, growing=True) for place in (LOW, level))
        return Effect(what, _difference(_averages(evidence, k, "SS-IL", ours), _averages(evidence, k, rival, theirs)))

    return [_weakest([lead(rival, level) for level in (MIDDLE, HIGH) for rival in SUPPLEMENT_RIVALS])]


def growing_large_base(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 17: SS-IL on a large base, growing minus fixed memory."""
    growing, fixed = (
        _averages(evidence, k, "SS-IL", Condition(large_base=True, growing=grows)) for grows in (True, False)
    )
    return [Effect("SS-IL, growing - fixed", _difference(growing, fixed), -NO_DIFFERENCE, NO_DIFFERENCE)]


def _first_training(record: Record) -> object:
    """Return what decides how the first task was trained: the settings, and the epochs of each phase."""
    settings = {name: value for name, value in record.config["training"].items() if name not in FROM_T_2}
    epochs = {phase: max(map(len, parts.values())) for phase, parts in record.tasks[0].loss.items()}
    return settings, epochs


def first_task(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 18: the leads of SS-IL over iCaRL and EEIL after the first task.

    They do not count where EEIL trains the first task as SS-IL does, for the paper's reason is EEIL's schedule; nor
    where the first task has no more than k classes, for there is nothing to miss.
    """
    ours, theirs = (evidence.records(MAIN, line) for line in ("SS-IL", "EEIL"))
    alike = any(_first_training(own) == _first_training(other) for own, other in zip(ours, theirs, strict=True))
    beside = alike or any(record.tasks[0].classes_seen <= k for record in ours)
    leads = {
        line: _difference(*(evidence.values(lambda record: _curve(record, k)[0], name) for name in ("SS-IL", line)))
        for line in ("iCaRL", "EEIL")
    }
    return [Effect(f"SS-IL - {line} after task 1", values, beside=beside) for line, values in leads.items()]


def no_winner(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 19: the win of another baseline over the one that is hardest to beat, in any condition that was run."""
    conditions = [condition for condition in ALL if all(evidence.has(condition, line) for line in SUPPLEMENT_RIVALS)]
    if len(conditions) < 2:
        raise MissingError("a second setting")
    present = {condition: [line for line in RIVALS if evidence.has(condition, line)] for condition in conditions}

    def beaten(line: str) -> Family:
        places = [condition for condition, lines in present.items() if line in lines]
        return some(
            _lead(evidence, k, other, line, place) for place in places for other in present[place] if other != line
        )

    found = every(beaten(line) for line in dict.fromkeys(line for lines in present.values() for line in lines)).effect
    return [replace(found, what=f"{found.what}, in one of {len(conditions)} conditions")]


def faster_fall(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 20: the fall of accuracy per task from t = 2, GKD's minus TKD's."""
    slopes = {line: evidence.values(lambda record: slope(_curve(record, k)[1:]), line) for line in (TKD, GKD)}
    return [Effect("fall a task from t = 2, GKD's - TKD's", _difference(slopes[TKD], slopes[GKD]))]
