"""What the built-in methods have in common, beyond the contract in `ssil.testing`."""

import ast
from pathlib import Path
from typing import Any

import pytest

import tiny_runs
from followed_methods import IMAGES, SETTINGS, copied, equal, follow
from ssil import methods
from ssil.benchmark.runner import run
from ssil.learning.registry import configure, recipes
from ssil.learning.snapshot import Scorer
from ssil.nn.heads import LinearHead


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("methods") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module", params=list(recipes()))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_first_task_is_learnt_as_joint_training_learns_it(name: str, dataset: Path) -> None:
    method, first = configure(name).method, follow(name, dataset)[0]
    if not isinstance(method.head(4), LinearHead) or any(make is not Scorer for make in method.scorers.values()):
        pytest.skip("the method has a head or a scorer of its own")
    if first.calls[0].phase.project:
        pytest.skip("the method bounds its weights")
    if first.calls[0].phase.schedule != follow("joint", dataset)[0].calls[0].phase.schedule:
        pytest.skip("the method anneals its rate")
    mine, joint = copied(first.snapshot), copied(follow("joint", dataset)[0].snapshot)
    if method.branches:  # of which there is one, under another name
        mine = dict(zip(joint, mine.values(), strict=True))
    assert equal(mine, joint)


def test_the_previous_models_predictions_on_a_new_task_are_recorded(name: str, dataset: Path) -> None:
    record = run(tiny_runs.config(dataset, **SETTINGS, method=name))
    first, second, third = (task.teacher_ratio for task in record.tasks)
    assert first is None
    assert second == [1.0]
    assert third is not None
    assert len(third) == 2
    assert sum(third) == pytest.approx(1)


def test_methods_that_differ_in_name_only_share_their_weights(dataset: Path) -> None:
    """FT is CE on mixed batches, ER is CE on replay batches, once their schedules agree."""
    for one, other, options in (("ft", "ce", {"batches": "mixed"}), ("er", "ce", {})):
        for mine, theirs in zip(follow(one, dataset), follow(other, dataset, **options), strict=True):
            assert equal(copied(mine.snapshot), copied(theirs.snapshot))


@pytest.mark.slow
def test_a_first_task_of_one_class_is_kept(tmp_path: Path) -> None:
    """One old class is as little of a group as one new class."""
    dataset = tiny_runs.patterns(tmp_path / "easy.npz", [8] * 5)
    settings: dict[str, Any] = {"task_sizes": (1, 4), "epochs": 12, "later_epochs": 12, "batch": 8, "memory": 24}
    record = run(tiny_runs.config(dataset, **settings, method="ssil"))
    assert min(top1 or 0.0 for top1 in record.tasks[-1].task_top1) > 50


@pytest.mark.parametrize("file", sorted(Path(methods.__path__[0]).glob("*.py")), ids=lambda file: file.stem)
def test_a_method_file_has_at_most_80_lines_of_code(file: Path) -> None:
    """Without blank lines, comments and docstrings."""
    source = file.read_text()
    nodes = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
    ]
    documented = [node.body[0] for node in nodes if ast.get_docstring(node)]
    words = {line for node in documented for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    code = {
        line for line, text in enumerate(source.splitlines(), 1) if text.strip() and not text.strip().startswith("#")
    }
    assert len(code - words) <= 80
