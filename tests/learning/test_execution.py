"""Evaluation in batches, and features that are computed once for class means and herding."""

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import tiny_runs
from ssil.benchmark.run_setup import RunSetup, set_up
from ssil.benchmark.runner import run
from ssil.learning import execution
from ssil.learning.distributed import SingleDevice
from ssil.learning.execution import ExecutionContext, evaluation_batches
from ssil.learning.model_state import initial_network
from ssil.nn import onnx_backbone
from ssil.nn.network import Network, Output
from ssil.nn.onnx_backbone import OnnxBackbone


@pytest.fixture
def plan(tmp_path: Path) -> RunSetup:
    """Six classes in two tasks."""
    return set_up(tiny_runs.config(tiny_runs.patterns(tmp_path / "patterns.npz", [5] * 6), tasks=2))


def untrained(plan: RunSetup) -> Network:
    return initial_network(plan.configured.method, plan.stream.tasks[0].classes, plan.context)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The indices of all training images that are evaluated from now on, call by call."""
    calls: list[Tensor] = []
    inner = ExecutionContext.outputs

    def outputs(self: ExecutionContext, network: Network, indices: Tensor) -> Output:
        calls.append(indices)
        return inner(self, network, indices)

    monkeypatch.setattr(ExecutionContext, "outputs", outputs)
    return calls


@pytest.mark.parametrize("count", [0, 1, 15, 16, 63, 64, 65, 79, 80, 128, 130, 200])
def test_batches_hold_all_indices_in_order_and_only_a_single_one_is_tiny(count: int) -> None:
    batches = evaluation_batches(torch.arange(count), most=64)
    assert torch.cat(batches).tolist() == list(range(count))
    assert max(map(len, batches)) < 64 + execution.LEAST
    assert len(batches) == 1 or min(map(len, batches)) >= execution.LEAST


def test_a_copy_of_the_network_has_the_features_already(plan: RunSetup, evaluated: list[Tensor]) -> None:
    network = untrained(plan)
    first = plan.context.features(network, torch.tensor([4, 0, 2]))
    again = plan.context.features(network.clone(), torch.tensor([2, 4]))
    assert len(evaluated) == 1
    assert torch.equal(again, first[[2, 0]])


def test_features_are_computed_again_for_other_images_and_other_weights(
    plan: RunSetup, evaluated: list[Tensor]
) -> None:
    network, indices = untrained(plan), torch.tensor([4, 0, 2])
    first = plan.context.features(network, indices)
    plan.context.features(network, torch.tensor([4, 1]))
    plan.context.features(network, indices)
    assert len(evaluated) == 3
    with torch.no_grad():
        next(network.backbone.parameters()).mul_(2)
    assert not torch.equal(plan.context.features(network, indices), first)


def test_who_changes_features_changes_a_copy(plan: RunSetup) -> None:
    network, indices = untrained(plan), torch.tensor([4, 0, 2])
    first = plan.context.features(network, indices)
    kept = first.clone()
    first.zero_()
    plan.context.features(network, indices).zero_()
    assert torch.equal(plan.context.features(network, indices), kept)


def test_other_samples_have_other_features(plan: RunSetup) -> None:
    network, indices = untrained(plan), torch.tensor([4, 0, 2])
    before = plan.context.features(network, indices)
    other = replace(plan.context, samples=plan.stream.test)
    assert not torch.equal(other.features(network, indices), before)


def test_herding_needs_no_feature_that_the_class_means_had(tmp_path: Path, evaluated: list[Tensor]) -> None:
    data = tiny_runs.patterns(tmp_path / "patterns.npz", [5] * 6)
    run(tiny_runs.config(data, method="icarl", tasks=2, selection="herding", memory=12))
    assert [len(indices) for indices in evaluated] == [15, 15 + 12]  # the task's images, and 12 exemplars


def by_onnx(context: ExecutionContext, network: Network) -> bool:
    return isinstance(context.feature_network(network, context.samples).backbone, OnnxBackbone)


class BFloat16(SingleDevice):
    """A CPU in mixed precision."""

    def autocast(self) -> AbstractContextManager[None]:
        return torch.autocast("cpu", torch.bfloat16)


def test_frozen_features_come_from_onnx_runtime_on_a_cpu_in_single_precision(plan: RunSetup) -> None:
    context, network = plan.context, untrained(plan)
    assert by_onnx(context, network)
    assert not by_onnx(replace(context, dtype=torch.float64), network.clone().double())
    assert not by_onnx(replace(context, fabric=BFloat16("cpu")), network)
    assert not by_onnx(replace(context, fabric=SingleDevice("meta")), network)


def test_a_backbone_that_cant_be_exported_stays_in_pytorch(plan: RunSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    context, network = plan.context, untrained(plan)
    monkeypatch.setattr(onnx_backbone, "in_onnx_runtime", lambda network, shape: None)
    computing = context.feature_network(network, context.samples)
    assert computing.backbone is network.backbone
    assert computing.head.classes == 0
