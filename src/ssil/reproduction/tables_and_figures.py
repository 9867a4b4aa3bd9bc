"""The paper's tables and figures (`ITEMS`): the runs that each needs, and how it is made from their records."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from matplotlib.figure import Figure

from ssil.benchmark.results import estimate
from ssil.learning.method import Phase, Stage
from ssil.learning.registry import configure
from ssil.reporting.figures.ablations import replay_ablation, replay_sizes, softmax_ablation
from ssil.reporting.figures.bias import task_confusion, teacher_predictions
from ssil.reporting.figures.curves import Metric, accuracy_curves, accuracy_grid, branch_curves
from ssil.reporting.figures.illustrations import distillations, imbalanced_steps, separated_softmax
from ssil.reporting.figures.lead_panels import leads_by_memory
from ssil.reporting.figures.lines import Runs
from ssil.reporting.text_tables import Table
from ssil.reproduction.effects import average
from ssil.reproduction.evidence import Evidence, MissingError, Need, needs
from ssil.reproduction.leads import all_measured_leads, all_printed_leads
from ssil.reproduction.paper_scenarios import HIGH, MAIN, Condition, setting
from ssil.reproduction.presets import Preset
from ssil.reproduction.published import DOUBTFUL, published
from ssil.reproduction.rows import ABLATION, BRANCH, GKD, LINES, REPLAY_SIZES, SUPPLEMENT, TABLE_1, TKD

Columns = Sequence[Condition]
Tables = Callable[[Evidence], dict[str, Table]]
Figures = Callable[[Evidence], dict[str, Figure]]

NONE = "-"
SETTINGS = ("epochs", "later_epochs", "lr", "milestones", "decay", "momentum", "weight_decay", "batch")
"""Columns of Table S1 that are fields of `Training`."""


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper; its parts are keyed by the ends of their file names."""

    name: str
    title: str
    needs: tuple[Need, ...] = ()
    tables: Tables = lambda _: {}
    figures: Figures = lambda _: {}


def accuracy_table(evidence: Evidence, lines: Sequence[str], columns: Columns, k: int) -> Table:
    """Return average top-k accuracies: one row per line, one column per condition that has runs.

    A cell is "ours / the paper's", the paper's number being that of the data set that the preset stands for, if any.
    """
    columns = _with_runs(evidence, lines, columns)
    if not columns:
        raise MissingError(lines)
    header = ["method", *(evidence.preset.describe(condition) for condition in columns)]
    rows = [[line, *(_cell(evidence, condition, line, k) for condition in columns)] for line in lines]
    return Table(header, rows, _best(evidence, lines, columns, k))


def _with_runs(evidence: Evidence, lines: Sequence[str], columns: Columns) -> Columns:
    return [condition for condition in columns if evidence.has_any(condition, lines)]


def cost_table(evidence: Evidence, lines: Sequence[str], columns: Columns) -> Table:
    """Return what the training of each line that has runs has cost under each condition: means over the seeds."""
    header = ["column", "method", "images seen", "gradient steps", "seconds"]
    columns = _with_runs(evidence, lines, columns)
    found = [(condition, line) for condition in columns for line in lines if evidence.has(condition, line)]
    rows = [[evidence.preset.column(condition), line, *_costs(evidence, condition, line)] for condition, line in found]
    return Table(header, rows, words=2)


def _costs(evidence: Evidence, condition: Condition, line: str) -> list[str]:
    """Return images, gradient steps and seconds of training; steps were not counted in records of version 2."""
    summaries = [record.summary for record in evidence.records(condition, line) if record.summary]
    costs = [(summary.images_seen, summary.gradient_steps, summary.training_seconds) for summary in summaries]
    return [NONE if None in values else f"{sum(values) / len(values):,.0f}" for values in zip(*costs, strict=True)]


def _cell(evidence: Evidence, condition: Condition, line: str, k: int) -> str:
    ours = estimate(_averages(evidence, condition, line, k)).text() if evidence.has(condition, line) else NONE
    return _beside_printed(ours, evidence.preset, condition, line, k)


def _averages(evidence: Evidence, condition: Condition, line: str, k: int) -> list[float]:
    return list(map(partial(average, k=k), evidence.records(condition, line)))


def _beside_printed(ours: str, preset: Preset, condition: Condition, line: str, k: int) -> str:
    """Return "ours / the paper's", with a question mark if the latter is likely a misprint.

    Ours stands alone if the preset stands for none of the paper's data sets.
    """
    dataset, numbers = preset.stands_for or preset.name, published()
    if all(key[0] != dataset for key in numbers):
        return ours
    found = numbers.get((dataset, condition, line))
    doubt = "?" if (line, f"top{k}") in DOUBTFUL and condition.tasks == 10 else ""
    return f"{ours} / {f'{found[k > 1]:.1f}{doubt}' if found else NONE}"


