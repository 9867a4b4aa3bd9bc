"""SS-IL's lead over each rival by the memory's share of a task's images: from our runs, and as the paper prints it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from ssil.reporting.figures.lead_panels import Lead
from ssil.reproduction.effects import average
from ssil.reproduction.evidence import Evidence
from ssil.reproduction.paper_scenarios import DATASETS, Condition, setting
from ssil.reproduction.presets import FOLDER, Preset, find_preset
from ssil.reproduction.published import published
from ssil.reproduction.rows import TABLE_1

RIVALS = tuple(line for line in TABLE_1 if line != "SS-IL")
CONDITIONS = setting()
"""The columns of Table 1: a fixed memory, no large base."""


def memory_share(preset: Preset, condition: Condition) -> float:
    """Return |M| / n_t: a fixed memory's exemplars by the training images of a task; all tasks have as many.

    >>> round(memory_share(find_preset("imagenet"), Condition()), 3)
    0.078
    """
    return preset.exemplars[condition.level] * condition.tasks / preset.images_by_class[0]


def measured_leads(evidence: Evidence, rivals: Sequence[str] = RIVALS) -> list[Lead]:
    """Return the leads in average top-1 accuracy of all finished runs of a preset by rival, one number per seed."""
    return [
        Lead(line, memory_share(evidence.preset, condition), condition.tasks, _differences(evidence, condition, line))
        for line in rivals
        for condition in CONDITIONS
        if evidence.has(condition, "SS-IL") and evidence.has(condition, line)
    ]


def _differences(evidence: Evidence, condition: Condition, line: str) -> tuple[float, ...]:
    """Return SS-IL's average minus the rival's, seed by seed."""
    ours, theirs = (evidence.values(partial(average, k=1), name, condition) for name in ("SS-IL", line))
    return tuple(own - other for own, other in zip(ours, theirs, strict=True))


def printed_leads(data: str, rivals: Sequence[str] = RIVALS) -> list[Lead]:
    """Return the leads in the paper's Table 1 on one of its data sets."""
    preset, numbers = find_preset(data), published()
    return [
        Lead(line, memory_share(preset, condition), condition.tasks, (own.top1 - other.top1,))
        for condition in CONDITIONS
        for line in rivals
        if (own := numbers.get((data, condition, "SS-IL"))) and (other := numbers.get((data, condition, line)))
    ]


def all_printed_leads() -> dict[str, list[Lead]]:
    """Return the paper's leads by the title of the data set."""
    return {find_preset(data).title: printed_leads(data) for data in DATASETS}


def all_measured_leads(evidence: Evidence) -> dict[str, list[Lead]]:
    """Return the leads on the preset of `evidence` and on all others with the paper's proportions, by their titles.

    The others are the presets of the package with an `epoch_scale` that have finished runs beside those of `evidence`,
    with the first of its seeds.
    """
    found = {evidence.preset.title: measured_leads(evidence)}
    for preset in _scaled_presets():
        if preset.name != evidence.preset.name:
            found[preset.title] = measured_leads(_beside(evidence, preset))
    return {title: leads for title, leads in found.items() if leads}


def _beside(evidence: Evidence, preset: Preset) -> Evidence:
    return replace(evidence, preset=preset, seeds=evidence.seeds[:1])


def _scaled_presets() -> Iterator[Preset]:
    for file in sorted(FOLDER.glob("*.toml")):
        preset = find_preset(file.stem)
        if "epoch_scale" in preset.settings:
            yield preset
