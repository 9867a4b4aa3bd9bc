"""The tables in docs/results are those that their records make: `<!-- headline: PATH -->` stands above each."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ssil.benchmark.results import find_runs
from ssil.cli.claims import file_name
from ssil.reporting.headline_table import headline
from ssil.reporting.sections import sections
from ssil.reproduction.evidence import Evidence
from ssil.reproduction.paper_claims import CLAIMS, check, findings_table
from ssil.reproduction.presets import EQUAL, find_preset
from ssil.reproduction.tables_and_figures import ITEMS

ROOT = Path(__file__).parents[2]
CORE = (*range(1, 9), 13, 14, 18, 20, 21, 22)
MARKED = [
    pytest.param(path, table, id=path)
    for document in sorted((ROOT / "docs/results").rglob("*.md"))
    for path, table in re.findall(r"<!-- headline: (\S+) -->\n((?:\|.*\n)+)", document.read_text())
]


@pytest.mark.parametrize(("path", "table"), MARKED)
def test_a_table_is_that_of_its_records(path: str, table: str) -> None:
    (section,) = sections(find_runs([ROOT / path]))
    assert table == headline(section).markdown()


def test_there_are_tables() -> None:
    assert len(MARKED) >= 2


def test_table_1_is_that_of_its_records() -> None:
    pages = "".join(page.read_text() for page in sorted((ROOT / "docs/results").glob("*.md")))
    marked = re.findall(r"<!-- table1: (\S+) (\S+)(?:, (\d) seeds)? -->\n((?:\|.*\n)+)", pages)
    (item,) = (item for item in ITEMS if item.name == "table1")
    for name, end, seeds, table in marked:
        preset = find_preset(name.removesuffix(EQUAL)).varied(equal_images=name.endswith(EQUAL))
        tables = item.tables(Evidence(ROOT / "docs/results/paper", preset, tuple(range(int(seeds or 1)))))
        assert table == tables[end].markdown()
    assert len(marked) >= 2


@pytest.mark.parametrize(
    ("name", "seeds", "numbers"),
    [("glyphs", 3, CORE), ("cifar100-full", 1, (*CORE, 10, 15, 19))],
)
def test_the_findings_are_those_of_their_records(name: str, seeds: int, numbers: Sequence[int]) -> None:
    """Also in the page, which has them word for word."""
    evidence = Evidence(ROOT / "docs/results/paper", find_preset(name), tuple(range(seeds)))
    claims = [claim for claim in CLAIMS if claim.number in numbers]
    found = findings_table([finding for claim in claims for finding in check(claim, evidence)]).markdown()
    assert found.strip() in (ROOT / f"docs/results/paper-{name}.md").read_text()
    assert found == (ROOT / f"docs/results/paper/{name}/{file_name({*numbers})}.md").read_text()
