"""The tables in docs/results, from their records: `python tools/result_tables.py` writes all of them anew.

A mark stands above each table. Without seeds, seed 0 is read.

- `<!-- headline: FOLDER -->`: runs side by side.
- `<!-- significance: FOLDER BASELINE -->`: their differences from one of them.
- `<!-- table1: PRESET PART, 3 seeds -->`: a table of the paper, by its name in `ssil paper`; Table 1 has parts (top1).
- `<!-- claims: PRESET 2-8,13, 3 seeds -->`: the paper's claims.
"""

import re
from pathlib import Path

from ssil.benchmark.results import find_runs
from ssil.cli.claims import claim_numbers
from ssil.reporting.headline_table import headline
from ssil.reporting.sections import sections
from ssil.reporting.significance import significance
from ssil.reproduction.evidence import Evidence
from ssil.reproduction.paper_claims import CLAIMS, check, findings_table
from ssil.reproduction.presets import EQUAL, find_preset
from ssil.reproduction.tables_and_figures import ITEMS

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs/results"
KIND = r"headline|significance|claims|table[\w-]+"
MARKED = re.compile(rf"(<!-- ({KIND}): (\S+)(?: (\S+?))?(?:, (\d) seeds)? -->\n)((?:\|.*\n)*)")


def renewed(page: str) -> str:
    """Return the text of a page with every marked table as its records make it."""
    return MARKED.sub(lambda match: match[1] + _made(match[2], match[3], match[4] or "", int(match[5] or 1)), page)


def _made(kind: str, source: str, part: str, seeds: int) -> str:
    if kind in ("headline", "significance"):
        (section,) = sections(find_runs([ROOT / source]))
        table = headline(section) if kind == "headline" else significance([section], part, ["average_top1"])
        return table.markdown()
    return _claims(source, part, seeds) if kind == "claims" else _paper_table(kind, source, part, seeds)


def _paper_table(name: str, preset: str, part: str, seeds: int) -> str:
    (item,) = (item for item in ITEMS if item.name == name)
    return item.tables(_evidence(preset, seeds))[part].markdown()


def _claims(preset: str, numbers: str, seeds: int) -> str:
    evidence, wanted = _evidence(preset, seeds), claim_numbers(numbers)
    claims = [claim for claim in CLAIMS if claim.number in wanted]
    return findings_table([finding for claim in claims for finding in check(claim, evidence)]).markdown()


def _evidence(name: str, seeds: int) -> Evidence:
    preset = find_preset(name.removesuffix(EQUAL)).varied(equal_images=name.endswith(EQUAL))
    return Evidence(PAGES / "paper", preset, tuple(range(seeds)))


def renew_pages(folder: Path) -> list[Path]:
    """Write the marked tables of all pages below `folder` anew; return the pages that have changed."""
    pages = {path: path.read_text() for path in sorted(folder.rglob("*.md"))}
    changed = {path: text for path, before in pages.items() if (text := renewed(before)) != before}
    for path, text in changed.items():
        path.write_text(text)
    return list(changed)


if __name__ == "__main__":
    for changed_page in renew_pages(PAGES):
        print(changed_page.relative_to(ROOT))
