"""The numbers that the paper's claims are about, paired by seed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np

from ssil.benchmark.estimates import estimate
from ssil.benchmark.record import Record, TaskRecord
from ssil.learning import metrics
from ssil.reproduction.conditions import ALL, HIGH, LOW, MAIN, MIDDLE, Condition
from ssil.reproduction.evidence import Evidence, MissingError
from ssil.reproduction.rows import ABLATION, BRANCH, GKD, NAMED, SUPPLEMENT, TABLE_1, TKD
from ssil.reproduction.verdicts import Effect, strongest, weakest


def average(record: Record, k: int) -> float:
    """Average incremental top-k accuracy."""
    assert record.summary
    return record.summary.average_top1 if k == 1 else record.summary.average_top5


def curve(record: Record, k: int) -> list[float]:
    """Top-k accuracy after each task."""
    return [task.top1 if k == 1 else task.top5 for task in record.tasks]


def old_on_newest(task: TaskRecord) -> float:
    """The share (in percent) of old tasks' test images that are taken for one of the newest task."""
    old = task.confusion[:-1]
    return 100 * sum(row[-1] for row in old) / sum(map(sum, old))


def latest_share(record: Record) -> float:
    """How much of the old model's predictions on new data fall on the latest old task (percent, mean from t = 3)."""
    return float(np.mean([metrics.latest_share(task.teacher_ratio) for task in record.tasks[2:] if task.teacher_ratio]))


def slope(values: Sequence[float]) -> float:
    """The rise from one value to the next, by least squares.

    >>> slope([3.0, 2.0, 1.0])
    -1.0
    """
    return round(float(np.polyfit(range(len(values)), values, 1)[0]), 9)


def gaps(record: Record) -> list[float]:
    """From t = 2: between mean old and new scores, in deviations of the scores; nan where a record has it not."""
    return [float("nan") if task.score_gap is None else task.score_gap for task in record.tasks[1:]]


LITTLE = 1.0
"""Points that are "little"."""
OVERLAP = 0.25
"""Scores overlap if their means are apart by less than this part of their deviation."""
MOST = 50.0

RIVALS = tuple(name for name in TABLE_1 if name != "SS-IL")
OTHERS = tuple(name for name in SUPPLEMENT if name != "SS-IL")
MEMORIES = tuple(Condition(level=level) for level in (LOW, MIDDLE, HIGH))

Measure = Callable[[Record], float]


def _values(evidence: Evidence, measure: Measure, line: str, condition: Condition = MAIN) -> list[float]:
    return [measure(record) for record in evidence.records(condition, line)]


