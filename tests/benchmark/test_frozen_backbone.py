"""`--freeze`: heads that learn from features computed once, by the same fold."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_runs
from followed_methods import IMAGES, SETTINGS
from ssil.benchmark.record import read_predictions, read_record
from ssil.benchmark.run_setup import RunSetup, set_up
from ssil.benchmark.runner import run
from ssil.core.cache_folder import cache_dir
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.core.tensor_files import write_tensors
from ssil.learning import memory as memories
from ssil.learning.engine import learn
from ssil.learning.execution import ExecutionContext
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, TaskPlan
from ssil.learning.model_state import initial_network
from ssil.learning.registry import configure, recipes
from ssil.learning.snapshot import Snapshot
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, build
from ssil.testing.small_stream import StopAfterTask


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("freeze") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module")
def init(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Our own names, and batch norms that have seen something."""
    backbone = build(
        f"{tiny_runs.__file__}:backbone", LinearHead, 1, "batch", torch.Generator().manual_seed(3)
    ).backbone
    backbone(torch.randn(32, 1, 8, 8, generator=torch.Generator().manual_seed(4)))
    file = tmp_path_factory.mktemp("freeze") / "backbone.safetensors"
    write_tensors(file, backbone.state_dict())
    return str(file)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path / "cache"))


def settings(init: str, method: str = "ft", **more: Any) -> dict[str, Any]:
    return {**SETTINGS, "method": method, "init": init, "freeze": True, **more}


GROWING = ("der", "foster", "memo")
"""Methods whose networks grow branches, which frozen features can't have."""


@pytest.mark.parametrize("method", [name for name in recipes() if name not in GROWING])
def test_every_method_learns_from_vectors_and_goes_on_where_it_stopped(
    method: str, dataset: Path, init: str, tmp_path: Path
) -> None:
    whole = run(tiny_runs.config(dataset, **settings(init, method), out=tmp_path / "whole"))
    stopper = tiny_runs.Stopper(7) if configure(method).method.requirements().training else StopAfterTask()
    with pytest.raises(KeyboardInterrupt):
        run(tiny_runs.config(dataset, **settings(init, method), out=tmp_path / "stopped"), stopper)
    resumed = run(tiny_runs.config(dataset, **settings(init, method), out=tmp_path / "stopped"))
    assert tiny_runs.timeless(resumed) == tiny_runs.timeless(whole)
    assert whole.config["freeze"] is True
    assert [task.exemplar_bytes for task in whole.tasks] == [sum(task.memory_counts) * 16 * 4 for task in whole.tasks]
    assert not any("backbone" in name for name in tiny_runs.tensors(tmp_path / "whole"))


@pytest.mark.parametrize("method", GROWING)
def test_a_frozen_backbone_can_not_grow(method: str, dataset: Path, init: str) -> None:
    with pytest.raises(UserError, match="leave --freeze out"):
        run(tiny_runs.config(dataset, **settings(init, method)))


def head_only(method: Method) -> Method:
    """The same method on a network whose backbone stands still."""

    def plan(classes: ClassTable) -> TaskPlan:
        return tuple(
            replace(part, trained="head") if isinstance(part, Phase) else part for part in method.plan(classes)
        )

    return replace(method, plan=plan)


def learnt(method: Method, plan: RunSetup, context: ExecutionContext) -> Iterator[Snapshot]:
    """The fold."""
    memory, snapshot = Memory(), None
    for task in plan.stream.tasks:
        snapshot = learn(method, snapshot, memory, task, context)
        arrived = memories.by_class(task.indices, context.samples.labels)
        memory = memories.update(memory, arrived, task.classes, plan.budget, memories.random_selection(context.random))
        yield snapshot