def _best(evidence: Evidence, lines: Sequence[str], columns: Columns, k: int) -> frozenset[tuple[int, int]]:
    """Return the best of our cells in each complete column, not counting joint training."""
    rivals = {row: line for row, line in enumerate(lines) if line != "Joint"}
    best = set()
    for place, condition in enumerate(columns, 1):
        if all(evidence.has(condition, line) for line in rivals.values()):
            means = {row: estimate(_averages(evidence, condition, line, k)).mean for row, line in rivals.items()}
            best |= {(row, place) for row, mean in means.items() if mean == max(means.values())}
    return frozenset(best)


def replay_table(evidence: Evidence) -> Table:
    """Return Table S2: SS-IL by exemplars per 128 new images of a batch (N_M) and T, top-1 and top-5."""
    columns = [(tasks, k) for tasks in REPLAY_SIZES for k in (1, 5)]
    rows = [
        [str(size), *(_size_cell(evidence, tasks, size, k) for tasks, k in columns)]
        for size in next(iter(REPLAY_SIZES.values()))
    ]
    return Table(["N_M", *(f"T = {tasks}, top-{k}" for tasks, k in columns)], rows)


def _size_cell(evidence: Evidence, tasks: int, size: int, k: int) -> str:
    condition, line = Condition(tasks), REPLAY_SIZES[tasks][size]
    ours = _cell(evidence, condition, line, k).partition(" / ")[0]
    return _beside_printed(ours, evidence.preset, condition, f"SS-IL, N_M = {size}", k)


def settings_table(lines: Sequence[str]) -> Table:
    """Return Table S1: the methods' settings under the profile `paper`."""
    names = {"later_epochs": "later", "lr": "rate", "weight_decay": "weight decay"}
    header = ["method", *(names.get(name, name) for name in SETTINGS), "then", "options"]
    rows = [[line, *_settings(LINES[line].method or LINES[line].row)] for line in lines]
    return Table(header, rows, words=len(header))


def _settings(method: str) -> list[str]:
    found = configure(method, "paper", increments=10)
    training = replace(found.training, later_epochs=found.training.later_epochs or found.training.epochs)
    values = (getattr(training, name) for name in SETTINGS)
    options = ", ".join(f"{name} {value}" for name, value in found.options.items() if value is not None)
    return [
        *(" ".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in values),
        "; ".join(_described(part) for part in found.method.after_main()) or NONE,
        options or NONE,
    ]


def _described(part: Phase | Stage) -> str:
    if isinstance(part, Stage):
        return part.name
    schedule = part.schedule
    annealed = schedule == replace(schedule, lr=schedule.lr[:1], milestones=()).annealed()
    changed = "along a cosine" if annealed else f"milestones {' '.join(map(str, schedule.milestones)) or NONE}"
    return f"{part.name}: {schedule.epochs} epochs, rate {schedule.lr[0]:g}, {changed}"


def runs(evidence: Evidence, lines: Iterable[str], condition: Condition = MAIN) -> Runs:
    """Return the records of the lines that have been run, by variant; raise MissingError if there are none."""
    found = {line: evidence.records(condition, line) for line in lines if evidence.has(condition, line)}
    if not found:
        raise MissingError(condition)
    return {_variant(line, records[0].label): records for line, records in found.items()}


def _variant(line: str, label: str) -> str:
    """Return a variant's name, which begins with its method's.

    >>> _variant("SS-IL without ER", "ssil"), _variant("CE+TKD (replay)", "ce_tkd")
    ('ssil without ER', 'ce_tkd')
    """
    return f"{label} without ER" if line == "SS-IL without ER" else label


def _table(name: str, title: str, lines: Sequence[str], columns: Columns) -> Item:
    """Return a table of accuracies, once for top-1 and once for top-5, and one of what the training has cost."""

    def tables(evidence: Evidence) -> dict[str, Table]:
        accuracies = {f"top{k}": accuracy_table(evidence, lines, columns, k) for k in (1, 5)}
        return {**accuracies, "cost": cost_table(evidence, lines, columns)}

    return Item(name, title, needs(lines, *columns), tables)


def _curves(name: str, title: str, lines: Sequence[str], columns: Columns, metrics: Sequence[Metric]) -> Item:
    """Return a figure with one panel per condition and metric."""

    def figures(evidence: Evidence) -> dict[str, Figure]:
        found = {
            evidence.preset.describe(condition): runs(evidence, lines, condition)
            for condition in columns
            if evidence.has_any(condition, lines)
        }
        if not found:
            raise MissingError(name)
        return {"": accuracy_grid(found, metrics, columns=len(metrics) if len(metrics) > 1 else 3)}

    return Item(name, title, needs(lines, *columns), figures=figures)


