from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

import oracles
import tiny_runs
from followed_methods import IMAGES, TaskTrace, copied, follow, plan_for
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Mixed, Pool
from ssil.learning.engine import learn
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Stage
from ssil.learning.registry import configure
from ssil.learning.schedule import Schedule
from ssil.learning.snapshot import MAIN, Scorer, Step, TaskState, TeacherOutput
from ssil.learning.stages import alignment
from ssil.methods.wa import Aligned
from ssil.nn.heads import LinearHead
from ssil.nn.network import Network, Output
from ssil.nn.resnet import Backbone

FIRST, TWO = ClassTable(("?",) * 3, (0, 3)), ClassTable(("?",) * 5, (0, 3, 5))


def method(profile: str = "paper", **options: Any) -> Method:
    return configure("wa", profile, options=options).method


def main(profile: str = "paper", classes: ClassTable = TWO, **options: Any) -> Phase:
    (found,) = (part for part in method(profile, **options).plan(classes) if isinstance(part, Phase))
    return found


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def work(weight: Tensor, bias: Tensor | None, classes: ClassTable, scorer: Scorer) -> TaskState:
    """A task whose network is a head."""
    head = LinearHead(weight.shape[1], bias is not None)
    head.weight = nn.Parameter(weight.clone())
    head.bias = None if bias is None else nn.Parameter(bias.clone())
    network, nothing = Network(cast(Backbone, nn.Identity()), head), torch.empty(0, dtype=torch.long)
    pool = Pool(nothing, nothing, nothing)
    return TaskState(network, {MAIN: scorer}, classes, pool, None, Randomness(0), lambda *_: Output(weight, weight))


def aligned(weight: Tensor, bias: Tensor | None = None, classes: ClassTable = TWO, **options: Any) -> TaskState:
    """After the last stage of a task."""
    recipe = method(**options)
    done = work(weight, bias, classes, recipe.scorers[MAIN]().to(weight.dtype))
    stage = recipe.plan(classes)[-1]
    assert isinstance(stage, Stage)
    stage.run(done)
    return done


# Alignment


def test_gamma_by_hand() -> None:
    """In L2 and L1, (3, 4) is 5 and 7 long, (5, 12) is 13 and 17, (9, 12) is 15 and 21.

    With the first old and the others new, gamma is 5 / ((13 + 15) / 2) = 5/14, or 7 / ((17 + 21) / 2) = 7/19; with
    the first two old it is ((5 + 13) / 2) / 15 = 9/15.
    """
    rows = torch.tensor([[3.0, 4.0], [5.0, 12.0], [9.0, 12.0]], dtype=torch.float64)
    assert alignment(rows[:2], 1).item() == pytest.approx(5 / 13)
    assert alignment(rows[:2], 1, order=1).item() == pytest.approx(7 / 17)
    assert alignment(rows, 1).item() == pytest.approx(5 / 14)
    assert alignment(rows, 1, order=1).item() == pytest.approx(7 / 19)
    assert alignment(rows, 2).item() == pytest.approx(9 / 15)
    classes = ClassTable(("?",) * 3, (0, 1, 3))
    folded = aligned(rows, classes=classes).network.head.weight
    expected = [[3.0, 4.0], [25 / 14, 60 / 14], [45 / 14, 60 / 14]]
    assert folded.tolist() == [pytest.approx(row) for row in expected]


@pytest.mark.parametrize("order", [1, 2])
def test_gamma_by_loops(order: int) -> None:
    rows = random(7, 4)
    for old in range(1, 7):
        assert alignment(rows, old, order).item() == pytest.approx(oracles.alignment(oracles.rows(rows), old, order))


