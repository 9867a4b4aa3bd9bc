"""The effects behind the paper's claims: one function per claim, with values paired by seed.

Each takes the evidence and k (the effects of claims that are not about accuracy ignore it).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf, nan

import numpy as np

from ssil.benchmark.record import Record, TaskRecord
from ssil.benchmark.results import estimate
from ssil.learning.metrics import latest_share
from ssil.reproduction.evidence import Evidence, MissingError
from ssil.reproduction.paper_scenarios import ALL, HIGH, LOW, MAIN, MIDDLE, Condition
from ssil.reproduction.rows import ABLATION, BRANCH, GKD, SUPPLEMENT, TABLE_1, TKD, UNCOMPARED
from ssil.reproduction.verdicts import Effect, strongest, weakest

LITTLE = 1.0
"""Points of accuracy that count as a small change."""
OVERLAP = 0.25
"""Scores of old and new classes overlap if their means differ by less than this many standard deviations."""
MOST = 50.0
"""Percentage above which predictions are called "most"."""

RIVALS = tuple(name for name in TABLE_1 if name != "SS-IL")
SUPPLEMENT_RIVALS = tuple(name for name in SUPPLEMENT if name != "SS-IL")
MEMORIES = tuple(Condition(level=level) for level in (LOW, MIDDLE, HIGH))

Measure = Callable[[Record], float]


def average(record: Record, k: int) -> float:
    """Return the average incremental top-k accuracy."""
    assert record.summary
    return record.summary.average_top1 if k == 1 else record.summary.average_top5


def _curve(record: Record, k: int) -> list[float]:
    """Return the top-k accuracy after each task."""
    return [task.top1 if k == 1 else task.top5 for task in record.tasks]


def _old_on_newest(task: TaskRecord) -> float:
    """Return the percentage of old tasks' test images that are predicted as classes of the newest task."""
    old = task.confusion[:-1]
    return 100 * sum(row[-1] for row in old) / sum(map(sum, old))


def _latest_share(record: Record) -> float:
    """Return the percentage of the old model's predictions on new data that fall on the latest old task, from t = 3."""
    return float(np.mean([latest_share(task.teacher_ratio) for task in record.tasks[2:] if task.teacher_ratio]))


def _score_gaps(record: Record) -> list[float]:
    """Return the gaps between mean scores of new and old classes, in deviations, from t = 2; nan where not recorded."""
    return [nan if task.score_gap is None else task.score_gap for task in record.tasks[1:]]


def slope(values: Sequence[float]) -> float:
    """Return the least-squares rise from one value to the next.

    >>> slope([3.0, 2.0, 1.0])
    -1.0
    """
    return round(float(np.polyfit(range(len(values)), values, 1)[0]), 9)


def _values(evidence: Evidence, measure: Measure, line: str, condition: Condition = MAIN) -> list[float]:
    """Return a measure of a line, one value per seed."""
    return [measure(record) for record in evidence.records(condition, line)]


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Return the differences, paired by seed."""
    return tuple(a - b for a, b in zip(ours, theirs, strict=True))


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
    measure = partial(average, k=k)
    values = _difference(_values(evidence, measure, ours, condition), _values(evidence, measure, theirs, condition))
    return Effect(f"{ours} - {theirs}", values, low, high)


def _closest(effects: Sequence[Effect]) -> Effect:
    """Return the weakest of one effect per rival."""
    found = weakest(effects)
    return replace(found, what=f"{found.what} (the closest of {len(effects)})")


def _lead_over_all(
    evidence: Evidence, k: int, rivals: Sequence[str], condition: Condition = MAIN, low: float = 0.0
) -> Effect:
    """Return the lead of SS-IL over its closest rival."""
    return _closest([_lead(evidence, k, "SS-IL", rival, condition, low) for rival in rivals])


def _newest_share(evidence: Evidence, line: str, low: float, high: float) -> Effect:
    values = _values(evidence, lambda record: _old_on_newest(record.tasks[-1]), line)
    return Effect(f"{line}: old images taken for the newest task, %", tuple(values), low, high)


def best_of_all(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 1: the lead of SS-IL over the closest of all other methods."""
    return [_lead_over_all(evidence, k, (*RIVALS, *UNCOMPARED))]


