"""The images of a request: counted and measured before any of them is decoded."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
from fastapi import HTTPException, Request
from starlette.datastructures import UploadFile

from ssil.classifier.prediction_inputs import read_view
from ssil.data.decode import Pixels, UnreadableError
from ssil.data.image_index import Preprocessing, Remark, as_utf8
from ssil.data.prefetch import decoding_pool, default_threads

FIELD = "images"
"""The name of the form's field."""


class DecodedImages(NamedTuple):
    """The images of a request in order: for each its test view, or why it can't be read."""

    names: tuple[str, ...]
    found: tuple[Pixels | Remark, ...]

    @property
    def readable(self) -> list[int]:
        """The positions of the images that can be read."""
        return [at for at, one in enumerate(self.found) if not isinstance(one, Remark)]

    def views(self) -> Pixels:
        """Return the test views of the readable images, (N, S, S, C)."""
        return np.stack([one for one in self.found if not isinstance(one, Remark)])


async def uploaded_files(request: Request, most: int) -> list[UploadFile]:
    """Return the files of a form; raise the answer 413, 415 or 422 if they are too many, or if there are none."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise HTTPException(415, f"{FIELD}: send them as a form, multipart/form-data, in the field {FIELD}")
    form = await request.form(max_files=most + 1, max_fields=most)
    files = [one for one in form.getlist(FIELD) if isinstance(one, UploadFile)]
    if len(files) > most:
        raise HTTPException(413, f"{FIELD}: more than {most} at a time; send them in several requests")
    if not files:
        raise HTTPException(422, f"{FIELD}: the form has no file in the field {FIELD}")
    return files


@cache
def upload_pool() -> ThreadPoolExecutor:
    """Return the threads that decode images; how many cores there are is asked once, not for each request."""
    return decoding_pool(default_threads())


async def decoded(files: Sequence[UploadFile], preprocessing: Preprocessing) -> DecodedImages:
    """Decode images in the threads that do so; an image with too many pixels is refused by its header."""
    loop = asyncio.get_running_loop()
    found = await asyncio.gather(*(loop.run_in_executor(upload_pool(), _decode, file, preprocessing) for file in files))
    return DecodedImages(tuple(map(shown_name, files)), tuple(found))


def shown_name(file: UploadFile) -> str:
    """Return the name under which a file was sent, as text that JSON can hold."""
    return as_utf8(file.filename or "")


def _decode(file: UploadFile, preprocessing: Preprocessing) -> Pixels | Remark:
    try:
        return read_view(file.file.read(), preprocessing)
    except UnreadableError as error:
        return Remark(shown_name(file), str(error))