def test_rows_of_nothing_stay_nothing() -> None:
    weight = torch.cat([random(3, 4), torch.zeros(2, 4)])
    assert torch.equal(aligned(weight).network.head.weight, weight)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_folded_norms_are_equal(norm: str, scale: float) -> None:
    """Old rows and biases stay, new rows keep their directions and their ratios; a second time changes nothing."""
    weight, bias = random(5, 4), random(5)
    weight[3:] *= scale
    done = aligned(weight, bias, norm=norm)
    head = done.network.head
    order = int(norm[1])
    norms = torch.linalg.vector_norm(head.weight.detach(), order, dim=1)
    assert (norms[:3].mean() / norms[3:].mean()).item() == pytest.approx(1)
    assert torch.equal(head.weight[:3], weight[:3])
    assert isinstance(head.bias, Tensor)
    assert torch.equal(head.bias, bias)
    ratio = head.weight[3:] / weight[3:]
    assert torch.allclose(ratio, ratio[0, 0])
    assert ratio.min() > 0
    again = aligned(head.weight.detach(), bias, norm=norm).network.head.weight
    assert torch.allclose(again, head.weight, rtol=1e-14)


def test_the_best_class_of_each_group_stays() -> None:
    features, weight = random(50, 4), random(5, 4)
    head = aligned(weight, torch.zeros(5, dtype=torch.float64)).network.head
    before, after = features @ weight.T, head(features)
    for group in (slice(0, 3), slice(3, 5)):
        assert torch.equal(before[:, group].argmax(1), after[:, group].argmax(1))


@pytest.mark.parametrize(("scale", "norm"), [(0.1, "l1"), (10.0, "l1"), (10.0, "l2")])
def test_the_original_never_lengthens(scale: float, norm: str) -> None:
    """New norms over old ones: at most 1. The factor is the scorer's, and the weights stay."""
    weight = random(5, 4)
    weight[3:] *= scale
    done = aligned(weight, variant="original", norm=norm)
    scorer = done.scorers[MAIN]
    assert isinstance(scorer, Aligned)
    assert torch.equal(done.network.head.weight, weight)
    expected = min(1.0, oracles.alignment(oracles.rows(weight), 3, int(norm[1])))
    assert scorer.gamma.item() == pytest.approx(expected)
    assert (scorer.gamma.item() == 1.0) == (scale == 0.1)
    logits = random(6, 5)
    scores = scorer(Output(logits, logits), TWO)
    assert torch.equal(scores[:, :3], logits[:, :3])
    assert torch.allclose(scores[:, 3:], expected * logits[:, 3:])


def test_the_clamp_is_an_option_of_both_variants() -> None:
    weight = random(5, 4)
    weight[3:] *= 0.1
    assert torch.equal(aligned(weight, clamp=True).network.head.weight, weight)
    (gamma,) = aligned(weight, variant="original", clamp=False).scorers[MAIN].buffers()
    assert gamma.item() == pytest.approx(oracles.alignment(oracles.rows(weight), 3, 1))


# The loss


def test_lambda_is_the_share_of_old_classes() -> None:
    """Against the equation, with the teacher's aligned scores and not its logits."""
    mine, scores, labels = random(6, 5), random(6, 3), [0, 1, 2, 3, 4, 3]
    teacher = TeacherOutput(Output(-scores, scores), scores)
    batch = Step(
        torch.tensor(labels), Output(mine, mine), TWO, {"old": teacher}, torch.ones(0), LinearHead(1), Scorer()
    )
    terms = main().loss(batch)
    for row, (logits, label, target) in enumerate(zip(oracles.rows(mine), labels, oracles.rows(scores), strict=True)):
        expected = oracles.weighted_by_class_shares(logits, label, target, 2.0)
        assert sum(term.values[row].item() for term in terms.values()) == pytest.approx(expected)


# The plan


def test_the_plan_of_the_paper() -> None:
    phase = main()
    assert phase.schedule.lr == pytest.approx([0.1 * 0.1**n for n in range(5)])
    assert phase.schedule == Schedule(100, phase.schedule.lr, (30, 60, 80, 90), 0.9, 1e-4 / 2)
    assert phase.batches == Mixed(256)
    assert phase.teachers == ("old",)
    assert main(classes=FIRST).teachers == ()
    assert main("official").schedule == phase.schedule
    assert main("quick").schedule.milestones == (2, 5, 6, 7)


@pytest.mark.parametrize(
    ("options", "first", "later"),
    [
        ({}, ["clip", "main"], ["clip", "main", "align"]),
        ({"weight_clipping": False}, ["main"], ["main", "align"]),
        ({"variant": "original"}, ["clip", "main"], ["reset", "clip", "main", "align"]),
    ],
)
def test_the_parts_of_each_variant(options: dict[str, Any], first: list[str], later: list[str]) -> None:
    plan = method(**options).plan
    assert [part.name for part in plan(FIRST)] == first
    assert [part.name for part in plan(TWO)] == later


