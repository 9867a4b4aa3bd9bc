from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssil.benchmark.config import make_config
from ssil.benchmark.stream_functions import NAMED, called_pairs, named_pairs
from ssil.core.errors import UserError

SIZES = (20, 7, 1, 13)
OWN = torch.tensor([0, 0, 1, 2])
LABELS = torch.arange(4).repeat_interleave(torch.tensor(SIZES))


def pairs_of(stream: str, seed: int = 0, tasks: int = 3) -> Tensor:
    return named_pairs(stream, LABELS, OWN, tasks, np.random.default_rng(seed))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(NAMED)), st.integers(0, 100), st.integers(0, 9))
def test_every_image_comes_once(name: str, percent: int, seed: int) -> None:
    pairs = pairs_of(f"{name}:{percent}", seed)
    assert sorted(pairs[:, 0].tolist()) == list(range(len(LABELS)))
    assert set(pairs[:, 1].tolist()) <= {1, 2, 3}


@pytest.mark.parametrize("name", NAMED)
def test_with_0_percent_all_images_come_in_the_task_of_their_class(name: str) -> None:
    pairs = pairs_of(f"{name}:0")
    assert torch.equal(pairs[:, 1], 1 + OWN[LABELS[pairs[:, 0]]])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 100), st.integers(0, 9))
def test_blurry_moves_the_percentage_of_each_class(percent: int, seed: int) -> None:
    pairs = pairs_of(f"blurry:{percent}", seed)
    away = pairs[:, 1] != 1 + OWN[LABELS[pairs[:, 0]]]
    moved = torch.bincount(LABELS[pairs[away, 0]], minlength=4).tolist()
    assert moved == [round(percent / 100 * size) for size in SIZES]


def test_returning_images_come_later_and_those_of_the_last_task_stay() -> None:
    pairs = pairs_of("returning:50")
    later = pairs[:, 1] - 1 - OWN[LABELS[pairs[:, 0]]]
    assert later.min() == 0
    assert torch.bincount(LABELS[pairs[later > 0, 0]], minlength=4).tolist() == [10, 4, 0, 0]


def test_repeating_classes_share_their_images_evenly_among_their_tasks() -> None:
    pairs = pairs_of("repeating:100")
    counts = [torch.bincount(pairs[LABELS[pairs[:, 0]] == label, 1], minlength=4)[1:].tolist() for label in range(4)]
    assert counts == [[7, 7, 6], [3, 2, 2], [0, 1, 0], [0, 0, 13]]


def test_repeating_has_the_given_probability() -> None:
    """Of 200 classes with 30 later tasks each, a fifth of the (class, later task) pairs occurs."""
    labels, own = torch.arange(200).repeat_interleave(31), torch.zeros(200, dtype=torch.long)
    pairs = named_pairs("repeating:20", labels, own, 31, np.random.default_rng(0))
    came = torch.stack([labels[pairs[:, 0]], pairs[:, 1]], 1).unique(dim=0)
    share = (len(came) - 200) / (200 * 30)
    assert abs(share - 0.2) < 4 * (0.2 * 0.8 / 6000) ** 0.5


def test_the_default_percentages_and_the_seed() -> None:
    for name, entry in NAMED.items():
        assert torch.equal(pairs_of(name), pairs_of(f"{name}:{entry.default}"))
        assert not torch.equal(pairs_of(f"{name}:50"), pairs_of(f"{name}:50", seed=1))


def write(folder: Path, body: str) -> str:
    """Write a file with a function; return its name."""
    path = folder / f"own{abs(hash(body))}.py"
    path.write_text(f"import numpy as np\n\ndef stream(labels, random, tasks):\n    {body}\n")
    return str(path)


@pytest.mark.parametrize(
    "body",
    [
        "return [(0, 1), (3, 2), (0, 2)]",
        "return np.array([[0, 1], [3, 2], [0, 2]], dtype=np.uint8)",
        "yield from [[0, 1], [3, 2], [0, 2]]",
        "return zip([0, 3, 0], [1, 2, 2])",
    ],
)
def test_a_function_may_return_pairs_in_many_forms(tmp_path: Path, body: str) -> None:
    name = write(tmp_path, body)
    for stream in (name, f"{name}:stream"):
        found = called_pairs(stream, LABELS, 2, np.random.default_rng(0))
        assert found.tolist() == [[0, 1], [3, 2], [0, 2]]


def test_a_function_gets_copies_of_the_labels_the_generator_and_the_number_of_tasks(tmp_path: Path) -> None:
    body = "assert isinstance(random, np.random.Generator); labels[:] = 0; return [(len(labels), tasks)]"
    before = LABELS.clone()
    assert called_pairs(write(tmp_path, body), LABELS, 7, np.random.default_rng(0)).tolist() == [[41, 7]]
    assert torch.equal(before, LABELS)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no\\nway')", "raised ValueError: no way; mend the function"),
        ("return 3", "raised TypeError"),
        ("return None", "raised TypeError"),
        ("return [(0, 1, 2)]", "gave int64 of shape (1, 3); return pairs of whole numbers"),
        ("return [(0.5, 1.0)]", "gave float64 of shape (1, 2)"),
        ("return [(0, 1), (2,)]", "raised ValueError"),
        ("return []", "gave float64 of shape (0,)"),
    ],
)
def test_functions_that_fail_or_give_something_else(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(UserError, match=r"^stream: ") as raised:
        called_pairs(write(tmp_path, body), LABELS, 2, np.random.default_rng(0))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("blury:10", "'blury:10' is no stream; did you mean 'blurry'?"),
        ("blurry:x", "'x' is no percentage; give 0 to 100, such as blurry:10"),
        ("blurry:101", "'101' is no percentage"),
        ("blurry:nan", "'nan' is no percentage"),
        ("blury:ten-", "'blury:ten-' is no stream; did you mean 'blurry'?"),
        ("mine", "'mine' is no stream; give blurry, returning, repeating, a table FILE.csv, or FILE.py:function"),
        ("", "'' is no stream"),
    ],
)
def test_names_that_are_no_stream(stream: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        make_config({"stream": stream})
    assert str(raised.value).startswith(f"stream: {message}")


def test_a_module_that_is_not_installed() -> None:
    with pytest.raises(UserError, match=r"^stream: 'no_such.streams:mine' is not of the form file.py:name"):
        make_config({"stream": "no_such.streams:mine"})


def test_sizes_are_for_ready_made_streams_only() -> None:
    assert make_config({"stream": "blurry:5", "task_sizes": (2, 3)}).increments == 2
    for sizes in ({"task_sizes": (2, 3)}, {"large_base": True}):
        with pytest.raises(UserError, match=r"stream: mine.py decides the tasks; leave out --task-sizes"):
            make_config({"stream": "mine.py", **sizes})
