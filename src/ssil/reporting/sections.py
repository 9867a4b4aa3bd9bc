"""Groups of comparable runs: one section per stream, in it one variant per setting, with a run per seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from ssil.benchmark.record import Record, TaskRecord, summarise
from ssil.benchmark.results import Estimate, Run, differences, estimate, recorded_sizes, variants
from ssil.data.data_settings import DataSettings
from ssil.reporting.figures.bias import confusion_counts
from ssil.reporting.figures.lines import Along, axis_of, over_seeds
from ssil.reporting.figures.style import MethodStyle, method_styles


@dataclass(frozen=True)
class Variant:
    """Runs that differ in their seeds only."""

    name: str
    runs: Sequence[Run]

    @cached_property
    def records(self) -> list[Record]:
        """The records that count: those of finished runs, or if there are none, all cut to the shortest."""
        finished = [run.record for run in self.runs if run.record.summary]
        begun = [run.record for run in self.runs if run.record.tasks]
        done = min((len(record.tasks) for record in begun), default=0)
        return finished or [record.after(done) for record in begun]

    @property
    def finished(self) -> bool:
        """Whether a run has learnt the whole stream."""
        return bool(self.records and self.records[0].summary)

    @property
    def bound(self) -> bool:
        """Whether it keeps all images, so that it is an upper bound for the other variants."""
        return bool(self.runs[0].record.memory["kind"] == "unlimited")

    @property
    def ranked(self) -> bool:
        """Whether it competes for the best result: finished, and not an upper bound."""
        return self.finished and not self.bound

    @property
    def last(self) -> list[TaskRecord]:
        """The last task of each record."""
        return [record.tasks[-1] for record in self.records]

    @property
    def confusion(self) -> list[list[int]]:
        """The task confusion after the last task, summed over the records."""
        return confusion_counts(self.records)

    def over(self, value: Callable[[Record], float]) -> Estimate:
        """Estimate a number of a whole run over the records."""
        return estimate([value(record) for record in self.records])

    def along(self, value: Callable[[TaskRecord], float], since: int = 1) -> list[Estimate]:
        """Estimate a number over the records after each task from `since` on."""
        return over_seeds(self.records, value, since)


class AccuracyBand(NamedTuple):
    """A range of accuracies that others have published, averaged over tasks, in percent, and a sentence about it."""

    low: float
    high: float
    text: str


@dataclass(frozen=True)
class Section:
    """The variants of one stream."""

    title: str
    variants: Sequence[Variant]
    """Variants with at least one finished task: the most accurate first, then upper bounds, then unfinished ones."""
    waiting: Sequence[Variant]
    """Variants without a finished task."""
    styles: Mapping[str, MethodStyle]
    """The style of each variant by its name."""
    published: Mapping[str, AccuracyBand] = field(default_factory=dict)
    """Accuracies that others have published for variants, by name."""
    name: str = ""
    """The user's name for the stream, such as that of a grid's scenario, or nothing."""

    @property
    def shown(self) -> str:
        """What tables call the stream: its name, or else its title."""
        return self.name or self.title

    @property
    def runs(self) -> list[Run]:
        """All runs, by variant."""
        return [run for variant in (*self.variants, *self.waiting) for run in variant.runs]

    @cached_property
    def along(self) -> Along:
        """What the horizontal axis of its curves counts: classes seen, or tasks."""
        return axis_of(one.records for one in self.variants)

    def since(self, task: int) -> "Section":
        """Return the section with only the variants that have finished task `task`."""
        return replace(self, variants=[one for one in self.variants if len(one.records[0].tasks) >= task])


def sections(runs: Sequence[Run]) -> list[Section]:
    """Group runs by stream: the same images, the same task sizes, the same test set, the same name if it has one."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(_stream(run.record), []).append(run)
    firsts = [members[0].record for members in groups.values()]
    return [
        replace(_section(_distinct_title(first, firsts), members), name=_stream_name(first))
        for first, members in zip(firsts, groups.values(), strict=True)
    ]


def _distinct_title(record: Record, all_records: Sequence[Record]) -> str:
    """Return the title of a record's stream, with the settings of its data in which it differs from others so titled.

    Where none differs, because files have changed, the fingerprint of the data tells them apart.
    """
    title = _title(record)
    rivals = [_data_settings(other) for other in all_records if _title(other) == title]
    own, different = _data_settings(record), differences(rivals)
    if len(rivals) == 1:
        return title
    known = [f"{name.replace('_', ' ')} {own.get(name, 'by default')}" for name in different]
    same = [other for other in rivals if all(other.get(name) == own.get(name) for name in different)]
    return ", ".join([title, *known]) + (f" (data {_stream(record)[0]})" if len(same) > 1 else "")


def _data_settings(record: Record) -> dict[str, object]:
    """Return the settings of a record's data: which images, of which size."""
    return {name: value for name, value in record.config.items() if name in DataSettings.model_fields}


def _stream(record: Record) -> tuple[object, ...]:
    config, held = record.config, record.config.get("validation", 0)
    same = "dataset" if held else "data_fingerprint"  # each seed holds out other images
    data = config.get(same, config["dataset"])
    stream = [repr(config.get(name)) for name in ("stream", "stream_sha256", "stream_settings")]
    return data, recorded_sizes(record), held, _stream_name(record), *stream


def _stream_name(record: Record) -> str:
    return str(record.provenance.get("stream_name") or "")


def _title(record: Record) -> str:
    sizes, held = record.task_sizes, record.config.get("validation", 0)
    large = sizes[0] > max(sizes[1:], default=sizes[0]) + 1 and "stream" not in record.config  # where a seed decides it
    base = f", {sizes[0]} of them in the first" if large else ""
    tested = f", tested on {100 * held:g} % of the training images" if held else ""
    stream = f", {record.config['stream']}" if "stream" in record.config else ""
    name = f"{_stream_name(record)}: " if _stream_name(record) else ""
    return f"{name}{record.config['dataset']}: {sum(sizes)} classes in {len(sizes)} tasks{base}{stream}{tested}"


def _section(title: str, runs: Sequence[Run]) -> Section:
    every = [Variant(name, members) for name, members in variants(runs).items()]
    shown = sorted((variant for variant in every if variant.records), key=_rank)
    waiting = [variant for variant in every if not variant.records]
    return Section(title, shown, waiting, method_styles(variant.name for variant in every))


def _rank(variant: Variant) -> tuple[bool, bool, float]:
    accuracy = variant.over(lambda record: summarise(record.tasks).average_top1)
    return not variant.finished, variant.bound, -accuracy.mean