def test_weight_decay_may_fall_with_the_tasks() -> None:
    assert main().schedule.weight_decay == pytest.approx(1e-4 / 2)
    assert main(weight_decay_by_task=False).schedule.weight_decay == 1e-4


def test_the_originals_head_has_no_bias() -> None:
    heads = [method(variant=variant).head(4) for variant in ("folded", "original")]
    assert [head.bias is None for head in heads if isinstance(head, LinearHead)] == [False, True]


# A small stream


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("wa") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module", params=["folded", "original"])
def traces(request: pytest.FixtureRequest, dataset: Path) -> tuple[TaskTrace, ...]:
    return follow("wa", dataset, variant=request.param)


def test_weights_never_fall_below_zero(traces: tuple[TaskTrace, ...], dataset: Path) -> None:
    """From the first step on, which the initial rows see; unclipped ones do."""
    assert all((trace.snapshot.network.head.weight >= 0).all() for trace in traces)
    assert (follow("wa", dataset, weight_clipping=False)[-1].snapshot.network.head.weight < 0).any()


def test_unclipped_the_first_task_is_the_joint_models(dataset: Path) -> None:
    mine = copied(follow("wa", dataset, weight_clipping=False)[0].snapshot)
    joint = copied(follow("joint", dataset)[0].snapshot)
    assert all(torch.equal(mine[name], joint[name]) for name in joint)


def test_folded_snapshots_are_aligned(dataset: Path) -> None:
    for trace in follow("wa", dataset)[1:]:
        gamma = alignment(trace.snapshot.network.head.weight, trace.task.classes.old)
        assert gamma.item() == pytest.approx(1, abs=1e-5)


def test_the_originals_factors_are_not_stacked(dataset: Path) -> None:
    """Each is that of its own head; the teacher of the third task has the second's, on its block alone."""
    traces = follow("wa", dataset, variant="original", clamp=False)
    gammas = []
    for trace in traces:
        (gamma,) = trace.snapshot.scorers[MAIN].buffers()
        rows, old = oracles.rows(trace.snapshot.network.head.weight), trace.task.classes.old
        assert gamma.item() == pytest.approx(oracles.alignment(rows, old, 1) if old else 1.0, rel=1e-5)
        gammas.append(gamma.item())
    assert gammas[1] != gammas[2] != 1.0
    views = [view for seen in traces[2].calls for view in seen.teachers.values()]
    assert views
    for view in views:
        raw = view.output.logits
        assert torch.allclose(view.scores, torch.cat([raw[:, :3], gammas[1] * raw[:, 3:]], 1))


@pytest.mark.parametrize("variant", ["folded", "original"])
def test_what_a_task_starts_from(variant: str, dataset: Path) -> None:
    """With steps of no length: the old head with new rows cut at zero, or a head drawn anew and cut at zero."""
    plan = plan_for("wa", dataset, lr=1e-30, weight_decay=0.0, options={"variant": variant})
    one, two = plan.stream.tasks[:2]
    context, recipe = plan.context, plan.configured.method
    before = learn(recipe, None, Memory(), one, context)
    assert isinstance(before.network.head, LinearHead)
    pure = LinearHead(16, bias=variant == "folded").grow(3, context.random.at("head", 1)).weight
    assert torch.allclose(before.network.head.weight, pure.clamp(min=0))
    after = learn(recipe, before, Memory((one.indices,)), two, context).network.head.weight
    if variant == "folded":
        assert torch.allclose(after[:3], before.network.head.weight)
    else:
        drawn = deepcopy(before.network.head).new_rows(4, context.random.within(2, "reset").at("head"))["weight"]
        assert torch.allclose(after, drawn.clamp(min=0))


def test_gamma_is_one_where_no_class_is_new() -> None:
    none_new, scorer = TWO.extend([]), Aligned()
    (align,) = (part for part in method(variant="original").plan(none_new) if part.name == "align")
    assert isinstance(align, Stage)
    align.run(work(random(5, 4), None, none_new, scorer))
    assert scorer.gamma == 1
