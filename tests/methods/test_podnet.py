from itertools import pairwise
from math import cos, pi, sqrt
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import oracles
import tiny_runs
from followed_methods import IMAGES, follow
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Mixed, Pool
from ssil.learning.method import Phase, Stage, StepPosition, Term
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Snapshot, Step, TaskState, TeacherOutput
from ssil.learning.training_subsets import balanced
from ssil.methods.podnet import imprint_proxies
from ssil.nn.heads import ProxyHead
from ssil.nn.network import Network, Output
from ssil.nn.resnet import Backbone

CLASSES = ClassTable(("?",) * 7, (0, 3, 5, 7))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("podnet") / "patterns.npz", IMAGES)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def step(labels: list[int]) -> tuple[Step, Output]:
    """A batch with features of 4 numbers, two stages and a head of scale 3; and the teacher's output."""
    head = ProxyHead(4, proxies=2).double()
    head.weight.data, head.scale.data = draw(7, 2, 4, seed=1), torch.tensor(3.0, dtype=torch.float64)
    batch = len(labels)
    features, maps = draw(batch, 4), (draw(batch, 2, 3, 3), draw(batch, 4, 2, 2))
    old = Output(draw(batch, 5), draw(batch, 4, seed=2), (draw(batch, 2, 3, 3, seed=3), draw(batch, 4, 2, 2, seed=4)))
    output = Output(head(features), features, maps)
    return Step(
        torch.tensor(labels), output, CLASSES, {"old": TeacherOutput(old, old.logits)}, torch.ones(0), head, Scorer()
    ), old


def phases(profile: str = "paper", **options: Any) -> tuple[Stage, Phase, Phase]:
    stage, main, tuned = configure("podnet", profile, options=options).method.plan(CLASSES)
    assert isinstance(stage, Stage)
    assert isinstance(main, Phase)
    assert isinstance(tuned, Phase)
    return stage, main, tuned


@pytest.mark.parametrize(("options", "growth", "flat", "separate"), [
    ({}, sqrt(7 / 2), 10, False),
    ({"scheduled": False, "pooling": "separate", "flat": 20.0}, 1.0, 20, True),
])  # fmt: skip
def test_the_loss_against_loops(options: dict[str, Any], growth: float, flat: float, separate: bool) -> None:
    labels = [0, 6, 4]
    batch, old = step(labels)
    found: dict[str, Term] = phases(**options)[1].loss(batch)
    scores = [oracles.proxy_scores(f, batch.head.weight.tolist()) for f in oracles.rows(batch.output.features)]
    nca = [oracles.nca([3 * s for s in row], label) for row, label in zip(scores, labels, strict=True)]
    assert found["nca"].values.tolist() == pytest.approx(nca)
    maps = [[[stage[i].tolist() for stage in side.stages] for side in (batch.output, old)] for i in range(3)]
    spatial = [8 * growth * oracles.pod_spatial(mine, theirs, separate) for mine, theirs in maps]
    assert found["pod_spatial"].values.tolist() == pytest.approx(spatial)
    pairs = zip(oracles.rows(batch.output.features), oracles.rows(old.features), strict=True)
    drift = [flat * growth * (1 - oracles.cosine(a, b)) for a, b in pairs]
    assert found["pod_flat"].values.tolist() == pytest.approx(drift)
    assert [term.divisor for term in found.values()] == [3, 3, 3]


def test_the_papers_loss_has_a_margin() -> None:
    labels = [0, 6, 4]
    batch, _ = step(labels)
    found = phases(nca="paper", margin=0.3)[1].loss(batch)["nca"].values
    scores = oracles.rows(batch.output.logits.detach())
    expected = [oracles.nca_hinged(row, label, 3.0, 0.3) for row, label in zip(scores, labels, strict=True)]
    assert found.tolist() == pytest.approx(expected)


def test_the_official_flat_term_is_twice_the_original() -> None:
    official = configure("podnet", "official").options
    assert official["flat"] == 2 * configure("podnet").options["flat"]
    batch, old = step([0, 1])
    squared = (F.normalize(batch.output.features) - F.normalize(old.features)).square().sum(1)
    torch.testing.assert_close(phases("official")[1].loss(batch)["pod_flat"].values, 10 * squared)


