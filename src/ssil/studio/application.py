"""The application: the routes, behind the guard and the counters; and the server that runs it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ssil.classifier.versions import VersionedDirectory
from ssil.core import __version__
from ssil.core.errors import UserError
from ssil.studio.access import Access, Guard
from ssil.studio.api_page import api_page
from ssil.studio.batching import Batcher
from ssil.studio.disk_errors import tell_disk_errors
from ssil.studio.learning_jobs import MAX_DROP, LearningJobs
from ssil.studio.live_model import LiveModel
from ssil.studio.page_routes import Studio, page_routes
from ssil.studio.photo_marks import PhotoMarks
from ssil.studio.photo_routes import PhotoService, photo_routes
from ssil.studio.prediction_api import PredictionService, prediction_routes
from ssil.studio.server_metrics import Measured, ServerMetrics
from ssil.studio.staging import Staging

CONNECTIONS = 512
"""At a time; more are told to come again."""
GRACE = 5
"""Seconds that running requests are given when the server ends."""
MAX_PORT = 65535
BACKLOG = 1024


@dataclass(frozen=True)
class ServerSettings:
    """What a server is made of."""

    model: Path
    access: Access
    most_images: int = 64
    """Of one request."""
    threads: int | None = None
    trusted: Sequence[str] = ()
    max_drop: float = MAX_DROP
    """Points that an update of the studio may cost the old classes before the user is asked."""


def prediction_server(settings: ServerSettings) -> ASGIApp:
    """Return the application of `ssil serve`; raise UserError if there is no model."""
    VersionedDirectory(settings.model).current()
    service, app = _prediction_application(settings, "ssil serve")

    @app.get("/", include_in_schema=False)
    async def root() -> RedirectResponse:
        return RedirectResponse("/docs")

    return Measured(Guard(app, settings.access), service.metrics)


def studio_server(settings: ServerSettings) -> ASGIApp:
    """Return the application of `ssil studio`, whose model may have to be made yet: the same, and pages."""
    _refuse_other_directory(settings.model)
    Staging(settings.model).create()
    service, app = _prediction_application(settings, "ssil studio")
    jobs = LearningJobs(settings.model, settings.trusted, settings.max_drop)
    marks = PhotoMarks(jobs, settings.trusted)
    photos = PhotoService(settings.model, jobs, marks, settings.most_images)
    app.include_router(photo_routes(photos))
    app.include_router(page_routes(Studio(settings.model, photos, jobs, service, settings.trusted)))
    return Measured(Guard(app, settings.access), service.metrics)


def _refuse_other_directory(folder: Path) -> None:
    """Raise UserError if a folder holds something else than a model."""
    if folder.exists() and not (folder.is_dir() and VersionedDirectory(folder).is_model_directory()):
        raise UserError(f"model: {folder} is not empty and holds no model; give a new directory")


def _prediction_application(settings: ServerSettings, title: str) -> tuple[PredictionService, FastAPI]:
    """Return an application with the routes for programs, which follows the model while it runs."""
    live = LiveModel(settings.model, settings.trusted, settings.threads)
    batcher = Batcher()
    service = PredictionService(live, batcher, ServerMetrics(live, batcher), settings.most_images)
    app = _application(live, batcher, title)
    tell_disk_errors(app)
    app.include_router(prediction_routes(service))
    app.mount("/static", StaticFiles(packages=[("ssil.studio", "static")]))

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi(), str(request.base_url).rstrip("/")))

    return service, app


def _application(live: LiveModel, batcher: Batcher, title: str) -> FastAPI:
    """Return an application without routes, which follows the model and computes batches while it runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(work) for work in (batcher.run(), live.follow())]
        yield
        for task in tasks:
            task.cancel()

    return FastAPI(
        title=title,
        version=__version__,
        summary="An image classifier that keeps learning.",
        docs_url=None,  # FastAPI's own page would fetch its scripts from the internet
        redoc_url=None,
        lifespan=lifespan,
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise UserError if the address can't be had."""
    if not 0 <= port <= MAX_PORT:  # getaddrinfo would take the remainder
        raise UserError(f"port: {port} is no port; give 0 to {MAX_PORT}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _listening(socket.socket(family, kind, protocol), address)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"port: {host}:{port} can't be had ({reason}); give another --port or --host") from None


def _listening(opened: socket.socket, address: Any) -> socket.socket:
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(BACKLOG)
    except BaseException:
        opened.close()
        raise
    return opened


def run_server(app: ASGIApp, listening: socket.socket) -> None:
    """Answer requests until the process is told to end; running requests are finished first."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
    )
    uvicorn.Server(config).run(sockets=[listening])