@pytest.mark.parametrize("method", ["ssil", "ft", "lucir"])
def test_heads_learn_what_they_would_on_images(method: str, dataset: Path, init: str) -> None:
    """With a backbone that stands still, and without augmentation."""
    frozen, moving = (
        set_up(tiny_runs.config(dataset, **settings(init, method, freeze=freeze))) for freeze in (True, False)
    )
    still = replace(moving.context, transform=replace(moving.context.transform, pad=0))
    on_vectors = learnt(frozen.configured.method, frozen, frozen.context)
    on_images = learnt(head_only(moving.configured.method), moving, still)
    for mine, theirs in zip(on_vectors, on_images, strict=True):
        for name, weight in theirs.network.head.named_parameters():
            torch.testing.assert_close(mine.network.head.get_parameter(name), weight, rtol=1e-4, atol=1e-5)


def test_a_head_on_its_backbone_predicts_from_images_what_was_recorded(
    dataset: Path, init: str, tmp_path: Path
) -> None:
    run(tiny_runs.config(dataset, **settings(init), out=tmp_path / "run"))
    plan = set_up(tiny_runs.config(dataset, **settings(init, freeze=False)))
    network = initial_network(plan.configured.method, plan.stream.tasks[-1].classes, plan.context)
    head = {
        name.removeprefix("snapshot/network/head."): tensor
        for name, tensor in tiny_runs.tensors(tmp_path / "run").items()
        if "/head." in name
    }
    network.head.load_state_dict(head)
    (output,) = [output for _, output in plan.context.batched_outputs(network, torch.arange(24), plan.stream.test)]
    assert torch.equal(output.logits.topk(5).indices, read_predictions(tmp_path / "run", 3).top)


def test_features_are_computed_once_for_all_that_share_them(
    dataset: Path, init: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = list[int]()

    def forward(self: Network, images: Tensor, _forward: Any = Network.forward) -> Any:
        if images.ndim == 4:
            looked.append(len(images))
        return _forward(self, images)

    monkeypatch.setattr(Network, "forward", forward)
    for method, seed in (("ft", 0), ("ssil", 0), ("ssil", 1)):
        run(tiny_runs.config(dataset, **settings(init, method, seed=seed)))
    assert looked == [sum(IMAGES), 24]
    run(tiny_runs.config(dataset, **settings(init, "lucir")))  # whose features are not cut at zero
    run(tiny_runs.config(dataset, **settings(init, precision="64-true")))
    assert len(looked) == 6
    assert len(list(cache_dir().glob("features-*"))) == 6


def test_features_of_each_runtime_have_a_cache_of_their_own(
    dataset: Path, init: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They differ by rounding alone."""
    by_onnx = set_up(tiny_runs.config(dataset, **settings(init))).context
    monkeypatch.setattr(ExecutionContext, "prefers_onnx", False)
    by_torch = set_up(tiny_runs.config(dataset, **settings(init))).context
    assert len(list(cache_dir().glob("features-*-train.npz"))) == 2
    found, wanted = (
        context.transform.test(context.samples.images.fetch(torch.arange(sum(IMAGES))), torch.float32)
        for context in (by_onnx, by_torch)
    )
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * float(wanted.abs().max()))


def test_a_frozen_run_is_another_run(dataset: Path, init: str, tmp_path: Path) -> None:
    run(tiny_runs.config(dataset, **settings(init), out=tmp_path / "run"))
    with pytest.raises(UserError, match=r"other settings \(freeze: True there, None here\)"):
        run(tiny_runs.config(dataset, **settings(init, freeze=False), out=tmp_path / "run"))
    assert read_record(tmp_path / "run").summary


def test_random_weights_are_not_frozen(dataset: Path) -> None:
    with pytest.raises(UserError, match=r"^freeze: .*; give --init too$"):
        set_up(tiny_runs.config(dataset, **SETTINGS, freeze=True))


def test_progress_of_computing_features_is_reported_until_all_images_are_done(dataset: Path, init: str) -> None:
    reports = list[tuple[int, int]]()
    config = tiny_runs.config(dataset, **settings(init))
    setup = set_up(config, on_features=lambda done, images: reports.append((done, images)))
    images = len(setup.stream.train) + len(setup.stream.test)
    assert reports[-1] == (images, images)
    assert sorted(reports) == reports
    set_up(config, on_features=lambda done, images: pytest.fail("the features are in the cache"))
