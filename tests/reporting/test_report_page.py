"""The page is whole, needs nothing else, and shows names as text."""

import json
import re

from report_runs import run
from ssil.benchmark.results import Run
from ssil.reporting.report_page import ACROSS, PARTS, page, tables
from ssil.reporting.sections import sections

EVIL = "</script><img src=x onerror=alert(1)>"


def _evil() -> Run:
    made = run("ssil", options={"note": EVIL}, dataset=EVIL, folder=f"runs/{EVIL}")
    return Run(made.folder, made.record.model_copy(update={"class_names": [EVIL] * 6, "provenance": {"command": EVIL}}))


def test_every_part_of_every_section_is_there() -> None:
    text = page(sections([run("ft"), run("ssil", (90, 80)), run("ft", sizes=(4, 1, 1))]))
    assert all(text.count(f">{title}</h3>") == 2 for title in PARTS)
    below = [title for title in ACROSS if f">{title}</h2>" in text]
    assert below == list(ACROSS)[1:]
    targets = set(re.findall(r'href="#([^"]+)"', text))
    assert targets == set(re.findall(r'<h[23] id="([^"]+)"', text))
    assert "<summary>ssil, seed 0, 2 of 3 tasks done " in text


def test_nothing_is_fetched() -> None:
    text = page(sections([run("ft")]))
    ours = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!#|data:)', ours)
    assert text.count("<script>") == 2
    assert len(text.encode()) < 7e6


def test_names_are_text() -> None:
    text = page(sections([_evil(), run("ssil", options={"note": "-"})]))
    assert "<img" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    figures = [json.loads(data) for data in re.findall(r'application/json">(.*?)</script>', text)]
    assert len(figures) == text.count('class="plot"') > 10


def test_a_run_without_a_task_has_its_card_alone() -> None:
    text = page(sections([run("ft", ())]))
    assert "is not finished: 0 of 3 tasks are done." in text
    assert "<summary>ft, seed 0, 0 of 3 tasks done " in text
    assert 'class="plot"' not in text


def test_after_one_task() -> None:
    assert "Bias shows from the second task on." in page(sections([run("ft", (90,))]))


def test_tables_are_files_too() -> None:
    files = tables(sections([run("ft"), run("ssil", (90, 80, 70))]))
    assert list(files) == ["headline.md", "headline.tex", "headline.csv"]
    assert "| ssil | 1 | 3/3 | **80.0** |" in files["headline.md"]
    assert r"ssil & 1 & 3/3 & \textbf{80.0} &" in files["headline.tex"]
    assert files["headline.csv"].startswith("stream,variant,seeds,tasks,average_top1,average_top1_deviation,")
