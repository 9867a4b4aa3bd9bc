"""The routes of pages: photos, updates with their progress, trying the model, its history and its export."""

import asyncio
import json
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse

from ssil.classifier.exported_model import read_exported
from ssil.classifier.model_files import walk
from ssil.classifier.versions import STAGING
from ssil.core.errors import UserError
from ssil.core.files import LOCK
from ssil.studio.batching import BusyError
from ssil.studio.learning_jobs import Job, LearningJobs, class_rows
from ssil.studio.model_summary import version_summaries
from ssil.studio.page_templates import rendered
from ssil.studio.photo_routes import PhotoService
from ssil.studio.prediction_api import PredictionService

BEST = 5
"""Classes that are named for a photo that is tried."""
SECONDS = 0.25
"""Between two looks at the log of an update."""


@dataclass(frozen=True)
class Studio:
    """What the pages share."""

    model: Path
    photos: PhotoService
    jobs: LearningJobs
    predictions: PredictionService
    trusted: Sequence[str] = ()

    def page(self, template: str, tab: str, **values: Any) -> HTMLResponse:
        """Return a whole page."""
        live = self.predictions.live
        shared = {
            "title": self.model.resolve().name,
            "tab": tab,
            "version": live.loaded,
            "problem_loading": live.problem,
        }
        return HTMLResponse(rendered(template, **{"running": self.jobs.running(), **shared, **values}))

    def job(self, number: int) -> Job:
        """Return an update; raise the answer 404 if there is none."""
        if found := self.jobs.find(number):
            return found
        raise HTTPException(404, "update: there is none with this number")

    async def command(self, *words: str) -> str:
        """Carry out a module of this package in a process of its own; return its output, or raise UserError."""
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-m", *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UserError(["it failed", *done.stderr.strip().splitlines()][-1].removeprefix("error: "))
        return done.stdout

    @property
    def trust(self) -> list[str]:
        """The options of commands that load code of the user's."""
        return [word for name in self.trusted for word in ("--trust", name)]

    async def go_on_with(self, number: int) -> None:
        """Make another version the current one, by the same command as in a terminal; raise UserError if it fails."""
        await self.command("ssil", "rollback", str(self.model), str(number), *self.trust)
        await asyncio.to_thread(self.predictions.live.refresh)

    async def take_back(self, job: Job) -> None:
        """Go on with the version before an update, or with none; raise UserError if that can't be done."""
        if parent := (job.result() or {}).get("parent"):
            await self.go_on_with(int(parent))
            await asyncio.to_thread(self.jobs.take_back, job)
        else:
            await asyncio.to_thread(self.jobs.start_anew, job)
            self.predictions.live.forget()


def page_routes(studio: Studio) -> APIRouter:
    """Return the routes of all pages."""
    router = APIRouter(include_in_schema=False)
    for add in (_add_photo_page, _add_update_routes, _add_try_routes, _add_history_routes, _add_export_routes):
        add(router, studio)
    return router


def _add_photo_page(router: APIRouter, studio: Studio) -> None:
    @router.get("/")
    async def photos() -> HTMLResponse:
        for job in studio.jobs.all():
            studio.jobs.state(job)  # removes the photos of an update that was published while no server ran
        return studio.page("photos.html", "photos", **studio.photos.page_values())

    @router.get("/help")
    async def keys() -> HTMLResponse:
        return studio.page("help.html", "help")


def _add_update_routes(router: APIRouter, studio: Studio) -> None:
    @router.post("/learn")
    async def learn() -> Response:
        try:
            job = await asyncio.to_thread(studio.jobs.start)
        except UserError as error:
            return studio.page("message.html", "photos", heading="Not started", message=str(error))
        return RedirectResponse(f"/updates/{job.number}", 303)

    @router.get("/updates/{number}")
    async def update(number: int) -> HTMLResponse:
        job = studio.job(number)
        state, result = await asyncio.to_thread(studio.jobs.state, job), job.result()
        reasons = [facts["reason"] for _, facts in job.events() if "reason" in facts]
        return studio.page(
            "update.html",
            "photos",
            job=job,
            state=state,
            reason=reasons[-1] if reasons else "",
            result=result,
            rows=class_rows(result) if result else [],
            made=studio.jobs.published_version(job) or (state == "done" and result and result["version"]),
            undecided=state == "refused" and studio.jobs.awaits_decision(job),
            can_start_anew=studio.jobs.can_start_anew(job),
        )

    @router.get("/updates/{number}/events")
    async def events(number: int, last_event_id: Annotated[str, Header()] = "") -> StreamingResponse:
        after = int(last_event_id) if last_event_id.isdecimal() else 0
        return StreamingResponse(_event_stream(studio.job(number), after), media_type="text/event-stream")

    @router.post("/updates/{number}/cancel")
    async def cancel(number: int) -> Response:
        job = studio.job(number)
        job.cancel()
        return RedirectResponse(f"/updates/{number}", 303)

    @router.post("/updates/{number}/decision/{decision}")
    async def decide(number: int, decision: Literal["accept", "discard"]) -> Response:
        """Publish an update that was refused, or give it up; the photos of one that is given up wait on."""
        try:
            await studio.command("ssil", decision, str(studio.model), *(studio.trust if decision == "accept" else ()))
        except UserError as error:
            return studio.page("message.html", "photos", heading="Not changed", message=str(error))
        await asyncio.to_thread(studio.predictions.live.refresh)
        return RedirectResponse(f"/updates/{studio.job(number).number}" if decision == "accept" else "/", 303)


