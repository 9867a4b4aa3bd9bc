"""The stream that a run's settings ask for: disjoint classes, a ready-made stream, a table's or a function's."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ssil.benchmark.config import RunConfig
from ssil.benchmark.scenario import Stream, build_own_stream, build_stream, chosen_order, chosen_sizes
from ssil.benchmark.stream_functions import called_pairs, named_pairs, numpy_generator, source_file
from ssil.benchmark.stream_table import StreamTable, is_table, read_stream_table
from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.data.dataset import Dataset, validation_rows
from ssil.data.encoded_images import Encoded
from ssil.data.load import DRAWN


def chosen_stream(config: RunConfig, whole: Dataset, dataset: Dataset) -> Stream:
    """Return the run's stream.

    Args:
        config: The run's settings.
        whole: The data set, to whose training images a table refers.
        dataset: The same, or its validation split: what the run trains on and tests on.

    Raises:
        UserError: The order, the sizes or the table do not fit the data.
    """
    order = chosen_order(config, dataset.classes, config.seed)
    parts = dataset.train, dataset.test, dataset.classes, order
    if not config.stream:
        return build_stream(*parts, chosen_sizes(config, len(dataset.classes)))
    if not source_file(config.stream):
        plain = build_stream(*parts, chosen_sizes(config, len(dataset.classes)))
        return build_own_stream(*parts, _named(config, config.stream, plain))
    if not is_table(config.stream):
        return build_own_stream(*parts, _called(config, config.stream, dataset))
    return build_own_stream(*parts, _listed(config, read_stream_table(Path(config.stream)), whole))


def _random(config: RunConfig) -> np.random.Generator:
    return numpy_generator(Randomness(config.seed).at("stream"))


def _named(config: RunConfig, stream: str, plain: Stream) -> Tensor:
    """Return the pairs of a ready-made stream, which moves images of a stream of disjoint classes."""
    classes = plain.tasks[-1].classes
    return named_pairs(stream, plain.train.labels, classes.task_of(), classes.task, _random(config))


def _called(config: RunConfig, stream: str, dataset: Dataset) -> Tensor:
    """Return the pairs of a function of the user's; raise UserError if they have another number of tasks."""
    pairs = called_pairs(stream, dataset.train.labels, config.tasks, _random(config))
    count = int(pairs[:, 1].max()) if len(pairs) else config.tasks
    if count != config.tasks:
        raise UserError(f"stream: {stream} gave {count} tasks, and was asked for {config.tasks}; see --tasks")
    return pairs


def _listed(config: RunConfig, table: StreamTable, whole: Dataset) -> Tensor:
    """Return the pairs of a table, without images that are held out for validation."""
    if not table.by_path:
        _refuse_other_indices(config, table)
    images = whole.train.images
    pairs = table.pairs(images.names if isinstance(images, Encoded) else None, len(images))
    if not config.validation:
        return pairs
    stay, _ = validation_rows(whole, config.validation, config.seed)
    row = torch.full((len(images),), -1)
    row[stay] = torch.arange(len(stay))
    moved = torch.stack([row[pairs[:, 0]], pairs[:, 1]], 1)
    return moved[moved[:, 0] >= 0]


def _refuse_other_indices(config: RunConfig, table: StreamTable) -> None:
    """Raise UserError if a setting changes which image has which index."""
    drawn = {"classes", "train_per_class"} if config.dataset in DRAWN else set()
    for name in ("classes", "class_list", "min_per_class", "max_per_class", "train_per_class", "least"):
        if getattr(config, name) is not None and name not in drawn:
            shown = RunConfig.model_fields[name].alias or name
            changed = f"{shown}: it changes the indices by which {table.path} names images"
            raise UserError(f"{changed}; leave it out, or name them by path")
