"""Pages of the documentation site that are made from other files; mkdocs calls the functions `on_...`.

A page of each method comes from the registry, the page of the interface from `ssil.__all__`, pages of notebooks from
`notebooks/`, and a line `<!-- section: README.md "Compare" -->` is replaced by that section of the README or of
CONTRIBUTING.md. So nothing is written twice, and the site can't lag behind.
"""

import inspect
import re
from html import escape
from itertools import zip_longest
from pathlib import Path
from posixpath import relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import ssil
from notebook_pages import notebook_pages
from ssil.core.classes import ClassTable
from ssil.core.randomness import Randomness
from ssil.learning.batches import Pool
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Stage
from ssil.learning.method_facts import default_text, described, needs_of, needs_text, settings_by_profile, type_text
from ssil.learning.registry import PROFILES, Recipe, configure, find_recipe, recipes
from ssil.learning.schedule import Schedule
from ssil.learning.snapshot import MAIN, Scorer, Snapshot, TeacherOutput
from ssil.nn.heads import Head
from ssil.nn.network import Network

ROOT = Path(__file__).parents[1]
SECTION = re.compile(r'<!-- section: (\S+) "([^"]+)" -->')
TESTS = re.compile(r"<!-- test: [^>\n]+ -->\n")
FROZEN = ("ncm", "slda", "fecam", "ranpac")
"""Methods that train nothing, and need a pretrained network."""
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "own-method.md", "CHANGELOG.md": "index.md"}
"""Files outside docs/ that pages link to, and the pages with their content."""
PASSED = (Head, Memory, Network, Pool, Randomness, Schedule, Snapshot, TeacherOutput)
"""Types that the interface passes to a method's functions, and that need not be imported."""
NavItem = str | dict[str, str]
"""A page, a folder of pages, or a page with a title."""


def section(text: str, title: str) -> str:
    """Return the part of a Markdown text under a heading, up to the next heading of the same or a higher level.

    Raises:
        KeyError: There is no such heading.
    """
    lines, level, found, code = text.splitlines(), 0, list[str](), False
    for line in lines:
        code ^= line.startswith("```")
        heading = None if code else re.match(r"(#+) (.*)", line)
        if level and heading and len(heading[1]) <= level:
            break
        if level:
            found.append(line)
        elif heading and heading[2] == title:
            level = len(heading[1])
    if not level:
        raise KeyError(title)
    return "\n".join(found).strip()


def with_sections(markdown: str) -> str:
    """Replace the lines that ask for a section of a file outside docs/."""

    def included(asked: re.Match[str]) -> str:
        level = max((len(found) for found in re.findall(r"(?m)^(#+) ", markdown[: asked.start()])[-1:]), default=1)
        text = section((ROOT / asked[1]).read_text(), asked[2])
        return re.sub(r"\]\(docs/", "](", with_headings_below(text, level))

    return SECTION.sub(included, markdown)


def with_headings_below(text: str, level: int) -> str:
    r"""Return a section whose highest headings are one level below `level`; code stays as it is.

    >>> with_headings_below("### A\n#### B", level=1)
    '## A\n### B'
    """
    blocks = re.split(r"(?ms)(^```.*?^```$)", text)
    highest = min((len(found) for block in blocks[::2] for found in re.findall(r"(?m)^(#+) ", block)), default=0)
    moved = (
        re.sub(r"(?m)^#+(?= )", lambda mark: "#" * (len(mark[0]) - highest + level + 1), one) for one in blocks[::2]
    )
    return "".join(part for pair in zip_longest(moved, blocks[1::2], fillvalue="") for part in pair)


