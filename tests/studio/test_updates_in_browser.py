"""Updates in Chromium: followed, cancelled, decided on, gone back from; two tabs; the camera of a phone; keys alone."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import FilePayload, Page, expect

from served import Served, form, served, two_versions
from ssil.classifier.versions import VersionedDirectory
from ssil.core.files import write_json
from ssil.studio.learning_jobs import Job, LearningJobs
from ssil.studio.staging import Staging
from studio_browser import SECONDS, studio_page, violations
from studio_jobs import running_job
from tiny_classifiers import png, settings

WAIT = 1000 * SECONDS
WIDTHS = pytest.mark.parametrize("width", [1280, 360])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_versions(tmp_path_factory.mktemp("updates") / "model").folder


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    """A model; as many photos of each of two classes wait, which nobody could tell apart."""
    shutil.copytree(made, tmp_path / "model")
    for copy in range(16):
        Staging(tmp_path / "model").add(("fly", "gnat")[copy % 2], png("fly", copy))
    return tmp_path / "model"


@pytest.fixture
def server(model: Path) -> Iterator[Served]:
    with served(str(model), "--no-browser", "--trust", settings().backbone, command="studio") as running:
        yield running


def predicted(server: Served) -> bytes:
    """The answer to the last bit."""
    answer = httpx2.post(f"{server.address}/predict", headers=server.bearer, files=form("ant", "fly"))
    assert answer.status_code == 200
    return answer.content


def heading(page: Page, text: str) -> None:
    expect(page.locator("h1")).to_have_text(text, timeout=WAIT)


def in_use(page: Page, text: str) -> None:
    expect(page.locator(".versions .current h2")).to_contain_text(text, timeout=WAIT)


def show_confused(page: Page, job: Job) -> None:
    """Two classes that are confused, as a larger model would report them, are shown with the photos."""
    digest = next((job.folder / "learnt").glob("fly/*")).stem
    pair = {"text": "fly was taken for gnat: 1 of 2", "digests": [digest]}
    write_json(job.folder / "result.json", {**(job.result() or {}), "confused": [pair]})
    page.reload()
    expect(page.locator("h3")).to_have_text("fly was taken for gnat: 1 of 2")
    example = page.locator("section[aria-labelledby=confused-heading] img")
    example.scroll_into_view_if_needed()
    expect(example).not_to_have_js_property("naturalWidth", 0)


def test_a_decision_and_the_way_back(server: Served, model: Path) -> None:
    """Nobody can tell what the old classes lose: the update waits. Discarded, the photos wait; accepted, it is used."""
    shutil.rmtree(model / "pictures")
    before = predicted(server)
    with studio_page(server, bypass_csp=True) as page:
        for decision in ("Discard it", "Use it all the same"):
            page.keyboard.press("l")
            heading(page, "Learnt, but not in use")
            expect(page.locator(".notice.bad")).to_contain_text("the model is as it was")
            assert violations(page) == []
            assert predicted(server) == before
            page.click(f"text={decision}")
            if decision == "Discard it":
                heading(page, "Photos")
                assert len([*Staging(model)]) == 16
        heading(page, "Learnt: version 3")
        assert [*Staging(model)] == []
        expect(page.locator("main")).to_contain_text("fly and gnat look like one class under two names")
        show_confused(page, LearningJobs(model).all()[-1])
        after = predicted(server)
        page.keyboard.press("h")
        in_use(page, "Version 3")
        for number, answer in ((1, before), (3, after)):
            page.click(f"text=Go on with version {number}")
            in_use(page, f"Version {number}")
            assert predicted(server) == answer != (before if number == 3 else after)


@WIDTHS
def test_two_tabs_and_cancel(server: Served, model: Path, width: int) -> None:
    """The second tab can't begin another update, but follow the one that runs, and cancel it."""
    with studio_page(server, width) as page, running_job(model, 1) as job:
        other = page.context.new_page()
        other.goto(server.address)
        page.goto(f"{server.address}/updates/1")
        heading(page, "Learning")
        assert other.locator("#learn").is_disabled()
        other.evaluate("document.querySelector('#learn').disabled = false")  # as if it had been open since before
        other.click("#learn")
        heading(other, "Not started")
        expect(other.locator(".notice")).to_contain_text("an update is running already")
        other.click("text=Back")
        other.click("text=Watch it")
        heading(other, "Learning")
        other.click("text=Cancel")
        heading(other, "Learning")
        assert (job.folder / "cancel").exists()
        job.append("cancelled", reason="the update was cancelled")
        (job.folder / "lock").unlink()  # as if its process had ended
        for tab in (page, other):
            heading(tab, "Cancelled")
    assert VersionedDirectory(model).current() == 1
    assert len([*Staging(model)]) == 16


