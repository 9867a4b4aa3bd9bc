"""The numbers that the paper's claims are about, paired by seed."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf

from ssil.paper.conditions import ALL, HIGH, LOW, MIDDLE, Condition
from ssil.paper.evidence import Evidence, MissingError
from ssil.paper.measures import average, curve, gaps, latest_share, old_on_newest, slope
from ssil.paper.rows import ABLATION, NAMED, SUPPLEMENT, TABLE_1
from ssil.paper.verdicts import Effect
from ssil.record import Record
from ssil.statistics import estimate

MAIN = Condition()
LITTLE = 1.0
"""Points that are "little"."""
OVERLAP = 0.25
"""Scores overlap if their means are apart by less than this part of their deviation."""
MOST = 50.0
GKD, TKD, BRANCH = "CE+GKD", "CE+TKD", "CE+TKD from CE+GKD's teacher"

RIVALS = tuple(name for name in TABLE_1 if name != "SS-IL")
OTHERS = tuple(name for name in SUPPLEMENT if name != "SS-IL")
MEMORIES = tuple(Condition(level=level) for level in (LOW, MIDDLE, HIGH))

Measure = Callable[[Record], float]


def _values(evidence: Evidence, measure: Measure, line: str, condition: Condition = MAIN) -> list[float]:
    return [measure(record) for record in evidence.records(condition, line)]


def _less(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Paired by seed."""
    return tuple(a - b for a, b in zip(ours, theirs, strict=True))


def _best(candidates: Iterable[tuple[str, list[float]]]) -> tuple[str, list[float]]:
    return max(candidates, key=lambda candidate: estimate(candidate[1]).mean)


def _ahead(evidence: Evidence, k: int, ours: str, theirs: str, condition: Condition = MAIN) -> Effect:
    """How far one is ahead of another in average accuracy."""
    of = partial(average, k=k)
    values = _less(_values(evidence, of, ours, condition), _values(evidence, of, theirs, condition))
    return Effect(f"{ours} - {theirs}", values)


def _ahead_of_all(evidence: Evidence, k: int, rivals: Sequence[str], condition: Condition = MAIN) -> Effect:
    """How far SS-IL is ahead of the best of the others."""
    of = partial(average, k=k)
    name, best = _best((rival, _values(evidence, of, rival, condition)) for rival in rivals)
    return Effect(f"SS-IL - best other ({name})", _less(_values(evidence, of, "SS-IL", condition), best))


def _share(evidence: Evidence, line: str, low: float, high: float) -> Effect:
    values = _values(evidence, lambda record: old_on_newest(record.tasks[-1]), line)
    return Effect(f"{line}: old images taken for the newest task, %", tuple(values), low, high)


def best_of_all(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead_of_all(evidence, k, (*RIVALS, *NAMED))]


def newest_task(evidence: Evidence, _: int) -> list[Effect]:
    return [*(_share(evidence, line, MOST, inf) for line in ("CE+GKD", "FT")), _share(evidence, "SS-IL", -inf, MOST)]


def pile(evidence: Evidence, _: int) -> list[Effect]:
    values = _values(evidence, latest_share, "CE+GKD")
    return [Effect("new images taken for the latest old task, %, t >= 3", tuple(values), MOST)]


def tkd_beats_gkd(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead(evidence, k, "CE+TKD", "CE+GKD")]


def same_teacher(evidence: Evidence, k: int) -> list[Effect]:
    """The task at which the branch is least ahead."""
    chains, branches = (evidence.records(MAIN, line) for line in ("CE+GKD", BRANCH))
    by_seed = [_less(curve(b, k), curve(c, k)) for b, c in zip(branches, chains, strict=True)]
    by_task = {t: tuple(seed[t - 1] for seed in by_seed) for t in range(3, len(by_seed[0]) + 1)}
    t, least = min(by_task.items(), key=lambda item: estimate(item[1]).mean)
    return [Effect(f"TKD - GKD from one teacher, at its least (t = {t})", least)]


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
    found = [_ahead(evidence, k, line, "SS-IL") for line in ("SS-IL without ER", "SS-IL, N_M = 16", "SS-IL, N_M = 64")]
    return [Effect(effect.what, effect.values, -LITTLE, LITTLE) for effect in found]


