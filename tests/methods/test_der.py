"""DER: the loss by its equation, the expansion of a small stream, what stays frozen, and resumption."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import oracles
import tiny_runs
from followed_methods import IMAGES, SETTINGS, TaskTrace, copied, follow, plan_for
from ssil.benchmark.runner import run
from ssil.core.classes import ClassTable
from ssil.learning.engine import learn
from ssil.learning.method import Method, Phase, Term
from ssil.learning.registry import configure
from ssil.learning.snapshot import Scorer, Step
from ssil.learning.stages import alignment
from ssil.learning.task import Task
from ssil.learning.training_subsets import balanced
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output

FIRST, TWO = ClassTable(("?",) * 3, (0, 3)), ClassTable(("?",) * 5, (0, 3, 5))
LABELS = [0, 4, 2, 3, 1, 4]


def method(**options: Any) -> Method:
    return configure("der", options=options).method


def phases(classes: ClassTable, **options: Any) -> list[Phase]:
    return [part for part in method(**options).plan(classes) if isinstance(part, Phase)]


def random(*shape: int, seed: int = 0) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def step(output: Output) -> Step:
    return Step(torch.tensor(LABELS), output, TWO, {}, torch.ones(0), LinearHead(1), Scorer())


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_the_loss_is_its_equation(weight: float) -> None:
    logits, auxiliary = random(6, 5), random(6, 3, seed=1)
    (main,) = phases(TWO, auxiliary_weight=weight)
    terms: dict[str, Term] = main.loss(step(Output(logits, logits, (), auxiliary)))
    rows = zip(oracles.rows(logits), oracles.rows(auxiliary), LABELS, strict=True)
    wanted = [oracles.expanded(scores, own, label, 3, weight) for scores, own, label in rows]
    assert terms["ce"].values.tolist() == pytest.approx([ce for ce, _ in wanted])
    assert terms["auxiliary"].values.tolist() == pytest.approx([own for _, own in wanted])
    assert {term.divisor for term in terms.values()} == {6}


def test_without_an_auxiliary_head_it_is_cross_entropy() -> None:
    (main,) = phases(FIRST)
    assert [*main.loss(step(Output(random(6, 5), random(6, 5))))] == ["ce"]


def test_retraining_divides_logits_by_its_temperature() -> None:
    _, retrain = phases(TWO, classifier="retrain")
    logits = random(6, 5)
    wanted = [
        oracles.cross_entropy([score / 5 for score in row], label)
        for row, label in zip(oracles.rows(logits), LABELS, strict=True)
    ]
    assert retrain.loss(step(Output(logits, logits)))["ce"].values.tolist() == pytest.approx(wanted)
    assert (retrain.trained, retrain.images) == ("head", balanced)
    assert (retrain.schedule.epochs, retrain.schedule.milestones) == (18, (9,))  # 30 and 15 of 170, for 100


@pytest.mark.parametrize(
    ("classifier", "later"),
    [
        ("align", ["expand", "main", "drop_auxiliary", "align"]),
        ("retrain", ["expand", "main", "drop_auxiliary", "reset", "retrain"]),
    ],
)
def test_the_parts_of_the_plan(classifier: str, later: list[str]) -> None:
    plan = method(classifier=classifier).plan
    assert [part.name for part in plan(FIRST)] == ["main"]
    assert [part.name for part in plan(TWO)] == later
    assert [part.name for part in plan(TWO.extend([]))] == ["main"]  # no class is new, so no branch


# A small stream of 3, 1 and 2 classes


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("der") / "patterns.npz", IMAGES)


def branch(trace: TaskTrace, name: str) -> dict[str, Tensor]:
    """The tensors of a branch, by their names in it."""
    prefix = f"backbone.{name}."
    return {key[len(prefix) :]: value for key, value in copied(trace.snapshot).items() if key.startswith(prefix)}


def same(these: dict[str, Tensor], those: dict[str, Tensor]) -> bool:
    assert these
    return these.keys() == those.keys() and all(torch.equal(these[key], those[key]) for key in these)


def test_frozen_branches_stay_bit_for_bit(dataset: Path) -> None:
    """Weights and batch-norm statistics of a task's branch, through all later tasks; the newest has moved on."""
    one, two, three = follow("der", dataset)
    assert same(branch(one, "new"), branch(two, "old.0"))
    assert same(branch(one, "new"), branch(three, "old.0"))
    assert same(branch(two, "new"), branch(three, "old.1"))
    moved = branch(three, "new")
    assert not any(torch.equal(value, branch(two, "new")[key]) for key, value in moved.items() if "num" not in key)


def test_the_network_grows_by_a_backbone_a_task(dataset: Path) -> None:
    for number, trace in enumerate(follow("der", dataset), 1):
        network, classes = trace.snapshot.network, trace.task.classes
        assert network.head.weight.shape == (classes.seen, 16 * number)
        assert network.backbone.width == 16 * number
        assert network.auxiliary is None


def test_rows_are_aligned_at_a_tasks_end(dataset: Path) -> None:
    for trace in follow("der", dataset)[1:]:
        gamma = alignment(trace.snapshot.network.head.weight, trace.task.classes.old)
        assert gamma.item() == pytest.approx(1, abs=1e-5)


def test_what_a_later_task_starts_from(dataset: Path) -> None:
    """With steps of no length: the new branch is a copy, and the head's old block is as it was."""
    plan = plan_for("der", dataset, lr=1e-30, weight_decay=0.0)
    before, after, _ = follow("der", dataset)
    task = plan.stream.tasks[1]
    learnt = learn(plan.configured.method, before.snapshot, after.memory, task, plan.context).network
    old, new = (learnt.get_submodule(f"backbone.{name}") for name in ("old.0", "new"))
    for own, copy in zip(old.parameters(), new.parameters(), strict=True):
        torch.testing.assert_close(copy, own, rtol=0, atol=1e-20)
    torch.testing.assert_close(learnt.head.weight[:3, :16], before.snapshot.network.head.weight)


def test_a_task_of_known_classes_trains_the_newest_branch_alone(dataset: Path) -> None:
    one, two, three = follow("der", dataset)
    plan = plan_for("der", dataset)
    more = Task(two.task.classes.extend([]), one.task.indices)
    learnt = learn(plan.configured.method, two.snapshot, three.memory, more, plan.context)
    assert learnt.network.backbone.width == 2 * 16
    changed = {
        key.rpartition("backbone.")[2].partition(".")[0]
        for key, value in learnt.network.state_dict().items()
        if key.startswith("backbone") and not torch.equal(value, two.snapshot.network.state_dict()[key])
    }
    assert changed == {"new"}


@pytest.mark.parametrize("options", [{"classifier": "retrain"}, {"auxiliary_weight": 0.0}])
def test_a_resumed_run_ends_with_the_same_weights(dataset: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """Stopped every five steps: inside all phases, with and without the auxiliary head."""
    given = {**SETTINGS, "method": "der", "options": options}
    run(tiny_runs.config(dataset, **given, out=tmp_path / "whole"))
    for _ in range(100):
        try:
            run(tiny_runs.config(dataset, **given, out=tmp_path / "parts"), tiny_runs.Stopper(5))
            break
        except KeyboardInterrupt:
            pass
    whole, parts = (tiny_runs.tensors(tmp_path / name) for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[key], parts[key]) for key in whole)