async def _event_stream(job: Job, after: int) -> AsyncIterator[str]:
    """Yield the events of a job as server-sent events; the id is the line in the log, from which a reader goes on."""
    while True:
        running = await asyncio.to_thread(job.is_running)  # before the log is read: its last lines are not missed
        for number, facts in await asyncio.to_thread(job.events, after):
            after = number
            yield f"id: {number}\nevent: {facts['event']}\ndata: {json.dumps(facts)}\n\n"
        if not running:
            yield "event: end\ndata: {}\n\n"
            return
        await asyncio.sleep(SECONDS)


def _add_try_routes(router: APIRouter, studio: Studio) -> None:
    @router.get("/try")
    async def try_page() -> HTMLResponse:
        return studio.page("try.html", "try")

    @router.post("/try")
    async def predict(request: Request) -> HTMLResponse:
        try:
            reply = await studio.predictions.predict(request, BEST)
        except (HTTPException, BusyError, UserError) as error:
            return HTMLResponse(rendered("prediction.html", reply=None, problem=_plain_reason(error)))
        return HTMLResponse(rendered("prediction.html", reply=reply, problem=""))


def _plain_reason(error: Exception) -> str:
    return str(error.detail if isinstance(error, HTTPException) else error or "too many photos are waiting; try again")


def _add_history_routes(router: APIRouter, studio: Studio) -> None:
    @router.get("/history")
    async def history() -> HTMLResponse:
        versions, jobs = version_summaries(studio.model), studio.jobs.all()
        made_by = {one.number: job.number for one in versions for job in jobs if job.has_made(one.entry)}
        return studio.page("history.html", "history", versions=versions, made_by=made_by)

    @router.post("/history/{number}/current")
    async def rollback(number: int) -> Response:
        try:
            await studio.go_on_with(number)
        except UserError as error:
            return studio.page("message.html", "history", heading="Not changed", message=str(error))
        return RedirectResponse("/history", 303)

    @router.post("/updates/{number}/take-back")
    async def take_back(number: int) -> Response:
        """Go on with the version before an update, or with none; its photos wait again."""
        job = studio.job(number)
        try:
            await studio.take_back(job)
        except UserError as error:
            return studio.page("message.html", "history", heading="Not changed", message=str(error))
        return RedirectResponse("/", 303)


def _add_export_routes(router: APIRouter, studio: Studio) -> None:
    @router.get("/export/model.onnx")
    async def onnx() -> Response:
        exported = await asyncio.to_thread(read_exported, studio.model) if studio.predictions.live.loaded else None
        if not exported:
            raise HTTPException(404, "model: this version has no ONNX file; see ssil export")
        return _download(exported.content, f"{studio.model.resolve().name}-{exported.number}.onnx")

    @router.get("/export/model.zip")
    async def archive() -> Response:
        content = await asyncio.to_thread(zipped, studio.model)
        return _download(content, f"{studio.model.resolve().name}.zip")

    @router.post("/export/check")
    async def check() -> HTMLResponse:
        version = studio.predictions.version()
        try:
            words = ("ssil.studio.export_check", str(studio.model), str(version.number), *studio.trusted)
            found = json.loads(await studio.command(*words))
        except UserError as error:
            return HTMLResponse(rendered("export_check.html", found=None, problem=str(error), number=version.number))
        return HTMLResponse(rendered("export_check.html", found=found, problem="", number=version.number))


def zipped(model: Path) -> bytes:
    """Return a model directory as a zip file, without what waits to be learnt."""
    with TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for entry in walk(model):
                path = Path(entry.path).relative_to(model)
                if entry.is_file(follow_symlinks=False) and path.parts[0] not in {STAGING, LOCK}:
                    archive.write(entry.path, Path(model.resolve().name) / path)
        file.seek(0)
        return file.read()


def _download(content: bytes, name: str) -> Response:
    plain = name.encode("ascii", "replace").decode().replace('"', "_").replace("?", "_").replace("\\", "_")
    headers = {"content-disposition": f'attachment; filename="{plain}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)