def _cost(
    evidence: Evidence, k: int, lines: Sequence[str], rich: Condition, poor: Condition, what: str
) -> list[Effect]:
    """How much less SS-IL loses than the one that loses least of the others."""

    def lost(line: str) -> list[float]:
        of = partial(average, k=k)
        return list(_less(_values(evidence, of, line, rich), _values(evidence, of, line, poor)))

    name, least = min(((line, lost(line)) for line in lines), key=lambda pair: estimate(pair[1]).mean)
    ours = lost("SS-IL")
    return [
        Effect(
            f"{what}: loss of {name} ({estimate(least).text()}) - SS-IL's ({estimate(ours).text()})", _less(least, ours)
        )
    ]


def shrinks(evidence: Evidence, k: int) -> list[Effect]:
    return _cost(evidence, k, RIVALS, Condition(level=HIGH), Condition(level=LOW), "a quarter of the memory")


def grows(evidence: Evidence, k: int) -> list[Effect]:
    return _cost(evidence, k, OTHERS, Condition(level=HIGH), Condition(level=HIGH, growing=True), "growing memory")


def large_base(evidence: Evidence, k: int) -> list[Effect]:
    found = _ahead_of_all(evidence, k, ("LUCIR", "PODNet"), Condition(large_base=True))
    return [Effect(found.what, found.values, -LITTLE)]


def with_tkd(evidence: Evidence, k: int) -> list[Effect]:
    return [_ahead(evidence, k, "SS-IL", "CE-SS"), _ahead(evidence, k, "CE+TKD (replay)", "CE")]


def tkd_alone(evidence: Evidence, _: int) -> list[Effect]:
    return [_share(evidence, line, MOST, inf) for line in ("CE+TKD (replay)", "CE+TKD")]


def widens(evidence: Evidence, k: int) -> list[Effect]:
    ours = [curve(record, k) for record in evidence.records(MAIN, "SS-IL")]
    theirs = [[curve(record, k) for record in evidence.records(MAIN, line)] for line in RIVALS]
    rises = tuple(
        slope([own - sum(rival[seed][t] for rival in theirs) / len(theirs) for t, own in enumerate(mine)])
        for seed, mine in enumerate(ours)
    )
    drift = tuple(_values(evidence, lambda record: slope([abs(gap) for gap in gaps(record)]), "CE"))
    return [Effect("SS-IL - mean of the others, rise a task", rises), Effect("CE's gap of scores, rise a task", drift)]


def small_memory(evidence: Evidence, k: int) -> list[Effect]:
    of = partial(average, k=k)
    ours = _values(evidence, of, "SS-IL", MEMORIES[LOW])
    found = []
    for condition, words in ((MEMORIES[MIDDLE], "twice"), (MEMORIES[HIGH], "four times")):
        name, best = _best((rival, _values(evidence, of, rival, condition)) for rival in RIVALS)
        found.append(Effect(f"SS-IL, least memory - {name}, {words} as much", _less(ours, best)))
    return found


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
    """The baseline that is beaten least: how far it is behind the best other one where it is weakest."""
    of = partial(average, k=k)
    conditions = [condition for condition in ALL if all(evidence.has(condition, line) for line in OTHERS)]
    if len(conditions) < 2:
        raise MissingError("conditions")
    worst = []
    for line in OTHERS:
        margins = []
        for condition in conditions:
            _, best = _best((other, _values(evidence, of, other, condition)) for other in OTHERS if other != line)
            margins.append(_less(_values(evidence, of, line, condition), best))
        worst.append((line, min(margins, key=lambda margin: estimate(margin).mean)))
    line, margin = max(worst, key=lambda item: estimate(item[1]).mean)
    return [Effect(f"{line} - best other baseline, at its worst of {len(conditions)} settings", margin, -inf, 0.0)]


def falls(evidence: Evidence, k: int) -> list[Effect]:
    slopes = {
        line: _values(evidence, lambda record: slope(curve(record, k)[1:]), line) for line in ("CE+TKD", "CE+GKD")
    }
    return [Effect("fall a task from t = 2, GKD's - TKD's", _less(slopes["CE+TKD"], slopes["CE+GKD"]))]
