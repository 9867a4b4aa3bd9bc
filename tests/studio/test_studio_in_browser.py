"""The studio in Chromium: from dropped photos to an update, a rollback and an export; and whether all can use it.

All of it is done twice, each time with a model of its own: at 1280 pixels by keys, and on a phone of 360 by fingers.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx2
import pytest
from playwright.sync_api import FilePayload, Page, expect

import drawn_fruit
from served import Served, served
from ssil.classifier.publish_update import publish_update
from ssil.classifier.versions import VersionedDirectory
from ssil.studio.learning_jobs import LearningJobs
from studio_browser import SECONDS, drop, flaws, heading, studio_page

OLD, NEW = ("apple", "banana", "orange"), "pear"
PHONE = 360
FINGERS: dict[str, Any] = {"has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("studio")
    publish_update(root / "fruit", str(drawn_fruit.folder(root / "photos", OLD, 10)), {})
    return root / "fruit"


@pytest.fixture(scope="module", params=[1280, PHONE])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def model(made: Path, tmp_path_factory: pytest.TempPathFactory, width: int) -> Path:
    return Path(shutil.copytree(made, tmp_path_factory.mktemp(str(width)) / "fruit"))


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Served]:
    with served(str(model), "--no-browser", command="studio") as running:
        yield running


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a new class, of which one file is no photo, and one photo was learnt as another class."""
    root = drawn_fruit.folder(tmp_path_factory.mktemp("more"), [NEW], 5)
    (root / NEW / "wrong.jpg").write_bytes(drawn_fruit.jpeg("apple", 0))
    (root / NEW / "notes.txt").write_text("no photo")
    return root


def predicted(server: Served, name: str) -> bytes:
    """The scores that matter, to the last bit."""
    files = {"images": (name, drawn_fruit.jpeg(name, 500))}
    with server.client() as client:
        return client.post("/predict", files=files).content


def go_to(page: Page, name: str) -> None:
    page.click(f"nav >> text={name}")
    heading(page, name)


def add_folder(page: Page, folder: Path) -> None:
    page.set_input_files("#folder", folder)
    expect(page.locator("#upload-status")).to_contain_text("added")


def sort_by_keys(page: Page) -> None:
    """Remove a photo, take that back, put it into another class, take that back."""
    thumbs = page.locator("button.thumb")
    expect(thumbs).to_have_count(6)
    thumbs.nth(1).focus()
    page.keyboard.press("ArrowLeft")
    expect(thumbs.nth(0)).to_be_focused()
    page.keyboard.press("Delete")
    expect(thumbs).to_have_count(5)
    page.keyboard.press("z")
    expect(thumbs).to_have_count(6)
    thumbs.nth(0).focus()
    page.keyboard.press("1")
    expect(page.locator(".balance tbody tr").nth(0)).to_contain_text("10 learnt, 1 new")
    page.keyboard.press("z")
    expect(page.locator(".balance tbody tr").nth(0)).not_to_contain_text("new")


def learn(page: Page) -> None:
    page.locator("#learn").click()
    heading(page, "Learning")
    page.reload()
    expect(page.locator("h1")).to_contain_text("Learn")
    heading(page, "Learnt: version 2")


def sort_by_fingers(page: Page) -> None:
    """The same by the buttons that a chosen photo has."""
    thumbs, first = page.locator("button.thumb"), page.locator(".balance tbody tr").nth(0)
    expect(thumbs).to_have_count(6)
    thumbs.nth(0).tap()
    page.tap("#remove")
    expect(thumbs).to_have_count(5)
    page.tap("#undo")
    expect(thumbs).to_have_count(6)
    thumbs.nth(0).tap()
    page.select_option("#move-to", "apple")
    expect(first).to_contain_text("10 learnt, 1 new")
    page.tap("#undo")
    expect(first).not_to_contain_text("new")


def shoot(page: Page, width: int) -> None:
    """Hold the space bar, or the button, while the camera, here Chromium's test picture, is on; then remove these."""
    page.fill("#class-name", "test picture")
    page.click("#camera-button")
    expect(page.locator("#camera-status")).to_have_text("The camera is on.")
    held = held_button(page, "#shoot") if width == PHONE else held_space(page)
    with held:
        expect(page.locator("#camera-status")).to_contain_text("2 photos taken")
    page.evaluate("async () => { await shot(); }")  # when it is encoded, the others are, and wait to be sent or were
    page.locator("#camera-off").click()
    expect(page.locator("#upload-status")).to_contain_text("added")
    own = page.locator("button.thumb[data-class='test picture']")
    expect(own.nth(1)).to_be_visible()
    page.reload()
    assert own.count() >= 2
    for left in range(own.count(), 0, -1):
        own.first.focus()
        page.keyboard.press("Delete")
        expect(own).to_have_count(left - 1)


