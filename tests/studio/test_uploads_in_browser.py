"""Photos on their way into the studio, in Chromium: dropped, a thousand at once, with a lost connection, a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

import drawn_fruit
from served import Served, served
from ssil.studio.staging import Staging
from studio_browser import drop, flaws, studio_page
from tiny_classifiers import png

WIDTHS = pytest.mark.parametrize("width", [1280, 360])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tmp_path / "model"


@pytest.fixture
def server(model: Path) -> Iterator[Served]:
    with served(str(model), "--no-browser", command="studio") as running:
        yield running


def counts(model: Path) -> dict[str, int]:
    return {name: len(images) for name, images in Staging(model).by_class().items()}


def told(page: Page, text: str) -> None:
    expect(page.locator("#upload-status")).to_contain_text(text)


def note_all_told(page: Page) -> None:
    """Keep each text of the status in `told`: one that stands for half a second may never be seen by who looks."""
    page.evaluate(
        """() => {
            const status = document.querySelector("#upload-status");
            globalThis.told = [];
            new MutationObserver(() => told.push(status.textContent)).observe(status, {childList: true});
        }"""
    )


def small_photos(folder: Path, name: str, count: int) -> Path:
    (folder / name).mkdir(parents=True)
    for number in range(count):
        (folder / name / f"{number}.png").write_bytes(png(name, number))
    return folder / name


@WIDTHS
def test_folders_and_loose_photos_are_dropped(server: Served, model: Path, tmp_path: Path, width: int) -> None:
    """A folder in a folder is a class; loose photos get the class that is typed, before or after; files are refused."""
    photos = drawn_fruit.folder(tmp_path / "photos", ["apple", "pear"], 3)
    (photos / "pear" / "drawing.svg").write_text("<svg/>")
    (photos / "pear" / ".DS_Store").write_bytes(b"left out, not refused")
    loose = drawn_fruit.folder(tmp_path, ["lime"], 2) / "lime"
    with studio_page(server, width) as page:
        drop(page, "#drop", photos)
        told(page, "6 of 7 photos added.")
        assert page.locator("#refused li").all_inner_texts() == ["drawing.svg: not an image"]
        drop(page, "#drop", loose / "lime-0.jpg")
        told(page, "What is on this photo?")
        expect(page.locator("#class-name")).to_be_focused()
        page.keyboard.type("lime")
        page.keyboard.press("Enter")
        told(page, "1 of 1 photos added.")
        drop(page, "#drop", loose / "lime-1.jpg")
        expect(page.locator(".balance tbody tr", has_text="lime")).to_contain_text("2 new")
    assert counts(model) == {"apple": 3, "lime": 2, "pear": 3}


@WIDTHS
def test_a_thousand_photos_and_a_lost_connection(server: Served, model: Path, tmp_path: Path, width: int) -> None:
    """What was sent when the connection was lost is sent again, and counts once."""
    folder, lost = small_photos(tmp_path, "hen", 1000), list[str]()

    def lose(route: Route) -> None:
        """The fifth request never arrives; the tenth does, but its answer is lost."""
        lost.append(route.request.url)
        if len(lost) == 10:
            route.fetch()
        if len(lost) in {5, 10}:
            route.abort("internetdisconnected")
        else:
            route.continue_()

    with studio_page(server, width, "ERR_ABORTED|ERR_INTERNET_DISCONNECTED") as page:
        page.route("**/photos?class=*", lose)
        note_all_told(page)
        page.set_input_files("#folder", folder)
        told(page, "1000 of 1000 photos added.")
        lines = page.evaluate("told")
        assert lines.count("The connection was lost. The upload goes on as soon as it is back.") == 2
        expect(page.locator("button.thumb")).to_have_count(1000)
        page.locator("button.thumb").last.focus()
        page.keyboard.press("Delete")
        expect(page.locator("button.thumb")).to_have_count(999)
    assert len(lost) == 1000 / 16 + 0.5 + 2
    assert counts(model) == {"hen": 999}


def test_a_server_that_is_killed_and_started_anew(model: Path, tmp_path: Path) -> None:
    """The page says what to do; after the new address was opened in another tab, the upload goes on."""
    folder, seen = small_photos(tmp_path, "hen", 200), list[str]()
    with served(str(model), "--no-browser", command="studio") as first:

        def kill(route: Route) -> None:
            seen.append(route.request.url)
            if len(seen) == 4:
                first.process.kill()
                first.process.wait()
            route.continue_()

        with studio_page(
            first,
            expected="ERR_ABORTED|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|401",
            bypass_csp=True,
        ) as page:
            page.route("**/photos?class=*", kill)
            page.set_input_files("#folder", folder)
            told(page, "The connection was lost.")
            with served(str(model), "--no-browser", command="studio", port=first.port) as second:
                told(page, "The studio was started anew.")
                other = page.context.new_page()
                assert other.goto(second.address)
                expect(other.locator("h1")).to_have_text("This page is locked")
                assert flaws(other) == []
                other.goto(f"{second.address}/enter?token={second.token}")
                expect(other.locator("h1")).to_have_text("Photos")
                told(page, "200 of 200 photos added.")
    assert counts(model) == {"hen": 200}
