"""Whether variants differ from a baseline: paired by seed and class order, corrected for their number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from statistics import fmean, stdev
from typing import Final

from ssil.benchmark.record import Record
from ssil.core.errors import UserError, did_you_mean
from ssil.reporting.headline_table import COLUMNS, Column
from ssil.reporting.sections import Section, Variant
from ssil.reporting.text_tables import Table

LEAST_PAIRS: Final = 3
"""With fewer pairs nothing is tested."""
LEVELS: Final = {0.01: "**", 0.05: "*"}
"""The marks of corrected p-values below these levels."""


@dataclass(frozen=True)
class PairedComparison:
    """Differences of a number between a variant and the baseline, over pairs of runs with equal seed and class order.

    `p` is that of the two-sided paired t-test; `corrected` by Holm for the number of variants compared. Both are nan
    with fewer than three pairs, and where all differences are equal.
    """

    pairs: int
    mean: float
    deviation: float
    p: float
    corrected: float = nan

    @property
    def mark(self) -> str:
        """Stars if the corrected p-value is below a level, else nothing."""
        return next((mark for level, mark in LEVELS.items() if self.corrected < level), "")


def paired(differences: Sequence[float]) -> PairedComparison:
    """Return the paired t-test of differences.

    >>> found = paired([1.0, 2.0, 4.0])
    >>> found.pairs, round(found.mean, 3), round(found.deviation, 3), round(found.p, 4)
    (3, 2.333, 1.528, 0.1181)
    """
    from scipy.stats import t as student  # takes a second to import

    count = len(differences)
    mean, deviation = (fmean(differences) if count else nan), (stdev(differences) if count > 1 else nan)
    if count < LEAST_PAIRS or isnan(mean) or deviation <= 1e-12 * abs(mean):
        return PairedComparison(count, mean, deviation, nan)
    statistic = mean / (deviation / sqrt(count))
    return PairedComparison(count, mean, deviation, 2 * float(student.sf(abs(statistic), count - 1)))


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected by Holm's step-down method (1979); nan stays nan and is not counted.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((value, place) for place, value in enumerate(values) if not isnan(value))
    corrected, largest = [nan] * len(values), 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        corrected[place] = largest
    return corrected


def comparisons(section: Section, baseline: str, column: Column) -> dict[str, PairedComparison]:
    """Return the comparison of each other finished variant with the baseline, by name; {} if the section lacks it."""
    base = next((one for one in section.variants if one.name == baseline and one.finished), None)
    if base is None:
        return {}
    others = [one for one in section.variants if one.finished and one is not base]
    found = [paired(_differences(one, base, column)) for one in others]
    corrected = holm([one.p for one in found])
    return {
        other.name: PairedComparison(one.pairs, one.mean, one.deviation, one.p, value)
        for other, one, value in zip(others, found, corrected, strict=True)
    }


def _differences(variant: Variant, base: Variant, column: Column) -> list[float]:
    """Return the variant's number minus the baseline's, for each seed and class order that both have."""
    ours, theirs = ({_pair(record): column.value(record) for record in one.records} for one in (variant, base))
    return [value - theirs[key] for key, value in ours.items() if key in theirs]


def _pair(record: Record) -> tuple[object, ...]:
    """Return what two runs must share to be compared: the seed, the order of the classes, and the stream's images."""
    return record.config["seed"], tuple(record.class_order), record.config.get("stream_fingerprint")


def check_baseline(sections: Sequence[Section], baseline: str) -> None:
    """Raise UserError if no section has a finished variant of this name."""
    names = [one.name for section in sections for one in section.variants if one.finished]
    if baseline not in names:
        hint = did_you_mean(baseline, names, f"finished ones are: {', '.join(dict.fromkeys(names)) or 'none'}")
        raise UserError(f"baseline: no variant is called {baseline[:100]!r}; {hint}")


def significance(sections: Sequence[Section], baseline: str, keys: Sequence[str]) -> Table:
    """Return a table of all comparisons with the baseline: per stream, column of `keys` and variant."""
    rows = [
        [section.shown, COLUMNS[key].title, name, *_cells(one, COLUMNS[key].digits)]
        for section in sections
        for key in keys
        for name, one in comparisons(section, baseline, COLUMNS[key]).items()
    ]
    return Table(["stream", "number", "variant", "pairs", f"minus {baseline}", "p", "p (Holm)"], rows, words=3)


def _cells(one: PairedComparison, digits: int) -> list[str]:
    deviation = "" if isnan(one.deviation) else f" ± {one.deviation:.{digits}f}"
    mean = "-" if isnan(one.mean) else f"{one.mean:+.{digits}f}{deviation}{one.mark}"
    return [str(one.pairs), mean, *("-" if isnan(value) else f"{value:.3g}" for value in (one.p, one.corrected))]


def marks(sections: Sequence[Section], baseline: str, keys: Sequence[str]) -> Mapping[tuple[str, str, str], str]:
    """Return the stars of each comparison by (stream's title, column, variant)."""
    return {
        (section.title, key, name): one.mark
        for section in sections
        for key in keys
        for name, one in comparisons(section, baseline, COLUMNS[key]).items()
    }


def note(sections: Sequence[Section], baseline: str, keys: Sequence[str]) -> str:
    """Return the sentence that explains the stars below a table."""
    found = [one for part in sections for key in keys for one in comparisons(part, baseline, COLUMNS[key]).values()]
    counts = sorted({one.pairs for one in found})
    pairs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else "no"
    few = f"; not tested with fewer than {LEAST_PAIRS} pairs" if counts and counts[0] < LEAST_PAIRS else ""
    return (
        f"* p < 0.05, ** p < 0.01 against {baseline}: two-sided t-test over {pairs} pairs of runs with equal seed and "
        f"class order, Holm-corrected{few}"
    )
