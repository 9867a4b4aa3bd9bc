"""Runs by two processes, one after the other: python run_pair.py DATASET FOLDER '{"name": {settings}}'.

Of each, the process of rank R leaves in FOLDER/name-R how many images it has evaluated without training on them. With
`"dying": [R, ...]` among the settings, these processes are killed at their 7th step.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import tiny_runs
from kill_points import die
from ssil.benchmark.runner import RunObserver, run
from ssil.learning.execution import ExecutionContext
from ssil.learning.task import ProgressReport


class Evaluations(list[int]):
    """In place of `ExecutionContext.batched_outputs`: the number of images of each call."""

    batched_outputs = staticmethod(ExecutionContext.batched_outputs)

    def __call__(self, context: ExecutionContext, network: Any, indices: Tensor, *more: Any) -> Iterator[Any]:
        self.append(len(indices))
        return self.batched_outputs(context, network, indices, *more)

    def as_method(self) -> Any:
        """As a method of the execution context."""
        return lambda *given: self(*given)


class Mortal(RunObserver):
    """Is killed at a step, if it is one of those who are."""

    def __init__(self, dying: list[int], step: int = 7) -> None:
        self.dying, self.left = dying, step

    def progress(self, task: int, report: ProgressReport) -> None:
        self.left -= bool(report.step)
        if self.left == 0 and rank() in self.dying:
            die()


def rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


def main(dataset: Path, folder: Path, runs: str) -> None:
    torch.set_num_threads(1)
    for name, settings in json.loads(runs).items():
        evaluations, dying = Evaluations(), settings.pop("dying", [])
        ExecutionContext.batched_outputs = evaluations.as_method()  # type: ignore[method-assign]
        run(tiny_runs.config(dataset, **settings, devices=2, out=folder / name), Mortal(dying))
        (folder / f"{name}-{rank()}").write_text(json.dumps(evaluations))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
