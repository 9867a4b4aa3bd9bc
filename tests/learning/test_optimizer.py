"""The optimisers are torch's bit for bit; training on one CPU imports neither a compiler nor Fabric."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

import tiny_runs
from ssil.learning.optimizer import (
    Sgd,
    make_optimizer,
    misplaced,
    optimizer_state,
    restore_optimizer_state,
    set_rate,
)
from ssil.learning.schedule import OptimizerName, Schedule


def trained(kind: type[Optimizer], momentum: float) -> list[torch.Tensor]:
    """Five steps of a small network, with a learning rate that changes."""
    generator = torch.Generator().manual_seed(0)
    network = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))
    for parameter in network.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    optimizer = kind(network.parameters(), lr=0.1, momentum=momentum, weight_decay=1e-2)  # type: ignore[call-arg]
    for step in range(5):
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        optimizer.zero_grad()
        network(torch.randn(4, 7, generator=generator)).square().sum().backward()
        optimizer.step()
    return [parameter.detach() for parameter in network.parameters()]


def test_it_equals_torchs_own() -> None:
    for momentum in (0.0, 0.9):
        ours, theirs = trained(Sgd, momentum), trained(SGD, momentum)
        assert all(map(torch.equal, ours, theirs))


def test_gradients_are_freed() -> None:
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    Sgd([parameter], lr=0.1).zero_grad()
    assert parameter.grad is None


def test_a_run_on_one_cpu_imports_neither_compiler_nor_fabric(tmp_path: Path) -> None:
    arguments = tiny_runs.command(tmp_path, "ssil")
    watched = ("torch._dynamo", "lightning_fabric", "sympy")
    code = (
        f"import sys; from ssil.cli import main; main({arguments}); print([n for n in {watched} if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def small_network() -> nn.Sequential:
    generator = torch.Generator().manual_seed(0)
    network = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))
    for parameter in network.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    return network


def steps(network: nn.Module, optimizer: Optimizer, count: int, first: int = 0) -> None:
    for step in range(first, first + count):
        generator = torch.Generator().manual_seed(step)
        optimizer.zero_grad()
        network(torch.randn(4, 7, generator=generator)).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_it_goes_on_from_its_state_to_the_bit(optimizer: OptimizerName) -> None:
    schedule = Schedule(epochs=1, lr=(0.001,), weight_decay=1e-2, optimizer=optimizer)
    whole, divided = small_network(), small_network()
    steps(whole, make_optimizer(whole.parameters(), schedule, {}), 5)
    before = make_optimizer(divided.parameters(), schedule, {})
    steps(divided, before, 2)
    kept = {name: value.clone() for name, value in optimizer_state(before, divided).items()}
    assert not misplaced(kept, divided, schedule)
    assert misplaced(kept, divided, replace(schedule, optimizer="sgd" if optimizer == "adamw" else "adamw"))
    after = make_optimizer(divided.parameters(), schedule, {})
    restore_optimizer_state(after, divided, kept)
    steps(divided, after, 3, first=2)
    assert all(map(torch.equal, whole.parameters(), divided.parameters()))


def test_adamw_is_torchs_own() -> None:
    ours, theirs = small_network(), small_network()
    schedule = Schedule(epochs=1, lr=(0.01,), momentum=0.8, weight_decay=1e-2, optimizer="adamw")
    steps(ours, make_optimizer(ours.parameters(), schedule, {}), 5)
    steps(theirs, AdamW(theirs.parameters(), lr=0.01, betas=(0.8, 0.999), weight_decay=1e-2), 5)
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_group_has_a_rate_of_its_own(optimizer: OptimizerName) -> None:
    """A parameter with the factor 0.1 moves as one at a tenth of the rate does; one with the factor 0 stays."""
    schedule = Schedule(epochs=1, lr=(1.0,), weight_decay=0.0, optimizer=optimizer)
    slow, plain, fixed = (nn.Parameter(torch.ones(3)) for _ in range(3))
    made = make_optimizer([slow, plain, fixed], schedule, {slow: 0.1, fixed: 0.0})
    set_rate(made, 0.5)
    for parameter in (slow, plain, fixed):
        parameter.grad = torch.tensor([1.0, 2.0, 3.0])
    made.step()
    torch.testing.assert_close(1 - slow, (1 - plain) / 10)
    assert torch.equal(fixed, torch.ones(3))
    assert not torch.equal(plain, torch.ones(3))