def with_inside_links(markdown: str, page: str) -> str:
    """Replace links to files outside docs/: by links to the pages with their content, or by the name alone."""
    up = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+)([^)#]+)(#[^)]*)?\)")

    def replaced(link: re.Match[str]) -> str:
        depth = len(link[2]) // 3
        if depth <= page.count("/"):
            return link[0]
        target = OUTSIDE.get(link[3])
        return f"[{link[1]}]({relpath(target, str(Path(page).parent))})" if target else f"{link[1]} (`{link[3]}`)"

    return up.sub(replaced, markdown)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace `FOLDER/` in the navigation by the pages of that folder, the index first."""
    config.nav = [{title: _expanded(pages) for title, pages in group.items()} for group in config.nav or []]
    return config


def _expanded(pages: str | list[NavItem]) -> list[NavItem]:
    asked = [pages] if isinstance(pages, str) else pages
    return [
        page for one in asked for page in (folder_pages(one) if isinstance(one, str) and one.endswith("/") else [one])
    ]


def folder_pages(folder: str) -> list[str]:
    """Return the pages of a folder of docs/, written and generated, in the order of the navigation."""
    written = [str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs" / folder).glob("*.md")]
    found = {*written, *(path for path in generated_pages() if path.startswith(folder))}
    return sorted(found, key=lambda path: (Path(path).stem not in ("index", "README"), path))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, content in {**generated_pages(), **notebook_pages()}.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Fill in sections, mend links and remove the marks of tests."""
    whole = with_inside_links(with_sections(markdown), page.file.src_uri)
    return with_method_links(TESTS.sub("", whole), page.file.src_uri)


def generated_pages() -> dict[str, str]:
    """Return the text of every generated page by its path."""
    known = recipes()
    pages = {f"methods/{name}.md": method_page(name) for name in known}
    lines = [f"- [`{name}`]({name}.md): {recipe.summary}" for name, recipe in known.items()]
    return {"methods/index.md": "\n".join(["# Methods", "", *lines, ""]), **pages, "api.md": interface_page()}


def interface_page() -> str:
    """Return the page of the interface: everything in `ssil.__all__`, from where it is defined."""
    lines = ["# Interface", "", "What `from ssil import ...` offers, and what is checked for your own methods.", ""]
    for name in sorted(ssil.__all__, key=str.lower):
        found: Any = getattr(ssil, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            lines += [f"::: {found.__module__}.{found.__qualname__}", ""]
        elif inspect.ismodule(found):
            lines += [f"::: {found.__name__}", ""]
    below = "    options:\n      heading_level: 3\n"
    lines += ["::: ssil.testing.check_runner.check_method", "", "## Types that are passed to your functions", ""]
    return "\n".join([*lines, *(f"::: {kind.__module__}.{kind.__qualname__}\n{below}" for kind in PASSED)])


def method_page(name: str) -> str:
    """Return the page of a method: its docstring, plan, needs, options and settings."""
    recipe = find_recipe(name)
    text, meanings = described(inspect.getdoc(recipe.build) or "")
    parts = [f"# {name}", escape(text, quote=False), f"**Needs:** {needs_text(recipe)}."]
    if needs_of(recipe):
        parts += ["## Plan of a later task", plan_figure(recipe)]
    rows = [
        [f"`{option}`", type_text(kind), default_text(default), meanings.get(option, "")]
        for option, (kind, default) in recipe.options.items()
    ]
    if rows:
        parts += ["## Options", table(["option", "type", "default", "meaning"], rows)]
    settings = [[f"`{key}`", *map(str, row)] for key, row in settings_by_profile(recipe).items()]
    if settings:
        parts += ["## Settings", table(["setting", *(f"{profile} profile" for profile in PROFILES)], settings)]
    parts += ["## Try it", f"```sh\n{example(name)}\n```"]
    return "\n\n".join([*parts, "## The file", f"`{method_file(recipe)}`:", f"```python\n{source(recipe)}\n```", ""])


def method_file(recipe: Recipe) -> str:
    """Return the path of the file with the recipe, as the guide to methods names it."""
    return f"methods/{Path(inspect.getsourcefile(recipe.build) or '').name}"


def source(recipe: Recipe) -> str:
    """Return the text of the file with the recipe."""
    return Path(inspect.getsourcefile(recipe.build) or "").read_text().strip()


def with_method_links(markdown: str, page: str) -> str:
    """Turn the names of methods' files, such as `methods/eeil.py`, into links to the pages that show them."""
    homes = {method_file(recipe): name for name, recipe in reversed(recipes().items())}

    def linked(found: re.Match[str]) -> str:
        target = f"methods/{homes[found[1]]}.md" if found[1] in homes else ""
        return f"[`{found[1]}`]({relpath(target, str(Path(page).parent))}#the-file)" if target else found[0]

    return re.sub(r"`(methods/\w+\.py)`(?!:)", linked, markdown)


def example(name: str) -> str:
    """Return a command that runs the method on a small stream."""
    frozen = " --init efficientnet_lite0 --freeze" if name in FROZEN else " --backbone resnet14"
    return f"ssil run --dataset digits --method {name} --tasks 5 --memory 50 --profile quick{frozen}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; a stroke in a cell is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def plan_figure(recipe: Recipe) -> str:
    """Return the plan of a later task under the paper's settings as a drawing: one box per phase or stage."""
    method = configure(recipe.name, "paper", increments=10).method
    boxes = [_box(part) for part in method.plan(ClassTable(("?",) * 4, (0, 2, 4)))]
    boxes.append((scorer_name(method), "scores the classes"))
    if method.memory == "budget":
        boxes.append(("memory", "chooses exemplars"))
    width, height, gap = 150, 56, 28
    drawn = [_drawn(place * (width + gap), width, height, *box) for place, box in enumerate(boxes)]
    arrows = [_arrow(place * (width + gap) - gap, height / 2, gap) for place in range(1, len(boxes))]
    whole, label = len(boxes) * (width + gap) - gap, ", then ".join(f"{title}: {text}" for title, text in boxes)
    size = f'width="{whole}" height="{height + 2}" viewBox="-1 -1 {whole + 2} {height + 2}"'
    drawing = f'<svg role="img" aria-label="{escape(label)}" {size} font-size="13">{"".join(drawn + arrows)}</svg>'
    return f'<div class="plan" tabindex="0">{drawing}</div>'


def _arrow(x: float, y: float, length: float) -> str:
    path = f"M{x + 3} {y} h{length - 8} m-5 -4 l5 4 l-5 4"
    return f'<path d="{path}" fill="none" stroke="currentColor"/>'


def _box(part: Phase | Stage) -> tuple[str, str]:
    if isinstance(part, Stage):
        return part.name, "no gradient steps"
    what = {"network": "", "head": ", head only", "scorer": ", scorer only"}[part.trained]
    return part.name, f"{part.schedule.epochs} epochs{what}"


def scorer_name(method: Method) -> str:
    """Return what turns the network's output into scores."""
    found = type(method.scorers[MAIN]())
    return "head" if found is Scorer else found.__name__


def _drawn(x: int, width: int, height: int, title: str, text: str) -> str:
    middle = x + width / 2
    return (
        f'<rect x="{x}" y="0" width="{width}" height="{height}" rx="6" fill="none" stroke="currentColor"/>'
        f'<text x="{middle}" y="23" text-anchor="middle" fill="currentColor" font-weight="bold">{escape(title)}</text>'
        f'<text x="{middle}" y="42" text-anchor="middle" fill="currentColor">{escape(text)}</text>'
    )
