"""The page in a real browser: everything is drawn, nothing is logged as an error, nothing is fetched or cut off."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Browser, path
from report_runs import run
from ssil.reporting.report_page import page
from ssil.reporting.sections import sections

pytestmark = pytest.mark.slow

DRAWN = """[...document.querySelectorAll(".plot")].filter(plot => plot.querySelector("svg.main-svg") && [
  ...plot.querySelectorAll(".scatterlayer .js-line, .scatterlayer .point, .barlayer .point path, .heatmaplayer image")
].some(mark => Math.max(mark.getBoundingClientRect().width, mark.getBoundingClientRect().height) > 2)).length"""
"""The number of plots with a visible mark."""

FETCHED = "performance.getEntriesByType('resource').filter(one => !one.name.startsWith('data:')).length"
LONG = {"an_option_of_some_length": "and a value that is longer than a telephone is wide, or so one should hope"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three streams with several seeds, an upper bound, unusual names and an unfinished run."""
    runs = [
        run("ft"),
        run("ft", (80, 50, 30), seed=1),
        run("ssil", (90, 80, 70), options={"a": 1}),
        run("ssil", (90, 80), options={"a": 2} | LONG),
        run("joint", (95, 95, 95), memory={"kind": "unlimited"}),
        run("a.py:<b>&amp;</script>", folder="a/folder/with/a/long/name/" * 5),
        run("ft", (90,), sizes=(4, 1, 1)),
        *(run("ssil", sizes=(1, 2, 3), options={"batches": "replay", "replay_batch": size}) for size in (16, 32)),
    ]
    file = tmp_path_factory.mktemp("report") / "index.html"
    file.write_text(page(sections(runs)))
    return file


@pytest.mark.parametrize("width", [1280, 390])
def test_all_is_drawn(browser: Browser, report: Path, width: int) -> None:
    browser.trouble.clear()
    browser.open(report, width)
    browser.wait("document.documentElement.dataset.drawn === 'all'")
    plots = browser.ask("document.querySelectorAll('.plot').length")
    assert plots == browser.ask(DRAWN) == report.read_text().count('class="plot"') > 30
    assert browser.ask("innerWidth") == width
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(FETCHED) == 0
    assert browser.trouble == []


def test_a_button_hides_its_variant_in_the_whole_section(browser: Browser, report: Path) -> None:
    browser.open(report, 1280)
    browser.wait("document.documentElement.dataset.drawn === 'all'")
    lines = "document.querySelector('section').querySelectorAll('.scatterlayer .js-line').length"
    before = browser.ask(lines)
    browser.ask("document.querySelector('button[data-group]').click()")
    assert browser.ask("document.querySelectorAll('button[aria-pressed=false]').length") == 3
    browser.wait(f"{lines} === {before - 3}")
    browser.ask("document.querySelector('button[data-group]').click()")
    browser.wait(f"{lines} === {before}")


def test_without_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium"):
        path()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="none of chromium"):
        path()


def test_an_error_would_be_noticed(browser: Browser, report: Path) -> None:
    broken = report.with_name("broken.html")
    broken.write_text("<script>missing()</script><img src='nowhere.png'><script>console.error('so')</script>")
    browser.trouble.clear()
    browser.open(broken, 1280)
    browser.wait("document.readyState === 'complete'")
    assert len(browser.trouble) >= 3
