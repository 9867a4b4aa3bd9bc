"""The protocol card of a run: everything needed to judge its numbers or to reproduce them."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, Final

from ssil.benchmark.record import Record, flat
from ssil.benchmark.results import Run, describe_budget, differences
from ssil.core.errors import UserError
from ssil.learning.registry import configure, recipes

NAMED: Final = 100
"""Largest number of classes that are all named; with more, each task lists its first few."""

PAPER: Final[dict[str, tuple[Any, ...]]] = {
    "dataset": ("imagenet", "landmark-v2-1k", "landmark-v2-10k"),
    "least": (None,),
    "validation": (0,),
    "backbone": ("resnet18",),
    "norm": ("batch",),
    "init": (None,),
    "freeze": (None,),
    "selection": ("random",),
}
"""Settings that the paper uses for all methods."""


def card(run: Run) -> dict[str, list[str]]:
    """Return the lines of the card by heading; headings without lines are left out."""
    record = run.record
    config, provenance = record.config, record.provenance
    lines = {
        "state": [_state(record)],
        "folder": [str(run.folder)],
        "method": list(_method(record)),
        "options": [_listed(config.get("options", {}))],
        "data": list(_data(config, provenance)),
        "stream": list(_stream(record)),
        "class order": list(_order(record)),
        "memory": [_memory(record)],
        "network": [_chosen(config | provenance, "backbone", "norm", "init", "freeze", "precision")],
        "schedule": [_schedule(config["training"])] if "training" in config else [],
        "seed": [str(config.get("seed", ""))],
        "versions": [_chosen(provenance, "ssil", "commit", "python", "torch")],
        "machine": [_chosen(provenance, "platform", "device", "devices", "threads")],
        "time": list(_times(provenance)),
        "command": [provenance.get("command", "")],
        "deviations from the paper": [*deviations(record), *departures(config["method"])],
    }
    return {heading: found for heading, texts in lines.items() if (found := [text for text in texts if text])}


def deviations(record: Record) -> list[str]:
    """Return the settings that differ from `PAPER` or from the method's profile `paper`, with the paper's values."""
    config = record.config | {"init": record.provenance.get("init")}
    general = [
        f"{name} {config[name]} (paper: {_text(values)})"
        for name, values in PAPER.items()
        if config.get(name, values[0]) not in values
    ]
    paper = _paper(config["method"], config.get("training", {}).get("increments"))
    if paper is None:
        return [*general, "The method is none of this package, so its settings can't be compared."]
    ours = paper | flat({"training": config.get("training", {}), "options": config.get("options", {})})
    names = [name for name in differences([_plain(ours), _plain(paper)]) if name in paper]
    return general + [f"{name.rpartition('.')[2]} {_text(ours[name])} (paper: {_text(paper[name])})" for name in names]


@cache
def _paper(method: str, increments: int | None) -> dict[str, Any] | None:
    """Return a method's settings under the profile `paper`; None for a method from a file (its code is not run)."""
    if method not in recipes():
        return None
    try:
        found = configure(method, "paper", increments=increments)
    except UserError:  # an option that has no default
        return None
    return flat({"training": asdict(found.training), "options": found.options})


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as a record stores them: tuples become lists."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def departures(method: str) -> list[str]:
    """Return the passages of a method's docstring from "departure" to the end of the paragraph or argument.

    >>> departures("uw")[0][:36]
    'Departures: batch norm is in eval mo'
    """
    if method not in recipes():
        return []
    paragraphs = re.split(r"\n\n|\n(?= +\w+: )", inspect.getdoc(recipes()[method].build) or "")
    sentences = [" ".join(paragraph.split()).split(". ") for paragraph in paragraphs]
    return [
        ". ".join(paragraph[place:])
        for paragraph in sentences
        for place in [next((i for i, one in enumerate(paragraph) if "departure" in one.lower()), None)]
        if place is not None
    ]


