"""The paper's tables, our numbers beside the published ones."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ssil.benchmark.estimates import estimate
from ssil.learning.method import Phase, Stage
from ssil.learning.registry import configure
from ssil.reporting.text_tables import Table
from ssil.reproduction.conditions import Condition
from ssil.reproduction.effects import average
from ssil.reproduction.evidence import Evidence, MissingError
from ssil.reproduction.presets import Preset
from ssil.reproduction.published import DOUBTFUL, published
from ssil.reproduction.rows import LINES, REPLAY_SIZES

Columns = Sequence[Condition]
NONE = "-"


def accuracy_table(evidence: Evidence, lines: Sequence[str], columns: Columns, k: int) -> Table:
    """Average top-k, a row a method, a column a condition that has been run.

    Behind the stroke stands the paper's number on the data that ours stand for.
    """
    columns = [condition for condition in columns if evidence.begun(condition, lines)]
    if not columns:
        raise MissingError(lines)
    header = ["method", *(evidence.preset.said(condition) for condition in columns)]
    rows = [[line, *(_cell(evidence, condition, line, k) for condition in columns)] for line in lines]
    return Table(header, rows, _best(evidence, lines, columns, k))


def _cell(evidence: Evidence, condition: Condition, line: str, k: int) -> str:
    ours = estimate(_averages(evidence, condition, line, k)).text() if evidence.has(condition, line) else NONE
    return f"{ours} / {_printed(evidence.preset, condition, line, k)}"


def _averages(evidence: Evidence, condition: Condition, line: str, k: int) -> list[float]:
    return list(map(partial(average, k=k), evidence.records(condition, line)))


def _printed(preset: Preset, condition: Condition, line: str, k: int) -> str:
    """A published number; a question mark where it is likely a misprint."""
    found = published().get((preset.stands_for or preset.name, condition, line))
    if not found:
        return NONE
    doubt = "?" if (line, f"top{k}") in DOUBTFUL and condition.tasks == 10 else ""
    return f"{found[k > 1]:.1f}{doubt}"


def _best(evidence: Evidence, lines: Sequence[str], columns: Columns, k: int) -> frozenset[tuple[int, int]]:
    """The best of our own in each column that is whole; joint training is no rival."""
    rivals = {row: line for row, line in enumerate(lines) if line != "Joint"}
    best = set()
    for place, condition in enumerate(columns, 1):
        if all(evidence.has(condition, line) for line in rivals.values()):
            means = {row: estimate(_averages(evidence, condition, line, k)).mean for row, line in rivals.items()}
            best |= {(row, place) for row, mean in means.items() if mean == max(means.values())}
    return frozenset(best)


def replay_table(evidence: Evidence) -> Table:
    """Table S2: SS-IL by the exemplars in a batch (of 128 new images, or in proportion) and T, top-1 and top-5."""
    header = ["N_M", *(f"T = {tasks}, top-{k}" for tasks in REPLAY_SIZES for k in (1, 5))]
    rows = [
        [str(size), *(_size_cell(evidence, tasks, size, k) for tasks in REPLAY_SIZES for k in (1, 5))]
        for size in next(iter(REPLAY_SIZES.values()))
    ]
    return Table(header, rows)


def _size_cell(evidence: Evidence, tasks: int, size: int, k: int) -> str:
    condition, line = Condition(tasks), REPLAY_SIZES[tasks][size]
    ours = _cell(evidence, condition, line, k).partition(" / ")[0]
    return f"{ours} / {_printed(evidence.preset, condition, f'SS-IL, N_M = {size}', k)}"


def settings_table(lines: Sequence[str]) -> Table:
    """Table S1: the methods' settings under the profile `paper`."""
    header = [
        "method",
        "epochs",
        "later",
        "rate",
        "milestones",
        "decay",
        "momentum",
        "weight decay",
        "batch",
        "then",
        "options",
    ]
    rows = [[line, *_settings(LINES[line].rider or LINES[line].row)] for line in lines]
    return Table(header, rows, words=len(header))


def _settings(method: str) -> list[str]:
    found = configure(method, "paper", increments=10)
    training = found.training
    values = (
        training.epochs,
        training.later_epochs or training.epochs,
        training.lr,
        training.milestones,
        training.decay,
        training.momentum,
        training.weight_decay,
        training.batch,
    )
    options = ", ".join(f"{name} {value}" for name, value in found.options.items() if value is not None)
    return [
        *(" ".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in values),
        "; ".join(_said(part) for part in found.method.after_main()) or NONE,
        options or NONE,
    ]


def _said(part: Phase | Stage) -> str:
    if isinstance(part, Stage):
        return part.name
    schedule = part.schedule
    annealed = schedule == replace(schedule, lr=schedule.lr[:1], milestones=()).annealed()
    changed = "along a cosine" if annealed else f"milestones {' '.join(map(str, schedule.milestones)) or NONE}"
    return f"{part.name}: {schedule.epochs} epochs, rate {schedule.lr[0]:g}, {changed}"
