import pytest

from ssil.core.classes import ClassTable
from ssil.learning.batches import Mixed, Replay
from ssil.learning.method import Phase, cross_entropy
from ssil.learning.registry import configure

TWO = ClassTable(("?",) * 5, (0, 3, 5))


@pytest.mark.parametrize(
    ("name", "options", "batches", "start", "memory"),
    [
        ("er", {}, Replay(128, 32), "current", "budget"),
        ("er", {"replay_batch": 9}, Replay(128, 9), "current", "budget"),
        ("joint", {}, Mixed(128), "fresh", "all"),
        ("joint", {"start": "current"}, Mixed(128), "current", "all"),
    ],
)
def test_the_plan(name: str, options: dict[str, object], batches: object, start: str, memory: str) -> None:
    method = configure(name, options=options).method
    (main,) = method.plan(TWO)
    assert isinstance(main, Phase)
    assert (main.loss, main.teachers) == (cross_entropy, ())
    assert (main.batches, main.start, method.memory) == (batches, start, memory)
