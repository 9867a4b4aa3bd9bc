import threading
import time

import pytest

from ssil.data.prefetch import prefetch

SECONDS = 60
"""At most, until a thread does what it has to do."""


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_all_are_made_in_order(depth: int) -> None:
    assert list(prefetch(lambda item: item * 2, range(7), depth)) == [0, 2, 4, 6, 8, 10, 12]


def test_they_are_begun_before_they_are_asked_for_and_no_further() -> None:
    begun: list[int] = []
    before = set(threading.enumerate())

    def make(item: int) -> int:
        begun.append(item)
        return item

    made = prefetch(make, range(10), 2)
    assert next(made) == 0
    end = time.monotonic() + SECONDS
    while len(begun) < 3:  # the thread that makes them may have to wait for a processor
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.1)
    assert begun == [0, 1, 2]
    made.close()  # type: ignore[attr-defined]
    assert set(threading.enumerate()) <= before


def test_many_work_and_their_order_is_kept() -> None:
    begun: list[int] = []

    def make(item: int) -> int:
        begun.append(item)
        time.sleep(0.01 * (item % 3))
        return -item

    for number, made in enumerate(prefetch(make, range(30), 4, threads=3)):
        assert made == -number
        assert len(begun) <= number + 1 + 4
    assert sorted(begun) == list(range(30))


def test_an_error_comes_where_its_result_would() -> None:
    made = prefetch(lambda item: 1 // item, [1, 0, 1], 2)
    assert next(made) == 1
    with pytest.raises(ZeroDivisionError):
        next(made)
