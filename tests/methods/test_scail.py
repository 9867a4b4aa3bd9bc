import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

import oracles
import task_ends
import tiny_runs
from followed_methods import IMAGES, follow
from ssil.benchmark.record import read_predictions, read_record
from ssil.benchmark.runner import run
from ssil.core.errors import UserError
from ssil.learning.metrics import top5
from ssil.learning.registry import configure
from ssil.learning.snapshot import MAIN
from ssil.methods.scail import Rescaled
from ssil.nn.heads import LinearHead
from ssil.nn.network import Output

SIZES = (3, 1, 2)
some = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 10**6)


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def learnt(heads: list[LinearHead], sizes: tuple[int, ...] = SIZES, top: int | None = None) -> Rescaled:
    """A scorer that has followed these heads, one a task."""
    scorer, nothing = Rescaled(top).double(), Output(torch.empty(0), torch.empty(0))
    for task, head in enumerate(heads, 1):
        scorer.fit(task_ends.end(task_ends.table(*sizes[:task]), [], [], [], nothing, head))
    return scorer


def heads(seed: int, width: int = 5, sizes: tuple[int, ...] = SIZES) -> list[LinearHead]:
    """A head for each task: all rows of old classes move on."""
    seen = [sum(sizes[:task]) for task in range(1, len(sizes) + 1)]
    return [task_ends.head(draw(n, width, seed=seed + n), draw(n, seed=seed - n)) for n in seen]


def first_rows(followed: list[LinearHead], sizes: tuple[int, ...] = SIZES) -> tuple[Tensor, Tensor]:
    """The rows with which each class was first learnt."""
    blocks = list(zip(followed, sizes, strict=True))
    weight = torch.cat([head.weight[-size:].detach() for head, size in blocks])
    return weight, torch.cat([head.get_parameter("bias")[-size:].detach() for head, size in blocks])


# ---- the rescaling


@some
@given(seeds)
def test_rescaling_is_its_definition(seed: int) -> None:
    followed = heads(seed)
    scorer, bounds = learnt(followed), task_ends.table(*SIZES).bounds
    weight, bias = first_rows(followed)
    for found, expected in zip(scorer.weight.tolist(), oracles.rescaled(oracles.rows(weight), bounds), strict=True):
        assert found == pytest.approx(expected)
    expected_bias = [row[0] for row in oracles.rescaled([[b] for b in bias.tolist()], bounds)]
    assert scorer.bias.tolist() == pytest.approx(expected_bias)


def test_rescaling_by_hand() -> None:
    """Task 1: w_0 = (3, -1, 2), w_1 = (-1, 5, 2), magnitudes by rank (3, 2, 1), (5, 2, 1): mu^1 = (4, 2, 1).

    Task 2: w_2 = (2, -8, 3): mu^2 = (8, 3, 2), so ranks are multiplied by (2, 1.5, 2):
    w_0' = (3 * 2, -1 * 2, 2 * 1.5) = (6, -2, 3), w_1' = (-1 * 2, 5 * 2, 2 * 1.5) = (-2, 10, 3).
    Biases 0.5, -1.5 (mean magnitude 1) against 3: 1.5, -4.5. What the head made of old rows in task 2 is not used.
    Features (1, 1, 2): 6 - 2 + 6 + 1.5 = 11.5, -2 + 10 + 6 - 4.5 = 9.5, 2 - 8 + 6 + 3 = 3.
    """
    first = task_ends.head([[3, -1, 2], [-1, 5, 2]], [0.5, -1.5])
    second = task_ends.head([[9, 9, 9], [7, 7, 7], [2, -8, 3]], [9, 9, 3])
    scorer = learnt([first, second], (2, 1))
    assert scorer.weight.tolist() == [[6, -2, 3], [-2, 10, 3], [2, -8, 3]]
    assert scorer.bias.tolist() == [1.5, -4.5, 3]
    features = torch.tensor([[1.0, 1.0, 2.0]], dtype=torch.float64)
    assert scorer(Output(features, features), task_ends.table(2, 1)).tolist() == [[11.5, 9.5, 3.0]]


@some
@given(seeds)
def test_equal_magnitudes_give_the_first_classifier(seed: int) -> None:
    """Rows that are shuffles of one another have the same magnitudes by rank."""
    row, generator = draw(5, seed=seed), torch.Generator().manual_seed(seed)
    shuffled = [torch.stack([row[torch.randperm(5, generator=generator)] for _ in range(n)]) for n in (3, 4, 6)]
    followed = [task_ends.head(rows, torch.full((len(rows),), -0.5)) for rows in shuffled]
    features = draw(7, 5, seed=seed + 1)
    scores = learnt(followed)(Output(features, features), task_ends.table(*SIZES))
    torch.testing.assert_close(scores, F.linear(features, *first_rows(followed)))


@some
@given(seeds)
def test_signs_are_kept(seed: int) -> None:
    followed = heads(seed)
    scorer, (weight, bias) = learnt(followed), first_rows(followed)
    assert torch.equal(scorer.weight.sign(), weight.sign())
    assert torch.equal(scorer.bias.sign(), bias.sign())


@some
@given(seeds)
def test_rescaled_tasks_have_the_magnitudes_of_the_last(seed: int) -> None:
    """Rank by rank (of the first weights), the mean over a task's classes is the last task's."""
    scorer = learnt(heads(seed))
    order = scorer.initial_weight.abs().argsort(1, descending=True)
    sizes = [block.mean(0) for block in scorer.weight.abs().gather(1, order).split(SIZES)]
    for size in sizes:
        torch.testing.assert_close(size, sizes[-1])


