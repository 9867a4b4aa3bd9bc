"""The paper's tables and figures: the runs that each needs, and its making from their records."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from ssil.reporting.figures.ablations import replay_ablation, replay_sizes, softmax_ablation
from ssil.reporting.figures.bias import task_confusion, teacher_predictions
from ssil.reporting.figures.curves import Metric, accuracy_curves, accuracy_grid, branch_curves
from ssil.reporting.figures.illustrations import distillations, imbalanced_steps, separated_softmax
from ssil.reporting.figures.lines import Runs
from ssil.reporting.text_tables import Table
from ssil.reproduction.conditions import HIGH, MAIN, Condition, setting
from ssil.reproduction.evidence import Evidence, MissingError, Need, needs
from ssil.reproduction.paper_tables import Columns, accuracy_table, replay_table, settings_table
from ssil.reproduction.rows import ABLATION, BRANCH, GKD, REPLAY_SIZES, SUPPLEMENT, TABLE_1, TKD

REPLAY = ("SS-IL", "SS-IL without ER")
Tables = Callable[[Evidence], dict[str, Table]]
Figures = Callable[[Evidence], dict[str, Figure]]


@dataclass(frozen=True)
class Item:
    """A table or a figure; what is made of it has a name each, to end a file's name with."""

    name: str
    title: str
    needs: tuple[Need, ...] = ()
    tables: Tables = lambda _: {}
    figures: Figures = lambda _: {}


def runs(evidence: Evidence, lines: Iterable[str], condition: Condition = MAIN) -> Runs:
    """Records by variant, of the lines that have been run; a MissingError if none has."""
    there = {line: evidence.records(condition, line) for line in lines if evidence.has(condition, line)}
    if not there:
        raise MissingError(condition)
    return {_variant(line, records[0].label): records for line, records in there.items()}


def _variant(line: str, label: str) -> str:
    """A name that begins with the method's.

    >>> _variant("SS-IL without ER", "ssil"), _variant("CE+TKD (replay)", "ce_tkd")
    ('ssil without ER', 'ce_tkd')
    """
    return f"{label} without ER" if line == "SS-IL without ER" else label


def _table(name: str, title: str, lines: Sequence[str], columns: Columns) -> Item:
    def tables(evidence: Evidence) -> dict[str, Table]:
        return {f"top{k}": accuracy_table(evidence, lines, columns, k) for k in (1, 5)}

    return Item(name, title, needs(lines, *columns), tables)


def _curves(name: str, title: str, lines: Sequence[str], columns: Columns, metrics: Sequence[Metric]) -> Item:
    def figures(evidence: Evidence) -> dict[str, Figure]:
        found = {}
        for condition in columns:
            if evidence.begun(condition, lines):
                found[evidence.preset.said(condition)] = runs(evidence, lines, condition)
        if not found:
            raise MissingError(name)
        return {"": accuracy_grid(found, metrics, columns=len(metrics) if len(metrics) > 1 else 3)}

    return Item(name, title, needs(lines, *columns), figures=figures)


def _bias(evidence: Evidence) -> dict[str, Figure]:
    chain = runs(evidence, (GKD,))
    return {"left": task_confusion(chain), "right": teacher_predictions(chain)}


def _ablation(evidence: Evidence) -> dict[str, Figure]:
    pairs = {"with TKD": ("SS-IL", ABLATION[2]), "without": ("CE-SS", "CE")}
    return {"": softmax_ablation({name: runs(evidence, lines) for name, lines in pairs.items()})}


def _of(make: Callable[[Runs], Figure], lines: Sequence[str], condition: Condition = MAIN) -> Figures:
    return lambda evidence: {"": make(runs(evidence, lines, condition))}


def _gkd_against_tkd(evidence: Evidence) -> dict[str, Figure]:
    both = runs(evidence, (GKD, TKD))
    return {"top1": accuracy_curves(both, "top1"), "top5": accuracy_curves(both, "top5")}


def _sizes(evidence: Evidence) -> dict[str, Figure]:
    lines = {(need.condition, need.line) for need in SIZES if evidence.has(need.condition, need.line)}
    if not lines:
        raise MissingError("table-s2")
    found = {f"{line} {condition.tasks}": evidence.records(condition, line) for condition, line in sorted(lines)}
    return {"": replay_sizes(found)}


JOINT = (*TABLE_1, "Joint")
SIZES = tuple(Need(Condition(tasks), line) for tasks, sizes in REPLAY_SIZES.items() for line in sizes.values())
GROWING, LARGE, BOTH = setting(growing=True), setting(large_base=True), setting(growing=True, large_base=True)
TOP_5: tuple[Metric, ...] = ("top5",)

ITEMS = (
    Item(
        "fig1",
        "distillation over all old classes, and task by task (a drawing)",
        figures=lambda _: {"": distillations()},
    ),
    Item("fig2", "CE+GKD leans to the newest task, and so does the teacher", needs((GKD,)), figures=_bias),
    Item("fig3", "scores under imbalanced gradient steps (a toy)", figures=lambda _: {"": imbalanced_steps()}),
    Item("fig4", "SS-IL (a drawing)", figures=lambda _: {"": separated_softmax()}),
    _table("table1", "all methods, fixed memory", JOINT, setting()),
    _curves("fig5", "top-5 along the stream, the largest memory", JOINT, (Condition(level=HIGH),), TOP_5),
    Item("fig6", "scores of old and new classes in four models", needs(ABLATION), figures=_ablation),
    Item("fig7", "the four models' task confusion", needs(ABLATION), figures=_of(task_confusion, ABLATION)),
    Item("fig8", "GKD against TKD", needs((GKD, TKD)), figures=_gkd_against_tkd),
    Item(
        "fig9",
        "GKD against TKD, from the same teacher",
        needs((GKD, BRANCH)),
        figures=_of(branch_curves, (GKD, BRANCH)),
    ),
    Item("table-s1", "the methods' settings", tables=lambda _: {"": settings_table(TABLE_1)}),
    Item("fig-s1", "SS-IL with and without ER", needs(REPLAY), figures=_of(replay_ablation, REPLAY)),
    Item("table-s2", "exemplars in a batch by T", SIZES, lambda evidence: {"": replay_table(evidence)}, _sizes),
    _table("table-s3", "growing memory", SUPPLEMENT, GROWING),
    _table("table-s4", "large base", SUPPLEMENT, LARGE),
    _table("table-s5", "large base and growing memory", SUPPLEMENT, BOTH),
    _curves("fig-s2", "top-1 along the stream", JOINT, setting(), ("top1",)),
    _curves("fig-s3", "top-5 along the stream", JOINT, setting(), TOP_5),
    _curves("fig-s4", "growing memory along the stream", SUPPLEMENT, GROWING, ("top1", "top5")),
    _curves("fig-s5", "large base along the stream", SUPPLEMENT, LARGE, ("top1", "top5")),
    _curves("fig-s6", "large base and growing memory along the stream", SUPPLEMENT, BOTH, ("top1", "top5")),
)
"""In the paper's order."""
