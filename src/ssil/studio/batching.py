"""Batches of concurrent requests: while one batch is computed, the images that arrive wait and form the next one."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ssil.classifier.exported_model import Prediction
from ssil.data.decode import Pixels
from ssil.studio.live_model import LoadedVersion

BATCH_IMAGES = 64
"""Of a batch, unless a single request has more."""
MOST_IMAGES = 1024
"""That may be decoded or waiting at a time; a request beyond them is told to come again."""


class BusyError(Exception):
    """More images are waiting than the server takes."""


@dataclass(frozen=True)
class _Job:
    version: LoadedVersion
    names: Sequence[str]
    views: Pixels
    top: int
    answer: "asyncio.Future[list[Prediction]]"


class Batcher:
    """One thread that predicts, and the requests that wait for it. No request waits for others to arrive."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[_Job] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, "predict")
        self._next: _Job | None = None
        self.images = 0
        """At work: being decoded, waiting or predicted."""
        self.batches = 0
        """Computed since the start."""

    @contextmanager
    def admitted(self, images: int) -> Iterator[None]:
        """Count images as being at work; raise BusyError if they are too many."""
        if self.images and self.images + images > MOST_IMAGES:
            raise BusyError
        self.images += images
        try:
            yield
        finally:
            self.images -= images

    async def predict(self, version: LoadedVersion, names: Sequence[str], views: Pixels, top: int) -> list[Prediction]:
        """Return the predictions of one request by the version with which its images were decoded."""
        answer: asyncio.Future[list[Prediction]] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait(_Job(version, names, views, top, answer))
        return await answer

    async def run(self) -> None:
        """Compute batches for ever."""
        while True:
            batch = await self._gather()
            self.batches += 1
            try:
                found = await asyncio.get_running_loop().run_in_executor(self._thread, _compute, batch)
            except Exception as error:  # of any type: each request tells of it, and the next batch is computed
                _give_up(batch, error)
            else:
                _hand_out(batch, found)

    async def _gather(self) -> list[_Job]:
        """Wait for a request; return it and those behind it that one batch can take."""
        batch, self._next = [self._next or await self._waiting.get()], None
        images = len(batch[0].names)
        while not self._waiting.empty():
            job = self._waiting.get_nowait()
            images += len(job.names)
            if job.version is not batch[0].version or images > BATCH_IMAGES:
                self._next = job
                break
            batch.append(job)
        return batch


def _compute(batch: Sequence[_Job]) -> list[Prediction]:
    names = [name for job in batch for name in job.names]
    top = max(job.top for job in batch)
    return [*batch[0].version.predictor.predict(names, np.concatenate([job.views for job in batch]), top)]


def _hand_out(batch: Sequence[_Job], found: Sequence[Prediction]) -> None:
    start = 0
    for job in batch:
        own, start = found[start : start + len(job.names)], start + len(job.names)
        if not job.answer.done():  # the client may have gone
            job.answer.set_result([one._replace(ranking=one.ranking[: job.top]) for one in own])


def _give_up(batch: Sequence[_Job], error: Exception) -> None:
    for job in batch:
        if not job.answer.done():
            job.answer.set_exception(error)