@some
@given(seeds)
def test_new_classes_and_the_first_task_keep_the_heads_rows(seed: int) -> None:
    followed = heads(seed)
    for tasks in (1, 2, 3):
        scorer, head, size = learnt(followed[:tasks]), followed[tasks - 1], SIZES[tasks - 1]
        assert torch.equal(scorer.weight[-size:], head.weight[-size:])
        assert torch.equal(scorer.bias[-size:], head.get_parameter("bias")[-size:])


def test_rows_of_zeros_stay_finite() -> None:
    """What a head looks like whose features are dead."""
    scorer = learnt([task_ends.head([[0, 0]], [0]), task_ends.head([[0, 0], [1, 2]], [0, 1])], (1, 1))
    assert scorer.weight.tolist() == [[0, 0], [1, 2]]
    assert scorer.bias.tolist() == [0, 1]


def test_the_scorer_has_rows_of_its_own() -> None:
    for tasks in (1, 3):
        followed = heads(0)[:tasks]
        scorer = learnt(followed)
        before = {name: buffer.clone() for name, buffer in scorer.named_buffers()}
        for head in followed:
            for rows in head.parameters():
                rows.data.zero_()
        assert all(torch.equal(buffer, before[name]) for name, buffer in scorer.named_buffers())


# ---- the candidates


@pytest.mark.parametrize("top", [5, 10, 11])
def test_only_the_old_classes_that_the_network_scores_best(top: int) -> None:
    sizes = (8, 6, 2)
    scorer, classes = learnt(heads(1, sizes=sizes), sizes, top), task_ends.table(*sizes)
    features, raw = draw(20, 5, seed=2), draw(20, 16, seed=3)
    scores = scorer(Output(raw, features), classes)
    plain = learnt(heads(1, sizes=sizes), sizes)(Output(raw, features), classes)
    for row in range(20):
        ranked = sorted(range(14), key=lambda c: -raw[row, c])
        for c in range(16):
            may = c in ranked[:top] or c >= 14
            assert scores[row, c] == (plain[row, c] if may else -torch.inf)


@pytest.mark.parametrize("sizes", [(8, 2, 1), (8, 1, 1), (1, 1, 2)])
def test_no_more_old_classes_than_candidates(sizes: tuple[int, ...]) -> None:
    features, raw = draw(20, 5, seed=2), draw(20, sum(sizes), seed=3)
    limited, plain = (learnt(heads(1, sizes=sizes), sizes, top) for top in (10, None))
    classes = task_ends.table(*sizes)
    assert torch.equal(limited(Output(raw, features), classes), plain(Output(raw, features), classes))


def test_a_record_with_classes_ruled_out(tmp_path: Path) -> None:
    """The numbers are finite, and all five answers of an image are candidates."""
    dataset = tiny_runs.patterns(tmp_path / "many.npz", [3] * 24, test=2)
    options = {"top_rewound": 5}
    run(tiny_runs.config(dataset, method="scail", task_sizes=(16, 7, 1), options=options, out=tmp_path / "run"))
    for task in read_record(tmp_path / "run").tasks:
        json.dumps(task.model_dump(), allow_nan=False)
        predictions = read_predictions(tmp_path / "run", task.task)
        assert task.top5 == top5(predictions)
        assert predictions.confidence.isfinite().all()
        assert predictions.score_new.isfinite().all()
        if task.task > 1:
            assert predictions.score_old.isfinite().all()
            old = sum((16, 7, 1)[: task.task - 1])
            mass = old * predictions.softmax_old + (task.classes_seen - old) * predictions.softmax_new
            torch.testing.assert_close(mass, torch.ones_like(mass))


def test_fewer_than_five_candidates_are_refused() -> None:
    """The top-5 accuracy would be a matter of chance."""
    with pytest.raises(UserError, match=r"^options.top_rewound: 4 does not fit: Input should be greater than"):
        configure("scail", options={"top_rewound": 4})
    assert configure("scail", options={"top_rewound": None}).options["top_rewound"] is None


# ---- the recipe


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("scail") / "patterns.npz", IMAGES)


def test_the_weights_of_a_stream(dataset: Path) -> None:
    traces = follow("scail", dataset)
    followed = [trace.snapshot.network.head for trace in traces]
    weight = torch.cat([head.weight[-size:] for head, size in zip(followed, SIZES, strict=True)])
    for trace in traces:
        bounds = trace.task.classes.bounds
        expected = oracles.rescaled(oracles.rows(weight[: bounds[-1]]), bounds)
        found = trace.snapshot.scorers[MAIN].get_buffer("weight")
        torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("profile", ["paper", "official", "quick"])
def test_it_trains_as_fine_tuning_does(profile: str) -> None:
    scail, ft = (configure(name, profile) for name in ("scail", "ft"))
    assert scail.training == ft.training
    assert scail.method.training_key == ft.method.training_key
    assert scail.method.plan(task_ends.table(3, 2)) == ft.method.plan(task_ends.table(3, 2))


def test_the_option_reaches_the_scorer() -> None:
    for options, top in (({}, 10), ({"top_rewound": 7}, 7), ({"top_rewound": None}, None)):
        scorer = configure("scail", options=options).method.scorers[MAIN]()
        assert isinstance(scorer, Rescaled)
        assert scorer.top == top
