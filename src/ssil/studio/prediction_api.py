"""The routes for programs: predict images, list classes, tell the server's health and its numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field

from ssil.classifier.exported_model import Prediction
from ssil.core.errors import UserError
from ssil.data.image_index import Remark
from ssil.studio.batching import Batcher, BusyError
from ssil.studio.live_model import LiveModel, LoadedVersion
from ssil.studio.server_metrics import CONTENT_TYPE, ServerMetrics
from ssil.studio.uploaded_images import FIELD, DecodedImages, decoded, uploaded_files

MAX_TOP = 10_000


class ClassProbability(BaseModel):
    """A class, and how likely it is."""

    name: str
    probability: float


class ImageReply(BaseModel):
    """What was found in one image."""

    name: str = Field(description="of the file, as it was sent")
    classes: list[ClassProbability] = Field(description="the most likely first; none if the image can't be read")
    unknown: bool = Field(description="whether it is probably of no known class")
    error: str | None = Field(None, description="why the image can't be read")


class PredictReply(BaseModel):
    """The answer to images, in their order."""

    version: int = Field(description="of the model, the same for all of them")
    images: list[ImageReply]


class ClassesReply(BaseModel):
    """The classes that the model knows, in order of arrival."""

    version: int
    classes: list[str]


class HealthReply(BaseModel):
    """Whether the server can predict."""

    status: str = Field(description="`ok`; `empty` if nothing has been learnt yet; `stale` if there is a problem")
    version: int | None
    problem: str | None = Field(description="why the current version can't be loaded; the one before it predicts")


class Refusal(BaseModel):
    """Why a request was refused."""

    detail: str | list[dict[str, Any]]


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "The request can't be read."},
    401: {"model": Refusal, "description": "The token is missing or wrong."},
    403: {"model": Refusal, "description": "The request comes from a page of another site."},
    421: {"model": Refusal, "description": "The Host is not a name of this server."},
    503: {"model": Refusal, "description": "Nothing has been learnt yet, or too many images are waiting."},
}
UPLOAD_REFUSALS: dict[int | str, dict[str, Any]] = {
    **REFUSALS,
    413: {"model": Refusal, "description": "Too many images, or too many bytes."},
    415: {"model": Refusal, "description": "The body is not a form."},
    422: {"model": Refusal, "description": "No image can be read, or a number is out of range."},
}


def upload_schema(most: int) -> dict[str, Any]:
    """Return the description of a form of images."""
    files = {"type": "array", "minItems": 1, "maxItems": most, "items": {"type": "string", "format": "binary"}}
    form = {"type": "object", "required": [FIELD], "properties": {FIELD: files}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}}}


@dataclass(frozen=True)
class PredictionService:
    """What the routes share."""

    live: LiveModel
    batcher: Batcher
    metrics: ServerMetrics
    most_images: int

    def version(self) -> LoadedVersion:
        """Return the version that predicts; raise the answer 503 if there is none."""
        if not self.live.loaded:
            raise HTTPException(503, "model: nothing has been learnt yet; learn first")
        return self.live.loaded

    async def predict(self, request: Request, top: int, unknown: float | None = None) -> PredictReply:
        """Return the most likely classes of the images in a form; see `PredictReply`."""
        files = await uploaded_files(request, self.most_images)
        version = self.version()
        with self.batcher.admitted(len(files)):
            images = await decoded(files, version.predictor.preprocessing)
            readable = images.readable
            self.metrics.images.labels("predicted").inc(len(readable))
            self.metrics.images.labels("unreadable").inc(len(files) - len(readable))
            if not readable:
                raise HTTPException(422, _complaint(images))
            names = [images.names[at] for at in readable]
            found = await self.batcher.predict(version, names, images.views(), top)
        by_place = dict(zip(readable, found, strict=True))
        replies = [
            _failed(one) if isinstance(one, Remark) else _reply(by_place[at], unknown)
            for at, one in enumerate(images.found)
        ]
        return PredictReply(version=version.number, images=replies)


def _reply(found: Prediction, threshold: float | None) -> ImageReply:
    ranking = [ClassProbability(name=name, probability=p) for name, p in found.ranking]
    unknown = found.unknown if threshold is None else found.ranking[0][1] < threshold
    return ImageReply(name=found.name, classes=ranking, unknown=unknown)


def _failed(remark: Remark) -> ImageReply:
    return ImageReply(name=remark.path, classes=[], unknown=False, error=remark.reason)


def _complaint(images: DecodedImages, most: int = 3) -> str:
    remarks: Sequence[Remark] = [one for one in images.found if isinstance(one, Remark)]
    shown = "; ".join(f"{one.path}: {one.reason}" for one in remarks[:most])
    return f"{FIELD}: none can be read ({shown}{'; ...' if len(remarks) > most else ''})"


def prediction_routes(service: PredictionService) -> APIRouter:
    """Return the routes."""
    router = APIRouter()

    @router.post("/predict", responses=UPLOAD_REFUSALS, openapi_extra=upload_schema(service.most_images))
    async def predict(
        request: Request,
        top: Annotated[int, Query(ge=1, le=MAX_TOP, description="how many classes to name")] = 5,
        unknown: Annotated[
            float | None,
            Query(ge=0, le=1, description="call an image unknown below this probability, not by the model's rule"),
        ] = None,
    ) -> PredictReply:
        """Classify one or many images, with probabilities."""
        try:
            return await service.predict(request, top, unknown)
        except BusyError:
            raise HTTPException(503, "busy: too many images are waiting", {"retry-after": "1"}) from None
        except UserError as error:  # of the model: its graph does not compute what it should
            raise HTTPException(503, str(error)) from None

    @router.get("/classes", responses=REFUSALS)
    async def classes() -> ClassesReply:
        """List the classes that the model knows."""
        version = service.version()
        return ClassesReply(version=version.number, classes=list(version.class_names))

    @router.get("/health", responses={key: REFUSALS[key] for key in (400, 403, 421)})
    async def health() -> HealthReply:
        """Tell whether the server can predict, and by which version; needs no token."""
        live = service.live
        status = "stale" if live.problem else "ok" if live.loaded else "empty"
        return HealthReply(status=status, version=live.loaded.number if live.loaded else None, problem=live.problem)

    @router.get("/metrics", responses={**REFUSALS, 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
    async def metrics() -> Response:
        """Return counters, in the text format of Prometheus."""
        return Response(service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    return router
