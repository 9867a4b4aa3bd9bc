"""The documentation site in Chromium, over HTTP as readers get it; whatever goes wrong in it is listed."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from playwright.sync_api import Page, sync_playwright

import browser


class Silent(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def site_page(width: int, colours: Literal["light", "dark"]) -> Iterator[Page]:
    """A page of this width; ends with a failure if anything failed in it, or was asked of another server."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.path(), args=["--no-sandbox", "--disable-gpu"])
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=colours)
        page, trouble = context.new_page(), list[str]()
        page.set_default_timeout(1000 * browser.SECONDS)
        page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda request: None if "127.0.0.1" in request.url else trouble.append(request.url))
        try:
            yield page
        finally:
            chromium.close()
        assert trouble == []
