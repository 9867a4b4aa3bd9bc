"""What is told if the disk is full or fails: the reason in one line, and never a lost photo."""

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from ssil.studio.page_templates import rendered

NO_ROOM = 507
"""The status of answers to requests for which the disk had no room."""


def disk_problem(error: OSError) -> str:
    """Return an error of the file system in one line.

    >>> disk_problem(OSError(28, "No space left on device"))
    'disk: something could not be written or read (No space left on device); make room, and try again'
    """
    reason = error.strerror or type(error).__name__
    return f"disk: something could not be written or read ({reason}); make room, and try again"


def tell_disk_errors(app: FastAPI) -> None:
    """Let an application answer with the reason, where it would fail: a page for people, else JSON."""

    @app.exception_handler(OSError)
    async def tell(request: Request, error: Exception) -> Response:
        assert isinstance(error, OSError)
        message = disk_problem(error)
        if "text/html" not in request.headers.get("accept", ""):
            return JSONResponse({"detail": message}, NO_ROOM)
        page = {"heading": "Not done", "message": message, "title": "ssil", "tab": "", "version": None}
        return HTMLResponse(rendered("message.html", problem_loading=None, **page), NO_ROOM)