def newest_task(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 2: the share of old classes' test images that are predicted as a class of the newest task."""
    biased = [_newest_share(evidence, line, MOST, inf) for line in (GKD, "FT")]
    return [*biased, _newest_share(evidence, "SS-IL", -inf, MOST)]


def biased_teacher(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 3: the share of new images that the old model predicts as its latest task, under CE+GKD."""
    values = _values(evidence, _latest_share, GKD)
    return [Effect("new images taken for the latest old task, %, t >= 3", tuple(values), MOST)]


def tkd_beats_gkd(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 4: the lead of CE+TKD over CE+GKD."""
    return [_lead(evidence, k, TKD, GKD)]


def same_teacher(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 5: the lead of TKD over GKD from the same teacher, at the task t >= 3 where it is weakest."""
    chains, branches = (evidence.records(MAIN, line) for line in (GKD, BRANCH))
    by_seed = [_difference(_curve(b, k), _curve(c, k)) for b, c in zip(branches, chains, strict=True)]
    by_task = {t: tuple(seed[t - 1] for seed in by_seed) for t in range(3, len(by_seed[0]) + 1)}
    return [weakest(Effect(f"TKD - GKD from one teacher, at its least (t = {t})", by_task[t]) for t in by_task)]


def separated_beats_one_softmax(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 6: the leads of CE-SS over CE and CE+TKD."""
    return [_lead(evidence, k, "CE-SS", other) for other in ("CE", "CE+TKD (replay)")]


def best_ablation(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 7: the lead of SS-IL over the closest of the other ablations."""
    return [_lead_over_all(evidence, k, ABLATION[:-1])]


def score_overlap(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 8: the final gap between scores of new and old classes, with and without a separated softmax."""
    separated = dict.fromkeys(("SS-IL", "CE-SS"), (-inf, OVERLAP))
    ranges = separated | dict.fromkeys(("CE", "CE+TKD (replay)"), (OVERLAP, inf))
    return [
        Effect(
            f"{line}: gap of scores / deviation",
            tuple(_values(evidence, lambda record: abs(_score_gaps(record)[-1]), line)),
            *limits,
        )
        for line, limits in ranges.items()
    ]


def replay(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 9: the change in accuracy without exemplars in every batch, and with fewer or more of them."""
    sizes = ("SS-IL without ER", "SS-IL, N_M = 16", "SS-IL, N_M = 64")
    return [_lead(evidence, k, line, "SS-IL", low=-LITTLE, high=LITTLE) for line in sizes]


def _smaller_loss(
    evidence: Evidence, k: int, lines: Sequence[str], rich: Condition, poor: Condition, what: str
) -> list[Effect]:
    """Return how much less accuracy SS-IL loses than its closest rival from condition `rich` to `poor`."""

    def loss(line: str) -> tuple[float, ...]:
        measure = partial(average, k=k)
        return _difference(_values(evidence, measure, line, rich), _values(evidence, measure, line, poor))

    def compared(line: str) -> Effect:
        theirs, ours = loss(line), loss("SS-IL")
        words = f"loss of {line} ({estimate(theirs).text()}) - SS-IL's ({estimate(ours).text()})"
        return Effect(f"{what}: {words}", _difference(theirs, ours))

    return [_closest([compared(line) for line in lines])]


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
    """Claim 12: the lead of SS-IL over the closest of LUCIR and PODNet on a large base."""
    return [_lead_over_all(evidence, k, ("LUCIR", "PODNet"), Condition(large_base=True), -LITTLE)]


def with_tkd(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 13: the leads of SS-IL (CE-SS+TKD) over CE-SS, and of CE+TKD over CE."""
    return [_lead(evidence, k, "SS-IL", "CE-SS"), _lead(evidence, k, "CE+TKD (replay)", "CE")]


def tkd_alone(evidence: Evidence, _: int) -> list[Effect]:
    """Claim 14: the share of old test images predicted as the newest task, for CE+TKD with both kinds of batches."""
    return [_newest_share(evidence, line, MOST, inf) for line in ("CE+TKD (replay)", TKD)]


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
    drift = tuple(_values(evidence, lambda record: slope([abs(gap) for gap in _score_gaps(record)]), "CE"))
    return [
        Effect("SS-IL - mean of the others, rise a task", tuple(map(slope, leads))),
        Effect("SS-IL - mean of the others, after the last task", tuple(lead[-1] for lead in leads)),
        Effect("CE's gap of scores, rise a task", drift),
    ]


def fewest_exemplars(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 16: the lead of SS-IL with the smallest growing memory over others with larger ones (Table S3)."""

    def values(line: str, level: int) -> list[float]:
        return _values(evidence, partial(average, k=k), line, Condition(level=level, growing=True))

    def lead(rival: str, level: int) -> Effect:
        few, more = (evidence.preset.exemplars[place] for place in (LOW, level))
        what = f"SS-IL, {few} a class - {rival}, {more} a class"
        return Effect(what, _difference(values("SS-IL", LOW), values(rival, level)))

    return [_closest([lead(rival, level) for rival in SUPPLEMENT_RIVALS]) for level in (MIDDLE, HIGH)]


def growing_large_base(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 17: SS-IL on a large base, growing minus fixed memory."""
    fixed, growing = (
        _values(evidence, partial(average, k=k), "SS-IL", Condition(large_base=True, growing=grows))
        for grows in (False, True)
    )
    return [Effect("SS-IL, growing - fixed", _difference(growing, fixed), -LITTLE)]


def first_task(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 18: the leads of SS-IL over iCaRL and EEIL after the first task."""

    def first(record: Record) -> float:
        return _curve(record, k)[0]

    ours = _values(evidence, first, "SS-IL")
    return [
        Effect(f"SS-IL - {line} after task 1", _difference(ours, _values(evidence, first, line)))
        for line in ("iCaRL", "EEIL")
    ]


def no_winner(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 19: the minimum over baselines of the clearest win of another baseline, in any condition that was run."""
    conditions = [condition for condition in ALL if all(evidence.has(condition, line) for line in SUPPLEMENT_RIVALS)]
    if len(conditions) < 2:
        raise MissingError("a second setting")
    present = {condition: [line for line in RIVALS if evidence.has(condition, line)] for condition in conditions}

    def clearest_win(line: str) -> Effect:
        places = [condition for condition, lines in present.items() if line in lines]
        return strongest(
            _lead(evidence, k, other, line, place) for place in places for other in present[place] if other != line
        )

    found = weakest(clearest_win(line) for line in dict.fromkeys(line for lines in present.values() for line in lines))
    return [replace(found, what=f"{found.what}, in one of {len(conditions)} settings")]


def faster_fall(evidence: Evidence, k: int) -> list[Effect]:
    """Claim 20: the fall of accuracy per task from t = 2, GKD's minus TKD's."""
    slopes = {line: _values(evidence, lambda record: slope(_curve(record, k)[1:]), line) for line in (TKD, GKD)}
    return [Effect("fall a task from t = 2, GKD's - TKD's", _difference(slopes[TKD], slopes[GKD]))]