@WIDTHS
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_running_update(server: Served, model: Path, width: int, scheme: str) -> None:
    """How far it is, how long it takes, and the curve, in words too; a reload loses nothing of it."""
    with studio_page(server, width, bypass_csp=True, color_scheme=scheme, reduced_motion="reduce") as page:
        with running_job(model, 1) as job:
            for done in range(5):
                job.append("progress", stage="learning", done=done / 10, time=1000 + 2 * done)
            page.goto(f"{server.address}/updates/1")
            expect(page.locator("#left")).to_have_text("about 12 seconds left")
            expect(page.locator("#curve-text")).to_have_text("Share of the photos that are done, over time: 40 %.")
            expect(page.locator("#curve polyline")).to_have_attribute(
                "points", "0.0,79.0 75.0,71.2 150.0,63.4 225.0,55.6 300.0,47.8"
            )
            for epoch, loss in enumerate((2.0, 1.0, 0.5), 1):
                job.append("epoch", epoch=epoch, loss=loss)
            for _ in range(2):
                expect(page.locator("#curve-text")).to_contain_text(
                    "Loss after each epoch, from 2.00 to 0.50 after epoch 3"
                )
                expect(page.locator("#curve polyline")).to_have_attribute("points", "0.0,1.0 150.0,40.0 300.0,59.5")
                page.reload()
            job.append("progress", stage="learning", done=1.0)
            expect(page.locator("#stage")).to_contain_text("Testing it")
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        heading(page, "Stopped")
        assert violations(page) == []


def test_keys_alone(server: Served) -> None:
    """From page to page, and from the top of a page to its buttons; each has a visible focus."""
    with studio_page(server, 360) as page:
        for key, text in (("t", "Try it"), ("h", "History"), ("?", "Help"), ("p", "Photos")):
            page.keyboard.press(key)
            heading(page, text)
            page.wait_for_load_state()
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        seen = set[str]()
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
            assert page.evaluate(
                "document.activeElement === document.body || document.activeElement.matches(':focus-visible')"
            )
        assert seen >= {
            "History",
            "class-name",
            "files",
            "folder",
            "camera-button",
            "learn",
            "fly",
            "move-to",
            "remove",
        }
        first = page.locator("button.thumb").first
        first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        expect(first).to_be_focused()


def test_a_phone(server: Served, model: Path) -> None:
    """Its own camera, fingers in place of keys."""
    taken: FilePayload = {"name": "image.png", "mimeType": "image/png", "buffer": png("owl", 1)}
    with studio_page(server, 360, has_touch=True, is_mobile=True) as page:
        expect(page.locator("label.phone")).to_be_visible()
        assert page.locator("#phone").get_attribute("capture") == "environment"
        page.fill("#class-name", "owl")
        page.set_input_files("#phone", taken)
        owl = page.locator("button.thumb[data-class=owl]")
        owl.tap()
        page.select_option("#move-to", "fly")
        expect(owl).to_have_count(0)
        page.tap("#undo")
        expect(owl).to_have_count(1)
        page.tap("#remove")
        expect(owl).to_have_count(0)
        page.tap("#undo")
        expect(owl).to_have_count(1)
    assert len(Staging(model).by_class()["owl"]) == 1
