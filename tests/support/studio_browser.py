"""Chromium with the studio open in it, driven by Playwright; whatever goes wrong in it is listed."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

import browser
from served import Served

AXE = Path(__file__).with_name("vendor") / "axe-core-4.14.0.min.js"
FLAGS = ["--no-sandbox", "--disable-gpu", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
SECONDS = 300
expect.set_options(timeout=1000 * SECONDS)  # five by default, which is little on a computer that does much else


@contextmanager
def studio_page(server: Served, width: int = 1280, expected: str = "ERR_ABORTED", **options: Any) -> Iterator[Page]:
    """A page that has entered by the address that the command printed; ends with a failure if there was any error.

    Errors that match `expected` are none: at least those of what a page was fetching when it was left.
    """
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.path(), args=FLAGS)
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        page, trouble = context.new_page(), list[str]()
        page.set_default_timeout(1000 * SECONDS)
        page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("requestfailed", lambda request: trouble.append(f"{request.url} {request.failure}"))
        page.goto(f"{server.address}/enter?token={server.token}")
        try:
            yield page
        finally:
            chromium.close()
        found = [one for one in trouble if not re.search(expected, one)]
        assert not found, found


def heading(page: Page, text: str) -> None:
    """Wait for a page with this heading, and for its scripts: before they are there, no key is heard."""
    expect(page.locator("h1")).to_have_text(text)
    page.wait_for_load_state()


def drop(page: Page, selector: str, *paths: Path) -> None:
    """Drop files or folders on an element, as if from the desktop."""
    box = page.locator(selector).bounding_box()
    assert box
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + 20}
    data = {"items": [], "files": [*map(str, paths)], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})


def flaws(page: Page, widths: Sequence[int] = (1280, 360)) -> list[str]:
    """What axe finds on the page, and what is wider than the window, at some widths, in light and dark."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found += [f"{width} {scheme} {one}" for one in violations(page)]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"{page.url} is wider than {width} pixels")
    return found


def violations(page: Page) -> list[str]:
    """What axe finds on the page; the context must bypass the page's policy, which lets no other script in."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [f"{one['id']}: {node['html']} {node['failureSummary']}" for one in found for node in one["nodes"]]
