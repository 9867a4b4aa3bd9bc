"""The routes of photos that wait to be learnt: add, move, remove, look at."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Form, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse
from PIL import Image
from starlette.datastructures import UploadFile

from ssil.core.errors import UserError
from ssil.data.decode import UnreadableError, decode_image
from ssil.studio.learning_jobs import LearningJobs
from ssil.studio.model_summary import class_summaries, estimate, find_image
from ssil.studio.page_templates import rendered
from ssil.studio.photo_marks import PhotoMarks
from ssil.studio.staging import StagedImage, Staging, checked_name
from ssil.studio.uploaded_images import shown_name, upload_pool, uploaded_files

THUMBNAIL = 192
"""Pixels of a thumbnail's longer side."""
FOREVER = "private, max-age=31536000, immutable"
"""How long a browser may keep what has its checksum in its address."""


@dataclass(frozen=True)
class PhotoService:
    """What the routes of photos share."""

    model: Path
    jobs: LearningJobs
    marks: PhotoMarks
    most_images: int

    def page_values(self) -> dict[str, Any]:
        """Return what the page of photos shows."""
        classes = class_summaries(self.model)
        waiting = sum(len(one.waiting) for one in classes)
        return {
            "classes": classes,
            "new_first": sorted(enumerate(classes, 1), key=lambda pair: not pair[1].waiting),
            "waiting": waiting,
            "largest": max((one.total for one in classes), default=1) or 1,
            "problem": _why_not_learn(classes_known=any(one.known for one in classes), names=len(classes), new=waiting),
            "estimate": estimate(self.model, waiting),
            "running": self.jobs.running(),
            "marks": self.marks.by_digest(),
        }

    def fragment(self) -> HTMLResponse:
        """Return the part of the page that changes with the photos."""
        return HTMLResponse(rendered("classes.html", **self.page_values()))

    def staged(self, digest: str) -> StagedImage:
        """Return an image that waits; raise the answer 404 if there is none."""
        try:
            found = Staging(self.model).find(digest)
        except ValueError:
            found = None
        if not found:
            raise HTTPException(404, "photo: it does not wait to be learnt (any more)")
        if self.jobs.running():
            raise HTTPException(409, "photo: an update is running; wait for its end, or cancel it")
        return found


def _why_not_learn(classes_known: bool, names: int, new: int) -> str:
    """Return why an update can't begin; nothing if it can."""
    if not new:
        return (
            "Add photos of new classes, or more of those it knows."
            if classes_known
            else "Add photos of two classes or more."
        )
    if not classes_known and names < 2:
        return "Add photos of a second class: to tell things apart, there must be at least two."
    return ""


def thumbnail(data: bytes) -> bytes:
    """Return a small JPEG of an image; raise UnreadableError if it can't be decoded."""
    image = Image.fromarray(decode_image(data))
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    file = BytesIO()
    image.save(file, "JPEG", quality=80)
    return file.getvalue()


def photo_routes(service: PhotoService) -> APIRouter:
    """Return the routes."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.marks.stop()

    router = APIRouter(include_in_schema=False, lifespan=lifespan)
    for add in (_add_upload_routes, _add_check_routes, _add_sorting_routes, _add_image_route):
        add(router, service)
    return router


def _add_upload_routes(router: APIRouter, service: PhotoService) -> None:
    @router.get("/photos")
    async def photos() -> HTMLResponse:
        return service.fragment()

    @router.post("/photos")
    async def add(request: Request, name: Annotated[str, Query(alias="class")] = "") -> dict[str, Any]:
        """Add photos to a class; return how many were added, and the others with the reasons."""
        files = await uploaded_files(request, service.most_images)
        with _refusals():
            checked_name(name)
        staging, loop = Staging(service.model), asyncio.get_running_loop()
        added = (loop.run_in_executor(upload_pool(), _add, staging, name, file) for file in files)
        reasons = await asyncio.gather(*added)
        refused = [{"name": shown_name(file), "reason": why} for file, why in zip(files, reasons, strict=True) if why]
        return {"added": len(files) - len(refused), "refused": refused}


def _add_check_routes(router: APIRouter, service: PhotoService) -> None:
    @router.post("/photos/check")
    async def start_check() -> dict[str, Any]:
        """Look at the photos, if there are new ones; return how far the look is."""
        await asyncio.to_thread(service.marks.start)
        return service.marks.state()._asdict()

    @router.get("/photos/check")
    async def check() -> dict[str, Any]:
        return service.marks.state()._asdict()


def _add_sorting_routes(router: APIRouter, service: PhotoService) -> None:
    staging = Staging(service.model)

    @router.post("/photos/{digest}/move")
    async def move(digest: str, name: Annotated[str, Form(alias="class")]) -> HTMLResponse:
        with _refusals():
            staging.move(service.staged(digest), name)
        return service.fragment()

    @router.post("/photos/{digest}/remove")
    async def remove(digest: str) -> HTMLResponse:
        staging.remove(service.staged(digest))
        return service.fragment()

    @router.post("/photos/{digest}/restore")
    async def restore(digest: str) -> HTMLResponse:
        try:
            found = staging.restore(digest)
        except ValueError:
            found = None
        if not found:
            raise HTTPException(404, "photo: it was not removed, or for good")
        return service.fragment()


def _add_image_route(router: APIRouter, service: PhotoService) -> None:
    @router.get("/image/{digest}")
    async def image(digest: str) -> Response:
        try:
            data = await asyncio.to_thread(find_image, service.model, service.jobs, digest)
            small = await asyncio.to_thread(thumbnail, data) if data else None
        except (UserError, UnreadableError, ValueError):
            small = None
        if small is None:
            raise HTTPException(404, "photo: there is none with this checksum")
        return Response(small, media_type="image/jpeg", headers={"cache-control": FOREVER})


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn what the user has to mend into the answer 422."""
    try:
        yield
    except UserError as error:
        raise HTTPException(422, str(error)) from None


def _add(staging: Staging, class_name: str, file: UploadFile) -> str | None:
    """Add a photo; return why it was refused, if it was."""
    try:
        staging.add(class_name, file.file.read())
    except (UnreadableError, UserError) as error:
        return str(error)
    return None