def _figure(name: str, title: str, lines: Sequence[str], draw: Callable[[Runs], Figure]) -> Item:
    """Return a single figure of the lines under the main condition."""
    return Item(name, title, needs(lines), figures=lambda evidence: {"": draw(runs(evidence, lines))})


def _illustration(name: str, title: str, draw: Callable[[], Figure]) -> Item:
    """Return a figure that needs no run."""
    return Item(name, title, figures=lambda _: {"": draw()})


def _bias(evidence: Evidence) -> dict[str, Figure]:
    chain = runs(evidence, (GKD,))
    return {"left": task_confusion(chain), "right": teacher_predictions(chain)}


def _ablation(evidence: Evidence) -> dict[str, Figure]:
    pairs = {"with TKD": ("SS-IL", ABLATION[2]), "without": ("CE-SS", "CE")}
    return {"": softmax_ablation({name: runs(evidence, lines) for name, lines in pairs.items()})}


def _gkd_against_tkd(evidence: Evidence) -> dict[str, Figure]:
    both = runs(evidence, (GKD, TKD))
    return {"top1": accuracy_curves(both, "top1"), "top5": accuracy_curves(both, "top5")}


def _sizes(evidence: Evidence) -> dict[str, Figure]:
    lines = {(need.condition, need.line) for need in SIZES if evidence.has(need.condition, need.line)}
    if not lines:
        raise MissingError("table-s2")
    found = {f"{line} {condition.tasks}": evidence.records(condition, line) for condition, line in sorted(lines)}
    return {"": replay_sizes(found)}


def _leads(evidence: Evidence) -> dict[str, Figure]:
    if not evidence.preset.known_images or not (measured := all_measured_leads(evidence)):
        raise MissingError("lead")
    return {"": leads_by_memory(measured, all_printed_leads())}


REPLAY = ("SS-IL", "SS-IL without ER")
JOINT = (*TABLE_1, "Joint")
SIZES = tuple(Need(Condition(tasks), line) for tasks, sizes in REPLAY_SIZES.items() for line in sizes.values())
GROWING, LARGE, BOTH = setting(growing=True), setting(large_base=True), setting(growing=True, large_base=True)

ITEMS = (
    _illustration("fig1", "distillation over all old classes, and task by task (a drawing)", distillations),
    Item("fig2", "CE+GKD leans to the newest task, and so does the teacher", needs((GKD,)), figures=_bias),
    _illustration("fig3", "scores under imbalanced gradient steps (a toy)", imbalanced_steps),
    _illustration("fig4", "SS-IL (a drawing)", separated_softmax),
    _table("table1", "all methods, fixed memory", JOINT, setting()),
    _curves("fig5", "top-5 along the stream, the largest memory", JOINT, (Condition(level=HIGH),), ("top5",)),
    Item("fig6", "scores of old and new classes in four models", needs(ABLATION), figures=_ablation),
    _figure("fig7", "the four models' task confusion", ABLATION, task_confusion),
    Item("fig8", "GKD against TKD", needs((GKD, TKD)), figures=_gkd_against_tkd),
    _figure("fig9", "GKD against TKD, from the same teacher", (GKD, BRANCH), branch_curves),
    Item("table-s1", "the methods' settings", tables=lambda _: {"": settings_table(TABLE_1)}),
    _figure("fig-s1", "SS-IL with and without ER", REPLAY, replay_ablation),
    Item("table-s2", "exemplars in a batch by T", SIZES, lambda evidence: {"": replay_table(evidence)}, _sizes),
    _table("table-s3", "growing memory", SUPPLEMENT, GROWING),
    _table("table-s4", "large base", SUPPLEMENT, LARGE),
    _table("table-s5", "large base and growing memory", SUPPLEMENT, BOTH),
    _curves("fig-s2", "top-1 along the stream", JOINT, setting(), ("top1",)),
    _curves("fig-s3", "top-5 along the stream", JOINT, setting(), ("top5",)),
    _curves("fig-s4", "growing memory along the stream", SUPPLEMENT, GROWING, ("top1", "top5")),
    _curves("fig-s5", "large base along the stream", SUPPLEMENT, LARGE, ("top1", "top5")),
    _curves("fig-s6", "large base and growing memory along the stream", SUPPLEMENT, BOTH, ("top1", "top5")),
    Item(
        "lead",
        "SS-IL's lead by the memory's share of a task (not in the paper)",
        needs(TABLE_1, *setting()),
        figures=_leads,
    ),
)
"""In the paper's order; what it does not have comes last."""
