"""Backbones are compiled once, however much the head grows."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx

import tiny_runs
from followed_methods import IMAGES, plan_for
from ssil.learning import memory as memories
from ssil.learning.engine import learn
from ssil.learning.memory import Memory
from ssil.learning.snapshot import Snapshot


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("compile") / "patterns.npz", IMAGES)


class Counting(list[fx.GraphModule]):
    """A compiler that compiles nothing, and remembers what it was asked for."""

    def __call__(self, graph: fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        self.append(graph)
        return graph.forward


def learnt(method: str, dataset: Path, compiler: Counting | None) -> Snapshot:
    """The stream of 3, 1 and 2 classes, learnt."""
    plan = plan_for(method, dataset)
    context, memory, snapshot = replace(plan.context, compiler=compiler), Memory(), None
    for task in plan.stream.tasks:
        snapshot = learn(plan.configured.method, snapshot, memory, task, context)
        arrived = memories.by_class(task.indices, context.samples.labels)
        memory = memories.update(memory, arrived, task.classes, plan.budget, memories.random_selection(context.random))
    assert snapshot
    return snapshot


@pytest.mark.parametrize(("method", "graphs"), [("ft", 1), ("ce_gkd", 2)])
def test_a_growing_head_compiles_nothing_anew(method: str, graphs: int, dataset: Path) -> None:
    """One graph for the student and one for the teacher, whose batch norms are folded, in all tasks together."""
    compiler = Counting()
    compiled, plain = learnt(method, dataset, compiler), learnt(method, dataset, None)
    assert len(compiler) == graphs
    for mine, theirs in zip(compiled.network.parameters(), plain.network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_only_a_run_that_asks_for_it_is_compiled(dataset: Path) -> None:
    assert plan_for("ft", dataset).context.compiler is None
    assert plan_for("ft", dataset, compile=True).context.compiler == "inductor"
