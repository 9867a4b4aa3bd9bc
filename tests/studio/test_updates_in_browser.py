"""Updates in Chromium: followed, cancelled, decided on, gone back from; two tabs; the camera of a phone; keys alone."""

import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from served import FIRST, Served, form, served, two_versions
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.update import update
from ssil.classifier.versions import VersionedDirectory
from ssil.core.files import write_json
from ssil.studio.learning_jobs import Job, LearningJobs
from ssil.studio.staging import Staging
from studio_browser import flaws, heading, studio_page
from studio_jobs import running_job
from tiny_classifiers import labelled_images, png, settings

WIDTHS = pytest.mark.parametrize("width", [1280, 360])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_versions(tmp_path_factory.mktemp("updates") / "model").folder


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "model")
    add_photos(tmp_path / "model")
    return tmp_path / "model"


def add_photos(model: Path) -> None:
    """As many photos of each of two classes wait, which nobody could tell apart; they were looked at already."""
    added = [Staging(model).add(("fly", "gnat")[copy % 2], png("fly", copy)) for copy in range(16)]
    check = LearningJobs(model).check.folder
    check.mkdir()
    write_json(check / "result.json", {"photos": [one.digest for one in added], "marks": []})


def studio(model: Path) -> AbstractContextManager[Served]:
    return served(str(model), "--no-browser", "--trust", settings().backbone, command="studio")


@pytest.fixture
def server(model: Path) -> Iterator[Served]:
    with studio(model) as running:
        yield running


def predicted(server: Served) -> bytes:
    """The answer to the last bit."""
    with server.client() as client:
        answer = client.post("/predict", files=form("ant", "fly"))
    assert answer.status_code == 200
    return answer.content


def in_use(page: Page, text: str) -> None:
    expect(page.locator(".versions .current h2")).to_contain_text(text)


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
            assert flaws(page) == []
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
    with studio_page(server, width, bypass_csp=True) as page, running_job(model, 1) as job:
        other = page.context.new_page()
        other.goto(server.address)
        page.goto(f"{server.address}/updates/1")
        heading(page, "Learning")
        assert other.locator("#learn").is_disabled()
        other.evaluate("document.querySelector('#learn').disabled = false")  # as if it had been open since before
        other.click("#learn")
        heading(other, "Not started")
        expect(other.locator(".notice")).to_contain_text("an update is running already")
        assert flaws(other, [width]) == []
        other.click("text=Back")
        other.click("text=Watch it")
        heading(other, "Learning")
        with other.expect_response("**/cancel"):
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
def test_a_running_update(server: Served, model: Path, width: int) -> None:
    """How far it is, how long it takes, and the curve, in words too; a reload loses nothing of it."""
    with studio_page(server, width, bypass_csp=True) as page:
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
            assert flaws(page, [width]) == []
        heading(page, "Stopped")
        assert flaws(page, [width]) == []


def test_a_training_is_followed_and_cancelled(tmp_path: Path) -> None:
    """A network that would be trained for a hundred thousand epochs, and its losses as it has noted them."""
    model = tmp_path / "model"
    one = update(None, settings(later_epochs=100_000), labelled_images(FIRST)).classifier
    ModelDirectory(model, [settings().backbone]).publish_change(None, one, new=[*FIRST])
    add_photos(model)
    with studio(model) as server, studio_page(server) as page:
        page.click("#learn")
        heading(page, "Learning")
        expect(page.locator("#curve-text")).to_contain_text(re.compile(r"from \d.* after epoch \d\d+"))
        shown = re.search(r"from (\S+) to", page.inner_text("#curve-text"))
        losses = [facts["loss"] for _, facts in LearningJobs(model).all()[0].events() if facts["event"] == "epoch"]
        assert shown
        assert float(shown[1]) == pytest.approx(losses[0], abs=0.005)
        page.click("text=Cancel")
        heading(page, "Cancelled")
    assert VersionedDirectory(model).numbers() == [1]
    assert len([*Staging(model)]) == 16


def first_update(model: Path) -> Job:
    """A first update that was published, of which one photo is hard; the photos are as the studio keeps them."""
    directory, jobs = ModelDirectory(model, [settings().backbone]), LearningJobs(model)
    job = Job(1, model / "staging" / "jobs" / "0001")
    job.folder.mkdir(parents=True)
    images = [jobs.staging.add(name, png(name, copy)) for name in FIRST for copy in range(6)]
    rows = [f"{image.path},{image.class_name}" for image in images]
    job.table.write_text("\n".join(["path,label", *rows]))
    hard = {"digest": images[0].digest, "kind": "hard", "text": "taken for bee", "label": "ant", "other": "bee"}
    facts: dict[str, Any] = {"parent": None, "old_before": None, "old_after": None, "new_after": 90.0, "estimate": None}
    write_json(job.folder / "result.json", {**facts, "classes": [], "hard": [{**hard, "confidence": 0.8}]})
    made = update(None, settings(), labelled_images(FIRST)).classifier
    with directory.locked():
        directory.publish_change(None, made, new=[*FIRST], images=str(job.table))
    assert jobs.state(job) == "done"
    return job


def test_the_first_update_is_taken_back_and_a_hard_example_mended(tmp_path: Path) -> None:
    """The photos wait again, the hard one is marked, and one key puts it into the class that it was taken for."""
    model = tmp_path / "model"
    first_update(model)
    with studio(model) as server, studio_page(server, bypass_csp=True) as page:
        page.goto(f"{server.address}/history")
        page.click("text=What it did to each class")
        heading(page, "Learnt: version 1")
        hard = page.locator("section[aria-labelledby=hard-heading] li")
        expect(hard).to_have_text("ant: taken for bee (80\xa0% sure)")
        assert flaws(page) == []
        page.click("text=Take it back: the photos wait again")
        heading(page, "Photos")
        expect(page.locator(".model")).to_contain_text("nothing learnt yet")
        page.locator("button.thumb[data-other=bee]").focus()
        page.keyboard.press("m")
        expect(page.locator(".balance tbody tr", has_text="bee")).to_contain_text("7 new")
        page.goto(f"{server.address}/updates/1")
        expect(page.locator(".notice")).to_contain_text("the update was taken back; its photos wait again")
    assert not VersionedDirectory(model).exists
    assert {name: len(images) for name, images in Staging(model).by_class().items()} == {"ant": 5, "bee": 7, "cat": 6}


def test_keys_alone(server: Served) -> None:
    """From page to page, and from the top of a page to its buttons; each has a visible focus."""
    with studio_page(server, 360) as page:
        for key, text in (("t", "Try it"), ("h", "History"), ("?", "Help"), ("p", "Photos")):
            page.keyboard.press(key)
            heading(page, text)
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
