"""Computation of results before they are asked for, and the threads that decode images."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from threadpoolctl import threadpool_limits

from ssil.core.cpu import usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")


def default_threads() -> int:
    """Return the number of threads that keeps all cores busy while one thread waits for a file."""
    return usable_cores() + 1


@cache
def decoding_pool(threads: int) -> ThreadPoolExecutor:
    """Return the pool of threads that decode images: the libraries release the interpreter lock meanwhile.

    Inside these threads torch and numpy use one thread only.
    """
    return ThreadPoolExecutor(threads, "decode", initializer=_start_no_other_threads)


def _start_no_other_threads() -> None:
    """Let torch, or numpy in a process without torch, use one thread inside the calling thread.

    `torch.set_num_threads` would also change the number for every thread in which torch was not used yet.
    """
    if torch := sys.modules.get("torch"):
        torch.get_num_threads()  # initialises torch for this thread, which later would lift the limit
        threadpool_limits(1, user_api="openmp")
    else:
        threadpool_limits(1, user_api="blas")  # of all threads: only the decoding ones multiply matrices


def prefetch(
    compute: Callable[[Item], Result], items: Iterable[Item], depth: int, threads: int = 1
) -> Iterator[Result]:
    """Yield `compute(item)` for each item in order, while `threads` threads compute up to `depth` results in advance.

    With depth 0 each result is computed when it is asked for.

    >>> list(prefetch(str, range(3), depth=2))
    ['0', '1', '2']
    """
    if not depth:
        yield from map(compute, items)
        return
    pending: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="prefetch")
    try:
        for item in items:
            pending.append(pool.submit(compute, item))
            if len(pending) > depth:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:  # also when the caller stops early
        pool.shutdown(wait=True, cancel_futures=True)