def _state(record: Record) -> str:
    return "finished" if record.summary else f"{len(record.tasks)} of {len(record.task_sizes)} tasks done"


def _method(record: Record) -> Iterator[str]:
    method, profile = record.config["method"], record.provenance.get("profile")
    yield f"{record.label}{f', profile {profile}' if profile else ''}"
    yield recipes()[method].summary if method in recipes() else ""
    if chain := record.config.get("chain"):
        yield f"learns each task from the model that {chain} has before it"


def _data(config: Mapping[str, Any], provenance: Mapping[str, Any]) -> Iterator[str]:
    yield f"{config['dataset']}{' (synthetic images)' if provenance.get('synthetic_data') else ''}"
    if images := provenance.get("images"):
        yield f"{images['train']:,} images to train on, {images['test']:,} to test on"
    counts = "classes", "train_per_class", "test_per_class", "min_per_class", "max_per_class", "least"
    yield _chosen(config, *counts, "image_size", "augment", "split_seed")
    if held := config.get("validation"):
        yield f"tested on {100 * held:g} % of the training images"
    if left := provenance.get("left_out"):
        yield f"{left:,} files left out, see remarks.csv"
    if fingerprint := config.get("data_fingerprint"):
        yield f"fingerprint {fingerprint}"


def _sizes(sizes: Sequence[int]) -> str:
    return f"{sizes[0]} each" if len(set(sizes)) == 1 else ", ".join(map(str, sizes))


def _stream(record: Record) -> Iterator[str]:
    sizes = record.task_sizes
    yield f"{sum(sizes)} classes in {len(sizes)} tasks: {_sizes(sizes)}"
    if own := record.config.get("stream"):
        yield f"{own}: classes return; these are the new ones of each task"
        yield _chosen(record.config, "stream_sha256", "stream_fingerprint")


def _order(record: Record) -> Iterator[str]:
    """Yield a line per task with the names of its classes."""
    few = None if len(record.class_names) <= NAMED else 5
    for task, (start, end) in enumerate(pairwise(accumulate(record.task_sizes, initial=0)), start=1):
        names = record.class_names[start:end]
        more = f" and {len(names) - few} more" if few and len(names) > few else ""
        yield f"task {task}: {', '.join(names[:few])}{more}"


def _memory(record: Record) -> str:
    config = record.config
    size = f", {record.tasks[-1].exemplar_bytes / 1e6:.2f} MB as raw pixels" if record.tasks else ""
    chosen = f", chosen by {config['selection']}" if config.get("selection") == "herding" else ", chosen at random"
    kept = record.memory["kind"] in {"fixed", "growing", "megabytes"}
    return f"{describe_budget(record.memory)}{chosen + size if kept else ''}"


def _schedule(training: Mapping[str, Any]) -> str:
    epochs, later = training["epochs"], training["later_epochs"]
    length = (
        f"{epochs} epochs a task" if later in (None, epochs) else f"{epochs} epochs, {later} in tasks after the first"
    )
    rate = f"rate {_text(training['lr'])}, changed before epochs {_text(training['milestones'])}"
    names = (
        "batch",
        "momentum",
        "weight_decay",
        "lr_by_task",
        "new_head_init",
        "later_milestones",
        "later_weight_decay",
        "optimizer",
    )
    rest = _chosen(training, *names)
    return f"{length}; {rate}; {rest}"


def _times(provenance: Mapping[str, Any]) -> Iterator[str]:
    yield _chosen(provenance, "started", "finished")
    for settings in provenance.get("resumed", []):
        yield f"resumed with: {_listed(settings)}"


def _chosen(settings: Mapping[str, Any], *names: str) -> str:
    """Return the named settings that are known, as text."""
    return _listed({name: settings[name] for name in names if settings.get(name) is not None})


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_text(value)}" for name, value in settings.items())


def _text(value: Any) -> str:
    return ", ".join(map(_text, value)) if isinstance(value, list | tuple) else "none" if value is None else str(value)
