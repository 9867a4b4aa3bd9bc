"""What the server counts, in the text format of Prometheus."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ssil.studio.batching import Batcher
from ssil.studio.live_model import LiveModel

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
"""The path of requests that no route answers: strangers' paths would be without number."""


class ServerMetrics:
    """The counters of one server."""

    def __init__(self, live: LiveModel, batcher: Batcher) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter("ssil_requests", "Answers, by path and status.", ["path", "status"], registry=registry)
        self.seconds = Histogram("ssil_request_seconds", "Time to the end of an answer.", ["path"], registry=registry)
        self.images = Counter("ssil_images", "Images, by what became of them.", ["result"], registry=registry)
        gauges = {
            "ssil_model_version": ("The version that predicts; 0 if there is none.", lambda: _number(live)),
            "ssil_model_problem": (
                "1 if the current version can't be loaded.",
                lambda: float(live.problem is not None),
            ),
            "ssil_images_at_work": ("Images being decoded, waiting or predicted.", lambda: float(batcher.images)),
            "ssil_batches": ("Batches computed since the start.", lambda: float(batcher.batches)),
        }
        for name, (text, value) in gauges.items():
            Gauge(name, text, registry=registry).set_function(value)

    def text(self) -> bytes:
        """Return all numbers."""
        return generate_latest(self._registry)


def _number(live: LiveModel) -> float:
    return float(live.loaded.number if live.loaded else 0)


class Measured:
    """Counts and times each answer of an application."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = 500, time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            path = getattr(scope.get("route"), "path", OTHER)
            self.metrics.requests.labels(path, str(status)).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - started)