def _less(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Paired by seed."""
    return tuple(a - b for a, b in zip(ours, theirs, strict=True))


def _ahead(
    evidence: Evidence,
    k: int,
    ours: str,
    theirs: str,
    condition: Condition = MAIN,
    low: float = 0.0,
    high: float = inf,
) -> Effect:
    """How far one is ahead of another in average accuracy."""
    of = partial(average, k=k)
    values = _less(_values(evidence, of, ours, condition), _values(evidence, of, theirs, condition))
    return Effect(f"{ours} - {theirs}", values, low, high)


def _closest(effects: Sequence[Effect]) -> Effect:
    """Of one effect a rival, the one that bears out least that all rivals are beaten."""
    found = weakest(effects)
    return replace(found, what=f"{found.what} (the closest of {len(effects)})")


def _ahead_of_all(
    evidence: Evidence, k: int, rivals: Sequence[str], condition: Condition = MAIN, low: float = 0.0
) -> Effect:
    """How far SS-IL is ahead of the others."""
    return _closest([_ahead(evidence, k, "SS-IL", rival, condition, low) for rival in rivals])


def _share(evidence: Evidence, line: str, low: float, high: float) -> Effect:
    values = _values(evidence, lambda record: old_on_newest(record.tasks[-1]), line)
    return Effect(f"{line}: old images taken for the newest task, %", tuple(values), low, high)


def best_of_all(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead_of_all(evidence, k, (*RIVALS, *NAMED))]


def newest_task(evidence: Evidence, _: int) -> list[Effect]:
    return [*(_share(evidence, line, MOST, inf) for line in (GKD, "FT")), _share(evidence, "SS-IL", -inf, MOST)]


def pile(evidence: Evidence, _: int) -> list[Effect]:
    values = _values(evidence, latest_share, GKD)
    return [Effect("new images taken for the latest old task, %, t >= 3", tuple(values), MOST)]


def tkd_beats_gkd(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead(evidence, k, TKD, GKD)]


def same_teacher(evidence: Evidence, k: int) -> list[Effect]:
    """The task at which the branch is least clearly ahead."""
    chains, branches = (evidence.records(MAIN, line) for line in (GKD, BRANCH))
    by_seed = [_less(curve(b, k), curve(c, k)) for b, c in zip(branches, chains, strict=True)]
    by_task = {t: tuple(seed[t - 1] for seed in by_seed) for t in range(3, len(by_seed[0]) + 1)}
    return [weakest(Effect(f"TKD - GKD from one teacher, at its least (t = {t})", by_task[t]) for t in by_task)]


def separate(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead(evidence, k, "CE-SS", other) for other in ("CE", "CE+TKD (replay)")]


def best_ablation(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead_of_all(evidence, k, ABLATION[:-1])]


def overlap(evidence: Evidence, _: int) -> list[Effect]:
    ranges = {
        "SS-IL": (-inf, OVERLAP),
        "CE-SS": (-inf, OVERLAP),
        "CE": (OVERLAP, inf),
        "CE+TKD (replay)": (OVERLAP, inf),
    }
    return [
        Effect(f"{line}: gap of scores / deviation", tuple(_values(evidence, _last_gap, line)), *range_)
        for line, range_ in ranges.items()
    ]


def _last_gap(record: Record) -> float:
    return abs(gaps(record)[-1])


def replay(evidence: Evidence, k: int) -> list[Effect]:
    sizes = ("SS-IL without ER", "SS-IL, N_M = 16", "SS-IL, N_M = 64")
    return [_ahead(evidence, k, line, "SS-IL", low=-LITTLE, high=LITTLE) for line in sizes]


def _cost(
    evidence: Evidence, k: int, lines: Sequence[str], rich: Condition, poor: Condition, what: str
) -> list[Effect]:
    """How much less SS-IL loses than the others."""

    def lost(line: str) -> tuple[float, ...]:
        of = partial(average, k=k)
        return _less(_values(evidence, of, line, rich), _values(evidence, of, line, poor))

    def less_lost(line: str) -> Effect:
        theirs, ours = lost(line), lost("SS-IL")
        words = f"loss of {line} ({estimate(theirs).text()}) - SS-IL's ({estimate(ours).text()})"
        return Effect(f"{what}: {words}", _less(theirs, ours))

    return [_closest([less_lost(line) for line in lines])]


def shrinks(evidence: Evidence, k: int) -> list[Effect]:
    fewest, _, most = evidence.preset.exemplars
    return _cost(evidence, k, RIVALS, Condition(level=HIGH), Condition(level=LOW), f"{fewest} for {most} a class")


def grows(evidence: Evidence, k: int) -> list[Effect]:
    return _cost(evidence, k, OTHERS, Condition(level=HIGH), Condition(level=HIGH, growing=True), "growing memory")


def large_base(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead_of_all(evidence, k, ("LUCIR", "PODNet"), Condition(large_base=True), -LITTLE)]


def with_tkd(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead(evidence, k, "SS-IL", "CE-SS"), _ahead(evidence, k, "CE+TKD (replay)", "CE")]


def tkd_alone(evidence: Evidence, _: int) -> list[Effect]:
    return [_share(evidence, line, MOST, inf) for line in ("CE+TKD (replay)", TKD)]


def widens(evidence: Evidence, k: int) -> list[Effect]:
    """The accuracies with the largest memory, as in Figure 5; a deficit that shrinks is no gap that widens."""
    most = Condition(level=HIGH)
    ours = [curve(record, k) for record in evidence.records(most, "SS-IL")]
    theirs = [[curve(record, k) for record in evidence.records(most, line)] for line in RIVALS]
    leads = [
        [own - sum(rival[seed][t] for rival in theirs) / len(theirs) for t, own in enumerate(mine)]
        for seed, mine in enumerate(ours)
    ]
    drift = tuple(_values(evidence, lambda record: slope([abs(gap) for gap in gaps(record)]), "CE"))
    return [
        Effect("SS-IL - mean of the others, rise a task", tuple(map(slope, leads))),
        Effect("SS-IL - mean of the others, after the last task", tuple(lead[-1] for lead in leads)),
        Effect("CE's gap of scores, rise a task", drift),
    ]


def small_memory(evidence: Evidence, k: int) -> list[Effect]:
    """With so many exemplars a class all along, as in Table S3."""

    def of(line: str, level: int) -> list[float]:
        return _values(evidence, partial(average, k=k), line, Condition(level=level, growing=True))

    def ahead(rival: str, level: int) -> Effect:
        few, more = (evidence.preset.exemplars[place] for place in (LOW, level))
        return Effect(f"SS-IL, {few} a class - {rival}, {more} a class", _less(of("SS-IL", LOW), of(rival, level)))

    return [_closest([ahead(rival, level) for rival in OTHERS]) for level in (MIDDLE, HIGH)]


def growing_base(evidence: Evidence, k: int) -> list[Effect]:
    of = partial(average, k=k)
    fixed, growing = (
        _values(evidence, of, "SS-IL", Condition(large_base=True, growing=grows)) for grows in (False, True)
    )
    return [Effect("SS-IL, growing - fixed", _less(growing, fixed), -LITTLE)]


def first_task(evidence: Evidence, k: int) -> list[Effect]:
    def first(record: Record) -> float:
        return curve(record, k)[0]

    ours = _values(evidence, first, "SS-IL")
    return [
        Effect(f"SS-IL - {line} after task 1", _less(ours, _values(evidence, first, line)))
        for line in ("iCaRL", "EEIL")
    ]


def no_winner(evidence: Evidence, k: int) -> list[Effect]:
    """Of each baseline, where it is beaten most clearly; of these, the baseline that is so least."""
    conditions = [condition for condition in ALL if all(evidence.has(condition, line) for line in OTHERS)]
    if len(conditions) < 2:
        raise MissingError("a second setting")
    there = {condition: [line for line in RIVALS if evidence.has(condition, line)] for condition in conditions}

    def beaten(line: str) -> Effect:
        places = [condition for condition, lines in there.items() if line in lines]
        return strongest(
            _ahead(evidence, k, other, line, place) for place in places for other in there[place] if other != line
        )

    found = weakest(beaten(line) for line in {line: None for lines in there.values() for line in lines})
    return [replace(found, what=f"{found.what}, in one of {len(conditions)} settings")]


def falls(evidence: Evidence, k: int) -> list[Effect]:
    slopes = {line: _values(evidence, lambda record: slope(curve(record, k)[1:]), line) for line in (TKD, GKD)}
    return [Effect("fall a task from t = 2, GKD's - TKD's", _less(slopes[TKD], slopes[GKD]))]