@contextmanager
def held_space(page: Page) -> Iterator[None]:
    page.locator("#camera-off").focus()
    page.keyboard.down(" ")
    yield
    page.keyboard.up(" ")


@contextmanager
def held_button(page: Page, selector: str) -> Iterator[None]:
    """A finger on a button."""
    page.locator(selector).scroll_into_view_if_needed()
    box = page.locator(selector).bounding_box()
    assert box
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [place]})
    yield
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def try_photos(page: Page, photos: Path) -> None:
    photo: FilePayload = {"name": "p.jpg", "mimeType": "image/jpeg", "buffer": drawn_fruit.jpeg(NEW, 77)}
    page.set_input_files("#tried", photo)
    best = page.locator("#prediction")
    expect(best).to_contain_text(NEW)
    page.set_input_files("#tried", {"name": "x.jpg", "mimeType": "image/jpeg", "buffer": b"no photo"})
    expect(page.locator("#prediction .notice")).to_contain_text("not an image")
    page.evaluate(PASTE, [*drawn_fruit.jpeg("apple", 78)])
    expect(best).to_contain_text("apple")
    with page.expect_response("**/try") as answer:
        drop(page, "#try", photos / NEW / f"{NEW}-0.jpg")
    assert NEW in answer.value.text()
    page.click("#camera-button")
    expect(page.locator("#camera-status")).to_have_text("The camera is on.")
    page.click("#shoot")
    expect(page.locator("#preview")).to_have_js_property("width", 320)
    expect(page.locator("#prediction .answer")).to_be_visible()
    page.fill("#right-class", NEW)
    page.click("text=Add it")
    expect(page.locator("#corrected")).to_contain_text(f"It waits in {NEW}")


PASTE = """bytes => {
    const given = new DataTransfer();
    given.items.add(new File([new Uint8Array(bytes)], "pasted.jpg", {type: "image/jpeg"}));
    document.dispatchEvent(new ClipboardEvent("paste", {clipboardData: given}));
}"""


def export(page: Page, model: Path) -> None:
    page.click("text=Check the ONNX file")
    expect(page.locator("#check")).to_contain_text("gives the same answer")
    with page.expect_download() as download:
        page.click("text=Download ONNX")
    assert (
        Path(download.value.path()).read_bytes() == (VersionedDirectory(model).version(2) / "model.onnx").read_bytes()
    )


def test_from_photos_to_an_update_and_back(server: Served, model: Path, photos: Path, width: int) -> None:
    before = predicted(server, "apple")
    with studio_page(server, width, **(FINGERS if width == PHONE else {})) as page:
        shoot(page, width)
        add_folder(page, photos)
        assert page.locator("#refused li").all_inner_texts() == ["notes.txt: not an image"]
        expect(page.locator(".balance tbody tr").nth(3)).to_contain_text("not learnt yet")
        (sort_by_fingers if width == PHONE else sort_by_keys)(page)
        learn(page)
        go_to(page, "Try it")
        try_photos(page, photos)
        go_to(page, "History")
        export(page, model)
        assert predicted(server, "apple") != before
        mend(page, server, width)
    assert predicted(server, "apple") == before


def mend(page: Page, server: Served, width: int) -> None:
    """An apple that was learnt is among the pears: it is marked. Taken back, it waits again; one key puts it right."""
    page.goto(f"{server.address}/updates/1")
    expect(page.locator("table tbody tr")).to_have_count(4)
    expect(page.locator(".marked li", has_text="pear: the same photo is in apple")).to_have_count(1)
    page.click("text=Take it back")
    heading(page, "Photos")
    expect(page.locator("button.thumb")).to_have_count(7)  # with the one that was added where it was tried
    marked = page.locator("button.thumb[data-other='apple']")
    if width == PHONE:
        marked.tap()
        page.tap("#look-alike")
    else:
        marked.focus()
        page.keyboard.press("m")
    expect(page.locator(".balance tbody tr").nth(0)).to_contain_text("10 learnt, 1 new")


def test_the_zip_is_the_model(server: Served, tmp_path: Path) -> None:
    answer = httpx2.get(f"{server.address}/export/model.zip", headers=server.bearer, timeout=SECONDS)
    with ZipFile(BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path)
    assert not [*tmp_path.rglob("staging")]
    assert VersionedDirectory(tmp_path / "fruit").current() >= 1


def test_every_page_is_usable(server: Served, model: Path, width: int) -> None:
    """Nothing that axe finds, and nothing wider than the window."""
    with studio_page(server, width, bypass_csp=True) as page:
        updates = [f"/updates/{job.number}" for job in LearningJobs(model).all()]
        for path in ("/", "/try", "/history", "/help", "/docs", *updates):
            page.goto(server.address + path)
            assert flaws(page, [width]) == []
