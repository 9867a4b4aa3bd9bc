"""The documentation site: it builds without a warning, and its generated pages say what the package says."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

import pytest

import ssil
from site_browser import served, site_page
from site_docstrings import with_code_blocks
from site_pages import generated_pages, method_page, section, with_inside_links, with_method_links, with_sections
from ssil.learning.registry import recipes
from studio_browser import violations

ROOT = Path(__file__).parents[2]


class Links(HTMLParser):
    """The targets of links, images, styles and scripts, and the identifiers of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets, self.identifiers = set[str](), set[str]()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.targets.add(value)
            if name == "id" and value:
                self.identifiers.add(value)


@pytest.fixture(name="site", scope="module")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_link_of_the_site_leads_to_a_page_of_it(site: Path) -> None:
    pages = {page: Links(page) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 60
    outside = {target for links in pages.values() for target in links.targets if target.startswith("http")}
    assert not [target for target in outside if re.search(r"\.(js|css|woff2?)$|fonts\.|cdn", target)]
    broken = [
        f"{page.relative_to(site)}: {target}"
        for page, links in pages.items()
        for target in links.targets
        if not re.match(r"https?:|mailto:|data:|#|\.$", target)
        if not (page.parent / target.partition("#")[0].partition("?")[0]).exists()
    ]
    assert not broken


@pytest.mark.slow
def test_search_finds_every_method(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text()
    assert [name for name in recipes() if f"methods/{name}.html" not in index] == []


LOOKED_AT = (
    "index.html",
    "classifier.html",
    "comparing.html",
    "own-method.html",
    "own-backbone.html",
    "own-stream.html",
    "data.html",
    "methods/ssil.html",
    "notebooks/comparing.html",
    "results/index.html",
    "api.html",
)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "colours"), [(1280, "light"), (390, "light"), (390, "dark")])
def test_pages_are_accessible_and_fit(site: Path, width: int, colours: Literal["light", "dark"]) -> None:
    """No violation that axe knows of, and no page that must be scrolled sideways."""
    with served(site) as address, site_page(width, colours) as page:
        for name in LOOKED_AT:
            page.goto(f"{address}/{name}", wait_until="networkidle")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            assert violations(page) == [], name


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_a_reader_searches(site: Path, width: int) -> None:
    with served(site) as address, site_page(width, "light") as page:
        page.goto(f"{address}/index.html", wait_until="networkidle")
        if width < 600:
            page.locator("label.md-header__button[for=__search]").click()
        box = page.get_by_role("textbox", name="Search")
        box.fill("herdin")  # not letter by letter: the results for the first ones might be there, and be clicked
        box.press("g")
        page.locator(".md-search-result__link").first.click()
        page.wait_for_url(lambda found: "index.html" not in found)
        assert "herding" in page.locator("article").inner_text().lower()


def test_every_method_has_a_page_with_its_options() -> None:
    pages = generated_pages()
    for name, recipe in recipes().items():
        assert all(f"`{option}`" in pages[f"methods/{name}.md"] for option in recipe.options)
        assert f"[`{name}`]({name}.md)" in pages["methods/index.md"]


def test_the_interface_has_every_public_class_and_function() -> None:
    page = generated_pages()["api.md"]
    documented = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: ")}
    assert {*ssil.__all__} - documented == {"MAIN", "__version__"}


def test_the_plan_of_a_method_is_drawn_in_order() -> None:
    drawing = method_page("eeil")
    assert 'aria-label="main: 40 epochs, then balanced: 30 epochs, then head: scores the classes' in drawing


def test_a_section_ends_at_the_next_heading_of_its_level() -> None:
    text = "# A\n\n## B\n\none\n\n```sh\n# no heading\n```\n\n### C\n\ntwo\n\n## D\n\nthree\n"
    assert section(text, "B") == "one\n\n```sh\n# no heading\n```\n\n### C\n\ntwo"
    with pytest.raises(KeyError):
        section(text, "E")


def test_sections_of_the_readme_are_filled_in() -> None:
    assert "make demo" in with_sections('<!-- section: README.md "Two commands" -->')
    assert "](docs/" not in with_sections('<!-- section: README.md "Compare" -->')


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("paper.md", "[read](../README.md)", "[read](index.md)"),
        ("results/a.md", "[read](../../CONTRIBUTING.md#x)", "[read](../own-method.md)"),
        ("results/a.md", "[read](../paper.md)", "[read](../paper.md)"),
        ("paper.md", "[code](../src/ssil/cli/run.py)", "code (`src/ssil/cli/run.py`)"),
    ],
)
def test_links_to_files_outside_become_links_inside(page: str, link: str, expected: str) -> None:
    assert with_inside_links(link, page) == expected


def test_examples_become_code() -> None:
    assert (
        with_code_blocks("A.\n\n>>> f(\n...     1)\n[2]\n\nB.") == "A.\n\n```pycon\n>>> f(\n...     1)\n[2]\n```\n\nB."
    )


def test_a_methods_page_shows_its_file_and_other_pages_link_to_it() -> None:
    assert "## The file\n\n`methods/rehearsal.py`:\n\n```python\n" in method_page("er")
    assert (
        with_method_links("see `methods/lwf.py`", "own-method.md") == "see [`methods/lwf.py`](methods/lwf.md#the-file)"
    )
    assert with_method_links("`methods/lwf.py`", "adr/a.md") == "[`methods/lwf.py`](../methods/lwf.md#the-file)"
    assert with_method_links("`methods/none.py`", "paper.md") == "`methods/none.py`"
