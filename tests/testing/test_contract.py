"""What every method is checked for, the day its file appears."""

import ast
import inspect
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor

import tiny_runs
from followed_methods import IMAGES, SETTINGS, Lesson, copied, follow, plan_for, scores
from ssil import methods
from ssil.benchmark.record import Record
from ssil.benchmark.runner import run
from ssil.learning.batches import Replay
from ssil.learning.engine import learn
from ssil.learning.registry import configure, recipes
from ssil.learning.snapshot import Scorer
from ssil.learning.task import Task
from ssil.nn.heads import LinearHead


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("contract") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module", params=list(recipes()))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def lessons(name: str, dataset: Path) -> tuple[Lesson, ...]:
    return follow(name, dataset)


@pytest.fixture(scope="module")
def whole(name: str, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """A run that nobody disturbed: its directory and its record."""
    out = tmp_path_factory.mktemp(name)
    return out, run(tiny_runs.config(dataset, **SETTINGS, method=name, out=out))


def equal(these: dict[str, Tensor], those: dict[str, Tensor]) -> bool:
    """Bit for bit."""
    return these.keys() == those.keys() and all(torch.equal(these[key], those[key]) for key in these)


def test_loss_parts_are_named_and_finite_and_have_a_gradient(lessons: tuple[Lesson, ...]) -> None:
    for seen in (seen for lesson in lessons for seen in lesson.seen):
        assert seen.parts
        for part, term in seen.parts.items():
            assert part.isidentifier()
            assert term.values.isfinite().all()
            assert term.values.requires_grad
            assert term.divisor > 0 or not len(term.values)
        assert seen.gradient.isfinite().all()
        assert seen.gradient.any()


def test_the_first_task_has_an_empty_memory_and_no_teacher(lessons: tuple[Lesson, ...]) -> None:
    first = lessons[0]
    assert len(first.memory) == 0
    assert first.seen
    assert not any(seen.teachers for seen in first.seen)


def test_uneven_tasks_of_few_images(lessons: tuple[Lesson, ...], dataset: Path, name: str) -> None:
    labels = plan_for(name, dataset).context.samples.labels
    counts = [labels[lesson.task.indices].bincount()[lesson.task.classes.old :].tolist() for lesson in lessons]
    assert list(map(len, counts)) == [3, 1, 2]
    assert sorted(chain(*counts)) == sorted(IMAGES)


def test_scores_are_over_all_classes_seen(lessons: tuple[Lesson, ...]) -> None:
    shapes = [tuple(lesson.scores.shape) for lesson in lessons]
    assert shapes == [(24, 3), (24, 4), (24, 6)]


def test_a_score_does_not_depend_on_the_batch(lessons: tuple[Lesson, ...], dataset: Path, name: str) -> None:
    plan = plan_for(name, dataset)
    for lesson in lessons:
        alone = scores(lesson.snapshot, plan, batch=1)
        assert (alone - lesson.scores).abs().max() <= 1e-5 * lesson.scores.abs().max()


def test_learning_on_leaves_earlier_snapshots_as_they_were(
    lessons: tuple[Lesson, ...], dataset: Path, name: str
) -> None:
    plan = plan_for(name, dataset)
    for lesson in lessons:
        assert torch.equal(scores(lesson.snapshot, plan), lesson.scores)


def test_check_16_no_gradient_reaches_the_teacher(lessons: tuple[Lesson, ...]) -> None:
    """And its batch norms stand still."""
    for lesson in lessons[1:]:
        assert lesson.teacher is not None
        assert equal(copied(lesson.teacher), dict(lesson.teacher_before))
        assert not lesson.teacher.network.training
        assert all(weight.grad is None and not weight.requires_grad for weight in lesson.teacher.network.parameters())
        views = [view for seen in lesson.seen for view in seen.teachers.values()]
        assert not any(view.output.logits.requires_grad or view.scores.requires_grad for view in views)


def test_check_19_only_the_task_and_older_exemplars_are_trained_on(
    lessons: tuple[Lesson, ...], dataset: Path, name: str
) -> None:
    labels = plan_for(name, dataset).context.samples.labels
    for lesson in lessons:
        assert (labels[lesson.memory.indices] < lesson.task.classes.old).all()
        allowed = {*lesson.task.indices.tolist(), *lesson.memory.indices.tolist()}
        assert set(torch.cat(lesson.asked).tolist()) <= allowed


def test_check_21_replay_keeps_its_ratio(lessons: tuple[Lesson, ...]) -> None:
    for lesson in lessons[1:]:
        for seen in lesson.seen:
            if isinstance(rule := seen.phase.batches, Replay) and len(lesson.memory):
                old = int((seen.labels < lesson.task.classes.old).sum())
                assert old == rule.replay
                assert len(seen.labels) - old == min(rule.batch, len(lesson.task.indices))


def test_check_22_one_seed_gives_all_methods_the_same_start(
    lessons: tuple[Lesson, ...], dataset: Path, name: str
) -> None:
    for other in (follow(other, dataset) for other in recipes()):
        for mine, theirs in zip(lessons, other, strict=True):
            assert mine.task.classes == theirs.task.classes
            assert torch.equal(mine.task.indices, theirs.task.indices)
            same_memory = mine.memory.counts == theirs.memory.counts
            if same_memory:
                assert torch.equal(mine.memory.indices, theirs.memory.indices)
            one, two = mine.seen[0], theirs.seen[0]
            alike = [(phase.name, phase.batches, phase.images) for phase in (one.phase, two.phase)]
            if same_memory and alike[0] == alike[1]:
                assert torch.equal(one.indices, two.indices)


def test_check_38_the_first_task_is_the_joint_models(lessons: tuple[Lesson, ...], dataset: Path, name: str) -> None:
    method = configure(name).method
    if not isinstance(method.head(4), LinearHead) or any(make is not Scorer for make in method.scorers.values()):
        pytest.skip("the method has a head or a scorer of its own")
    if lessons[0].seen[0].phase.project:
        pytest.skip("the method bounds its weights")
    joint = follow("joint", dataset)[0]
    assert equal(copied(lessons[0].snapshot), copied(joint.snapshot))


def test_same_seed_same_record(whole: tuple[Path, Record], dataset: Path, name: str) -> None:
    """Whether or not it is kept on disk; another seed gives another."""
    _, record = whole
    assert tiny_runs.timeless(run(tiny_runs.config(dataset, **SETTINGS, method=name))) == tiny_runs.timeless(record)
    assert run(tiny_runs.config(dataset, **SETTINGS, method=name, seed=1)).tasks[0].loss != record.tasks[0].loss


def test_resumed_equals_uninterrupted(whole: tuple[Path, Record], dataset: Path, name: str, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, **SETTINGS, method=name, out=tmp_path)
    stops = 0
    while True:
        try:
            record = run(config, tiny_runs.Stopper(3))
            break
        except KeyboardInterrupt:
            stops += 1
    out, expected = whole
    assert stops >= 3
    assert tiny_runs.timeless(record) == tiny_runs.timeless(expected)
    assert equal(tiny_runs.tensors(tmp_path), tiny_runs.tensors(out))
    for file in sorted((out / "arrays").iterdir()):
        assert (tmp_path / "arrays" / file.name).read_bytes() == file.read_bytes()


def test_the_memory_stays_within_its_budget(whole: tuple[Path, Record], dataset: Path, name: str) -> None:
    _, record = whole
    kind = configure(name).method.memory
    budget = {"none": 0, "budget": SETTINGS["memory"], "all": sum(IMAGES)}[kind]
    held = [sum(task.memory_counts) for task in record.tasks]
    assert max(held) <= budget
    assert held[-1] == budget
    assert [task.exemplar_bytes for task in record.tasks] == [count * 8 * 8 for count in held]
    if kind == "budget":
        growing = run(tiny_runs.config(dataset, **SETTINGS | {"memory": None, "memory_per_class": 2}, method=name))
        assert growing.tasks[-1].memory_counts == [min(2, IMAGES[c]) for c in record.class_order]


def test_check_36_the_teachers_view_of_a_new_task(whole: tuple[Path, Record]) -> None:
    first, second, third = (task.teacher_ratio for task in whole[1].tasks)
    assert first is None
    assert second == [1.0]
    assert third is not None
    assert len(third) == 2
    assert sum(third) == pytest.approx(1)


def test_more_than_a_hundred_classes(name: str, tmp_path: Path) -> None:
    dataset = tiny_runs.patterns(tmp_path / "many.npz", [2] * 104, test=1)
    record = run(tiny_runs.config(dataset, method=name, tasks=2, batch=64, later_epochs=1))
    assert [task.classes_seen for task in record.tasks] == [52, 104]
    assert record.summary is not None


LONG: dict[str, Any] = {"task_sizes": (4, 1, 1), "epochs": 12, "later_epochs": 12, "batch": 8, "memory": 24}


def recalls(name: str, folder: Path, **settings: Any) -> list[float]:
    """How much of each new task is recalled right after it, on an easy stream with tasks of one class."""
    dataset = tiny_runs.patterns(folder / "easy.npz", [8] * 6)
    return [task.task_top1[-1] for task in run(tiny_runs.config(dataset, **LONG | settings, method=name)).tasks]


@pytest.mark.slow
def test_a_task_of_one_class_is_really_learnt(name: str, tmp_path: Path) -> None:
    assert min(recalls(name, tmp_path)) > 50


@pytest.mark.slow
def test_a_first_task_of_one_class_is_kept(tmp_path: Path) -> None:
    """One old class is as little of a group as one new class."""
    dataset = tiny_runs.patterns(tmp_path / "easy.npz", [8] * 5)
    record = run(tiny_runs.config(dataset, **LONG | {"task_sizes": (1, 4)}, method="ssil"))
    assert min(record.tasks[-1].task_top1) > 50


@pytest.mark.slow
def test_a_task_of_one_class_is_not_learnt_by_a_softmax_of_its_own(tmp_path: Path) -> None:
    """The reason for `min_group`, and a proof that the test above can fail."""
    assert max(recalls("ssil", tmp_path, options={"min_group": 1})[1:]) < 50


def test_options_are_typed_and_have_defaults(name: str) -> None:
    recipe = recipes()[name]
    for option, (annotation, default) in recipe.options.items():
        assert option.isidentifier()
        assert inspect.Parameter.empty not in (annotation, default)
        assert TypeAdapter(annotation).validate_python(default, strict=True) == default
    assert next(iter(inspect.signature(recipe.build).parameters)) == "training"
    assert recipe.summary.endswith(".")


def test_check_34_methods_that_differ_in_name_only_share_their_weights(dataset: Path) -> None:
    """FT is CE on mixed batches, ER is CE on replay batches, once their schedules agree."""
    for one, other, options in (("ft", "ce", {"batches": "mixed"}), ("er", "ce", {})):
        for mine, theirs in zip(follow(one, dataset), follow(other, dataset, **options), strict=True):
            assert equal(copied(mine.snapshot), copied(theirs.snapshot))


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


def test_a_task_may_bring_more_of_known_classes_alone(lessons: tuple[Lesson, ...], name: str, dataset: Path) -> None:
    """And the task after it new classes again."""
    plan, (first, before, last) = plan_for(name, dataset), lessons
    method = plan.configured.method
    more = Task(before.task.classes.extend([]), first.task.indices)
    again = Task(more.classes.extend(last.task.classes.names[more.classes.seen :]), last.task.indices)
    snapshot = before.snapshot
    for task in (more, again):
        snapshot = learn(method, snapshot, last.memory, task, plan.context)
        found = scores(snapshot, plan)
        assert found.shape[1] == task.classes.seen
        assert not found.isnan().any()
        assert (found.isfinite().sum(1) >= min(5, found.shape[1])).all()
