"""FOSTER: both losses by their equations, boosting and compression of a small stream."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import oracles
import tiny_runs
from followed_methods import IMAGES, SETTINGS, copied, equal, follow, plan_for
from ssil.benchmark.runner import run
from ssil.core.classes import ClassTable
from ssil.learning import losses
from ssil.learning.engine import learn
from ssil.learning.method import Phase
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Step, TeacherOutput
from ssil.learning.task import Progress, ProgressReport
from ssil.methods.foster import class_weights
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, Output

FIRST, TWO = ClassTable(("?",) * 3, (0, 3)), ClassTable(("?",) * 5, (0, 3, 5))
LABELS, COUNTS = [0, 4, 2, 3, 1, 4], [4, 3, 0, 50, 20]


def phases(**options: Any) -> tuple[Phase, Phase]:
    boost, compress = (
        part for part in configure("foster", options=options).method.plan(TWO) if isinstance(part, Phase)
    )
    return boost, compress


def random(*shape: int, seed: int = 0) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def step(output: Output, **teachers: Tensor) -> Step:
    given = {name: TeacherOutput(Output(logits, logits), -logits) for name, logits in teachers.items()}
    return Step(torch.tensor(LABELS), output, TWO, given, torch.tensor(COUNTS), LinearHead(1), Scorer())


def test_weights_of_classes_by_loops() -> None:
    """A class without images counts as one with a single image; rare classes weigh most."""
    for beta in (0.0, 0.5, 0.96, 0.97):
        found = class_weights(torch.tensor(COUNTS), beta)
        assert found.tolist() == pytest.approx(oracles.effective_weights(COUNTS, beta))
        assert found.mean().item() == pytest.approx(1)
    assert (
        class_weights(torch.tensor(COUNTS), 0.0).tolist() == [1.0] * 5
    )  # every image after the first is worth nothing


def test_boosting_is_its_equation() -> None:
    logits, auxiliary, old = random(6, 5), random(6, 5, seed=1), random(6, 3, seed=2)
    boost, _ = phases(distillation=0.7, temperature=3.0, boosting_beta=0.9)
    terms = boost.loss(step(Output(logits, logits, (), auxiliary), old=old))
    weights = oracles.effective_weights(COUNTS, 0.9)
    for row, label in enumerate(LABELS):
        scores = oracles.rows(logits)[row]
        aligned = [score / weight for score, weight in zip(scores, weights, strict=True)]
        assert terms["ce"].values[row].item() == pytest.approx(oracles.cross_entropy(aligned, label))
        own = oracles.cross_entropy(oracles.rows(auxiliary)[row], label)
        assert terms["features"].values[row].item() == pytest.approx(own)
        kept = 0.7 * oracles.gkd(scores, oracles.rows(old)[row], 3.0)
        assert terms["kd"].values[row].item() == pytest.approx(kept)


def test_compression_is_its_equation() -> None:
    logits, pair = random(6, 5), random(6, 5, seed=1)
    _, compress = phases(temperature=3.0, compression_beta=0.9)
    found = compress.loss(step(Output(logits, logits), pair=pair))["kd"].values
    weights = oracles.effective_weights(COUNTS, 0.9)
    rows = zip(oracles.rows(logits), oracles.rows(pair), strict=True)
    assert found.tolist() == pytest.approx([oracles.balanced_kd(mine, both, weights, 3.0) for mine, both in rows])


def test_equal_weights_are_plain_distillation() -> None:
    logits, pair = random(6, 5), random(6, 5, seed=1)
    plain = losses.gkd(logits, pair, 2.0)
    torch.testing.assert_close(losses.balanced_kd(logits, pair, torch.full((5,), 0.3).double(), 2.0), plain)


def test_the_plan() -> None:
    boost, compress = phases()
    names = [part.name for part in configure("foster").method.plan(TWO)]
    assert names == ["expand", "main", "compression"]
    assert (boost.frozen, boost.teachers, boost.keep_as) == (("backbone.old",), ("old",), "pair")
    assert (compress.start, compress.teachers) == ("previous", ("pair",))
    assert (boost.schedule.epochs, compress.schedule.epochs) == (100, 75)
    for phase in (boost, compress):  # by cosine, from the first rate to almost none
        half = phase.schedule.lr_at(phase.schedule.epochs // 2)
        assert (phase.schedule.lr[0], half) == pytest.approx((0.1, 0.05), rel=0.05)
        assert phase.schedule.lr[-1] < 1e-4
    assert (boost.schedule.weight_decay, compress.schedule.weight_decay) == (1e-4, 0.0)
    assert phases(compression_epochs=7)[1].schedule.epochs == 7
    (main,) = configure("foster").method.plan(FIRST)
    assert main.name == "main"


# A small stream of 3, 1 and 2 classes


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("foster") / "patterns.npz", IMAGES)


def test_one_backbone_is_left_after_each_task(dataset: Path) -> None:
    for trace in follow("foster", dataset):
        network = trace.snapshot.network
        assert network.head.weight.shape == (trace.task.classes.seen, 16)
        assert {name.split(".")[1] for name, _ in network.backbone.named_parameters(prefix="backbone")} == {"new"}
        assert network.auxiliary is None


@pytest.mark.parametrize("start", ["previous", "fresh"])
def test_two_become_one(dataset: Path, start: str) -> None:
    """In boosting the old branch is the previous model's, bit for bit; compression starts as the option says."""
    plan = plan_for("foster", dataset, options={"compression_start": start}, lr=(0.1, 1e-30))
    one, two, _ = follow("foster", dataset)
    seen = dict[str, Network]()
    kept = dict[str, int]()

    def observe(progress: Progress, report: ProgressReport) -> None:
        seen[report.phase] = progress.network
        kept.update({name: snapshot.network.backbone.width for name, snapshot in progress.kept.items()})

    learn(plan.configured.method, one.snapshot, two.memory, plan.stream.tasks[1], plan.context, observer=observe)
    before = one.snapshot.network.state_dict()
    old = {
        key.replace(".old.0.", ".new."): value
        for key, value in seen["main"].state_dict().items()
        if key.startswith("backbone.old.0.")
    }
    assert equal(old, {key: value for key, value in before.items() if key.startswith("backbone.")})
    assert kept == {"pair": 32}
    assert seen["compression"].backbone.width == 16
    assert seen["compression"].head.weight.shape == (4, 16)


