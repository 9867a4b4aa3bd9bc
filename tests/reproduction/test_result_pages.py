"""The tables in docs/results are those that their records make (tools/result_tables.py writes them)."""

import re
from pathlib import Path

import pytest

from result_tables import MARKED, PAGES, renew_pages, renewed
from ssil.cli.claims import claim_numbers, file_name

FOUND = [match for page in sorted(PAGES.rglob("*.md")) for match in MARKED.finditer(page.read_text())]


@pytest.mark.parametrize("match", [pytest.param(match, id=match[1].strip()) for match in FOUND])
def test_a_table_is_that_of_its_records(match: re.Match[str]) -> None:
    assert renewed(match[0]) == match[0]


def test_there_are_tables_of_every_kind() -> None:
    kinds = [match[2] for match in FOUND]
    assert all(kinds.count(kind) >= 2 for kind in ("headline", "claims", "table1"))


def test_the_findings_beside_the_records_are_those_of_the_page() -> None:
    for match in FOUND:
        if match[2] == "claims":
            kept = PAGES / "paper" / match[3] / f"{file_name(claim_numbers(match[4]))}.md"
            assert kept.read_text() == match[6]


def test_a_table_that_is_not_its_records_is_written_anew(tmp_path: Path) -> None:
    table = next(match[0] for match in FOUND if match[2] == "headline")
    (tmp_path / "other.md").write_text("| a table | without a mark |\n")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.replace('| 10/10 |', '| 9/10 |', 1)}after\n")
    assert renew_pages(tmp_path) == [page]
    assert page.read_text() == f"before\n{table}after\n"
    assert renew_pages(tmp_path) == []
