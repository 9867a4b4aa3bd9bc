"""The number of torch's threads: asked for, chosen by the environment, or limited by the usable cores."""

from collections.abc import Iterator

import pytest
import torch

from ssil.learning import distributed
from ssil.learning.distributed import use_threads


@pytest.fixture(autouse=True)
def _three_threads_on_two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = torch.get_num_threads()
    monkeypatch.setattr(distributed, "usable_cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_no_more_threads_than_usable_cores_by_default() -> None:
    use_threads()
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    use_threads()
    assert torch.get_num_threads() == 1


def test_a_number_of_threads_that_was_asked_for_is_used() -> None:
    use_threads(4)
    assert torch.get_num_threads() == 4


def test_the_environment_may_choose_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    use_threads()
    assert torch.get_num_threads() == 3