def test_what_compression_starts_from(dataset: Path) -> None:
    """With steps of no length in it, it ends with the previous model's weights, or with those of a fresh one."""
    found = {}
    for start in ("previous", "fresh"):
        plan = plan_for("foster", dataset, options={"compression_start": start}, lr=1e-30, weight_decay=0.0)
        one, two, _ = follow("foster", dataset)
        task = plan.stream.tasks[1]
        found[start] = learn(plan.configured.method, one.snapshot, two.memory, task, plan.context).network
    before = copied(one.snapshot)
    for name, parameter in found["previous"].named_parameters():
        if name.startswith("backbone"):
            torch.testing.assert_close(parameter.detach(), before[name], rtol=0, atol=1e-12)
    torch.testing.assert_close(found["previous"].head.weight[:3].detach(), before["head.weight"])
    assert not torch.allclose(found["fresh"].head.weight[:3], before["head.weight"])


def test_a_resumed_run_ends_with_the_same_weights(dataset: Path, tmp_path: Path) -> None:
    """Stopped every four steps: with the pair as a kept teacher, with two branches and with one."""
    given = {**SETTINGS, "method": "foster", "options": {"compression_start": "fresh"}}
    run(tiny_runs.config(dataset, **given, out=tmp_path / "whole"))
    for _ in range(100):
        try:
            run(tiny_runs.config(dataset, **given, out=tmp_path / "parts"), tiny_runs.Stopper(4))
            break
        except KeyboardInterrupt:
            pass
    assert equal(tiny_runs.tensors(tmp_path / "whole"), tiny_runs.tensors(tmp_path / "parts"))
