"""The optimiser is torch's SGD bit for bit, and training on one CPU imports neither a compiler nor Fabric."""

import subprocess
import sys
from pathlib import Path

import torch
from torch import nn
from torch.optim import SGD, Optimizer

import tiny_runs
from ssil.learning.optimizer import Sgd


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