def test_old_proxies_stand_still_until_the_balanced_phase(dataset: Path) -> None:
    """With a rate of nearly nothing there, they are still the old ones at the end; the scale is never tuned."""
    traces = follow("podnet", dataset, balanced_lr=1e-30)
    for before, after in pairwise(traces):
        old, new = before.snapshot.network.head, after.snapshot.network.head
        assert torch.equal(new.weight[: old.classes], old.weight)
    usual = follow("podnet", dataset)
    old, new = usual[0].snapshot.network.head, usual[1].snapshot.network.head
    assert not torch.equal(new.weight[: old.classes], old.weight)
    assert torch.equal(new.get_parameter("scale"), traces[1].snapshot.network.head.get_parameter("scale"))


def blobs(per_class: int, spread: float) -> tuple[TaskState, Tensor]:
    """Two new classes after one old class; a class's features lie around two directions of its own."""
    head = ProxyHead(4, proxies=2).double().grow(1, torch.Generator()).double()
    previous = Snapshot(Network(Backbone(), head), ClassTable().extend(["a"]), {})
    network = previous.network.grow(2, torch.Generator())
    axes = torch.eye(4, dtype=torch.float64)
    features = torch.cat([axes[c].repeat(per_class // 2, 1) for c in (0, 1, 2, 3)])
    features = features * (2 + draw(len(features), 1, seed=5).abs()) + spread * draw(*features.shape)
    labels = torch.tensor([1] * per_class + [2] * per_class)
    pool = Pool(torch.arange(2 * per_class), torch.arange(0), labels)
    classes = ClassTable().extend(["a"]).extend(["b", "c"])
    return TaskState(
        network, {}, classes, pool, previous, Randomness(0), lambda _, i: Output(features[i], features[i])
    ), features


def test_proxies_start_at_k_means_centres_of_unit_features() -> None:
    """Two axes a class, without spread: the centres are the axes, whatever the features' lengths."""
    work, _ = blobs(per_class=6, spread=0.0)
    length = work.network.head.weight[0].norm(dim=1).mean().item()
    old = work.network.head.weight[0].detach().clone()
    imprint_proxies(work)
    weight = work.network.head.weight.detach()
    assert torch.equal(weight[0], old)
    for label, axes in ((1, [0, 1]), (2, [2, 3])):
        found = sorted(row.argmax().item() for row in weight[label])
        assert found == axes
        torch.testing.assert_close(weight[label].norm(dim=1), torch.full((2,), length, dtype=torch.float64))


def test_a_class_of_one_image_uses_it_for_all_its_proxies() -> None:
    work, features = blobs(per_class=2, spread=0.0)
    work.pool.labels[1] = 2
    imprint_proxies(work)
    first, second = work.network.head.weight[1].detach()
    assert torch.equal(first, second)
    assert first.argmax() == features[0].argmax()


def test_the_scale_is_reset_only_if_asked_to() -> None:
    for reset, expected in ((False, 3.0), (True, 1.0)):
        work, _ = blobs(per_class=4, spread=0.1)
        work.network.head.get_parameter("scale").data.fill_(3)
        phases(reset_scale=reset)[0].run(work)
        assert work.network.head.get_parameter("scale").item() == expected


def test_gradients_are_clamped_only_if_asked_to() -> None:
    for clamp, expected in ((None, 7.0), (5.0, 5.0)):
        work, _ = blobs(per_class=4, spread=0.1)
        work.network.head.weight.grad = torch.full_like(work.network.head.weight, 7.0)
        hook = phases(clamp=clamp)[1].gradients
        assert hook is not None
        hook(work, StepPosition(0, 0, 4))
        assert work.network.head.weight.grad.unique().tolist() == [expected]


def test_the_papers_settings() -> None:
    stage, main, tuned = phases()
    assert (stage.name, main.name, tuned.name) == ("imprint", "main", "balanced")
    assert (main.schedule.epochs, main.schedule.lr[0], main.batches) == (90, 0.05, Mixed(64))
    assert main.schedule.lr_at(45) == pytest.approx(0.025)
    assert main.schedule.lr_at(89) == pytest.approx(0.025 * (1 - cos(pi / 90)))
    assert (tuned.schedule.epochs, tuned.schedule.lr, tuned.schedule.momentum) == (20, (0.01,), 0.9)
    assert (tuned.trained, tuned.images, tuned.teachers) == ("head", balanced, ())
    assert phases("official")[2].schedule.momentum == 0.0
    assert phases(annealing="steps")[1].schedule.lr == (0.05,)
    assert not configure("podnet").method.final_relu
