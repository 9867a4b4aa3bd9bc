from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssil.benchmark.config import StreamSettings
from ssil.benchmark.scenario import Stream, build_stream, chosen_order, class_order, read_order, task_sizes
from ssil.core.errors import UserError
from ssil.core.randomness import Randomness
from ssil.core.samples import Samples
from ssil.data.resident_images import Resident
from ssil.learning.memory import FixedBudget, Memory, by_class, random_selection, update

some = settings(max_examples=40, deadline=None)
NAMES = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu"]


def samples(labels: Tensor) -> Samples:
    """Pictures of one pixel that shows the sample's number."""
    return Samples(Resident(torch.arange(len(labels)).to(torch.uint8).view(-1, 1, 1, 1)), labels)


def labelled(classes: int, seed: int, extra: int = 40) -> Samples:
    """At least one sample of each class, in no order."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.arange(classes), torch.randint(classes, (extra,), generator=generator)])
    return samples(labels[torch.randperm(len(labels), generator=generator)])


def stream_of(sizes: list[int], seed: int = 0, unused: int = 0) -> Stream:
    classes = sum(sizes) + unused
    order = class_order(classes, Randomness(seed))
    return build_stream(
        labelled(classes, seed), labelled(classes, seed + 1), [f"c{c}" for c in range(classes)], order, sizes
    )


@some
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 99), st.integers(0, 3))
def test_tasks_are_disjoint_and_hold_their_own_classes(sizes: list[int], seed: int, unused: int) -> None:
    stream = stream_of(sizes, seed, unused)
    for task in stream.tasks:
        labels = stream.train.labels[task.indices]
        assert sorted(set(labels.tolist())) == list(range(task.classes.old, task.classes.seen))
    together = torch.cat([task.indices for task in stream.tasks]).tolist()
    used = torch.nonzero(stream.train.labels < sum(sizes)).flatten().tolist()
    assert sorted(together) == used
    assert [task.number for task in stream.tasks] == list(range(1, len(sizes) + 1))
    assert stream.tasks[-1].classes.sizes == tuple(sizes)


@some
@given(st.integers(2, 300), st.integers(1, 12))
def test_sizes_sum_to_the_classes_and_a_large_base_has_one_task_more(classes: int, tasks: int) -> None:
    tasks = min(tasks, classes // 2)
    base, large = task_sizes(classes, tasks), task_sizes(classes, tasks, large_base=True)
    assert (sum(base), sum(large)) == (classes, classes)
    assert (len(base), len(large)) == (tasks, tasks + 1)
    assert large[0] == (classes + 1) // 2
    for equal in (base, large[1:]):
        assert max(equal) - min(equal) <= 1
        assert list(equal) == sorted(equal, reverse=True)


@some
@given(st.lists(st.integers(1, 4), min_size=2, max_size=6), st.integers(0, 99))
def test_while_a_task_is_learnt_the_memory_holds_only_training_images_of_old_classes(
    sizes: list[int], seed: int
) -> None:
    stream, memory = stream_of(sizes, seed), Memory()
    select, learnt = random_selection(Randomness(seed)), set[int]()
    for task in stream.tasks:
        assert (memory.labels < task.classes.old).all()
        assert torch.equal(stream.train.labels[memory.indices], memory.labels)
        assert set(memory.indices.tolist()) <= learnt
        memory = update(memory, by_class(task.indices, stream.train.labels), task.classes, FixedBudget(9), select)
        learnt |= set(task.indices.tolist())


# ---- streams


def test_labels_are_remapped_once_by_arrival() -> None:
    train, test = samples(torch.tensor([0, 1, 2, 2, 3])), samples(torch.tensor([3, 2, 1, 0]))
    stream = build_stream(train, test, NAMES[:4], order=[2, 0, 3, 1], sizes=[1, 3])
    assert stream.train.labels.tolist() == [1, 3, 0, 0, 2]
    assert stream.test.labels.tolist() == [2, 0, 3, 1]
    assert stream.tasks[-1].classes.names == ("cat", "ant", "dog", "bee")
    assert [task.indices.tolist() for task in stream.tasks] == [[2, 3], [0, 1, 4]]
    assert stream.class_order == (2, 0, 3, 1)
    assert stream.train.images is train.images


def test_seen_test_samples_are_those_of_all_classes_so_far() -> None:
    train, test = labelled(7, 0), labelled(7, 1)
    stream = build_stream(train, test, NAMES, order=[6, 5, 4, 3, 2, 1, 0], sizes=[2, 1, 2])
    for task, arrived in zip(stream.tasks, [{6, 5}, {6, 5, 4}, {6, 5, 4, 3, 2}], strict=True):
        expected = [i for i, label in enumerate(test.labels.tolist()) if label in arrived]
        assert stream.seen(task).tolist() == expected


def test_a_stream_may_leave_classes_out() -> None:
    train, test = samples(torch.tensor([0, 1, 1])), samples(torch.tensor([0, 1, 2]))
    stream = build_stream(train, test, NAMES[:3], order=[1, 0, 2], sizes=[1, 1])
    assert stream.tasks[-1].classes.names == ("bee", "ant")
    assert stream.seen(stream.tasks[-1]).tolist() == [0, 1]


def test_class_order_is_a_permutation_that_the_seed_decides() -> None:
    order = class_order(50, Randomness(3))
    assert sorted(order) == list(range(50))
    assert order == class_order(50, Randomness(3))
    assert order != class_order(50, Randomness(4))


# ---- a class order from a file


def test_an_order_is_read_by_name_or_by_index(tmp_path: Path) -> None:
    (tmp_path / "order").write_text("cat\n\n 0 \nbee\n")
    assert read_order(tmp_path / "order", NAMES[:3]) == [2, 0, 1]


def test_a_name_that_is_a_number_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "order").write_text("2\n0\n1\n")
    assert read_order(tmp_path / "order", ["1", "2", "0"]) == [1, 2, 0]


def test_a_misspelt_class_gets_close_matches(tmp_path: Path) -> None:
    (tmp_path / "order").write_text("ant\nbeee\n")
    with pytest.raises(UserError, match=r"class_order: .*'beee'.*did you mean 'bee'\?$"):
        read_order(tmp_path / "order", NAMES)
    with pytest.raises(UserError, match="class_order: no file"):
        read_order(tmp_path / "none", NAMES)


def test_a_class_order_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "order").write_bytes(b"\x93NUMPY\x90")
    with pytest.raises(UserError, match=r"class_order: .*order is no text; give a file with one class per line"):
        read_order(tmp_path / "order", NAMES)


# ---- bad input


@pytest.mark.parametrize(("tasks", "large_base", "most"), [(8, False, 7), (4, True, 3), (0, False, 7), (-1, True, 3)])
def test_more_tasks_than_classes(tasks: int, large_base: bool, most: int) -> None:
    with pytest.raises(UserError, match=f"tasks: {tasks} .* from 1 to {most}$"):
        task_sizes(7, tasks, large_base)


@pytest.mark.parametrize(
    ("order", "sizes", "message"),
    [
        ([0, 1, 2], [2, 2], "task_sizes: 2,2 sum to 4; there are only 3 classes"),
        ([0, 1, 2], [2, 0, 1], "task_sizes: 2,0,1 leaves a task empty"),
        ([0, 1, 2], [], "task_sizes: nothing leaves a task empty"),
        ([0, 1, 1], [3], "class_order: class 1 comes twice"),
        ([0, 1, 3], [3], "class_order: 3 is no class; give numbers from 0 to 2"),
        ([2, 0], [2], r"class_order: class 1 \(bee\) is missing"),
        ([0, 2, 1], [2], "data: class 'cat' has no training images"),
        ([1, 0, 2], [1, 1], "data: no class of task 2 has test images"),
    ],
)
def test_bad_input_is_named(order: list[int], sizes: list[int], message: str) -> None:
    train, test = samples(torch.tensor([0, 1, 1])), samples(torch.tensor([1, 2]))
    with pytest.raises(UserError, match=message):
        build_stream(train, test, NAMES[:3], order, sizes)


def test_the_order_of_published_tables_is_drawn_by_numpy() -> None:
    """The field's order of CIFAR-100: numpy.random.seed(1993); numpy.random.permutation(100)."""
    names = [f"c{label}" for label in range(100)]
    order = chosen_order(StreamSettings(class_order="numpy:1993"), names, seed=5)
    assert order[:10] == [68, 56, 78, 8, 23, 84, 90, 65, 74, 76]
    assert sorted(order) == list(range(100))
    assert order != chosen_order(StreamSettings(class_order=1993), names, seed=5)


@pytest.mark.parametrize("seed", ["", "x", "-1", "1.5", "4294967296", "²", "9" * 5000])
def test_a_seed_that_numpy_does_not_take_is_refused(seed: str) -> None:
    with pytest.raises(UserError, match=r"class_order: .* is no seed of NumPy; give numpy: and a number"):
        chosen_order(StreamSettings(class_order=f"numpy:{seed}"), NAMES, seed=0)
