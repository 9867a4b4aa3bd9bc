"""Work that is begun before its result is asked for."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def ahead(make: Callable[[Item], Made], items: Iterable[Item], depth: int, workers: int = 1) -> Iterator[Made]:
    """What is made of each item, in order; up to `depth` of them are being made in the background, by so many threads.

    With depth 0 each is made when it is asked for.

    >>> list(ahead(str, range(3), depth=2))
    ['0', '1', '2']
    """
    if not depth:
        yield from map(make, items)
        return
    waiting: deque[Future[Made]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ahead")
    try:
        for item in items:
            waiting.append(pool.submit(make, item))
            if len(waiting) > depth:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # also when nobody wants the rest
        pool.shutdown(wait=True, cancel_futures=True)
