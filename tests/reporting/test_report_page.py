"""The report is complete, fetches nothing, and shows names as text."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from report_runs import TRAINING, run
from ssil.benchmark.results import Run
from ssil.reporting.plotly_maps import replay_sizes
from ssil.reporting.report_page import page, replay_tables, tables
from ssil.reporting.sections import sections

PARTS = ("Results", "Accuracy along the stream", "Accuracy on each task", "Bias to new classes", "Forgetting")
EVIL = "</script><img src=x onerror=alert(1)>"


def _evil() -> Run:
    one = run("ssil", options={"note": EVIL}, dataset=EVIL, folder=f"runs/{EVIL}")
    return Run(one.folder, one.record.model_copy(update={"class_names": [EVIL] * 6, "provenance": {"command": EVIL}}))


def test_every_part_of_every_section_is_there() -> None:
    text = page(sections([run("ft"), run("ssil", (90, 80)), run("ft", sizes=(4, 1, 1))]))
    assert all(text.count(f">{title}</h3>") == 2 for title in (*PARTS, "Time and memory", "Protocol"))
    assert text.count('<h2 id="imbalance">') == 1
    assert 'id="replay-sizes"' not in text
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
    assert set(re.findall(r'href="#([^"]+)"', text)) == {"stream-0", "results-0", "protocol-0"}


def test_after_one_task() -> None:
    text = page(sections([run("ft", (90,))]))
    assert "Bias shows from the second task on." in text
    assert 'id="imbalance"' not in text


def test_tables_are_files_too() -> None:
    files = tables(sections([run("ft"), run("ssil", (90, 80, 70))]))
    assert list(files) == ["headline.md", "headline.tex", "headline.csv", "methods.tex"]
    assert "| ssil | 1 | 3/3 | **80.0** |" in files["headline.md"]
    assert r"ssil & 1 & 3/3 & \textbf{80.0} &" in files["headline.tex"]
    assert files["headline.csv"].startswith("stream,variant,seeds,tasks,average_top1,average_top1_deviation,")


def _replay(
    replay: int | None, top1: float, increments: int = 3, sizes: Sequence[int] = (2, 2, 2), **settings: Any
) -> Run:
    options = {"batches": "replay", "replay_batch": replay}
    training = TRAINING | {"increments": increments}
    return run("ssil", (top1,) * len(sizes), sizes, options=options, training=training, **settings)


def test_cells_by_replay_batch_are_means_over_seeds() -> None:
    runs = [_replay(None, 60), _replay(None, 62, seed=1), _replay(16, 50)]
    ((_, records),) = replay_tables(sections(runs))
    (top1,), (top5,) = (replay_sizes(records, k).data for k in (1, 5))
    assert (list(top1.x), list(top1.y)) == (["3"], ["16", "107"])  # one for T = 3: 2.5 * 128 / 3
    assert [list(row) for row in top1.text] == [["50.0"], ["61.0 ± 1.4"]]
    assert [list(row) for row in top5.text] == [["70.0"], ["81.0 ± 1.4"]]


def test_streams_of_another_t_are_columns_of_one_table() -> None:
    runs = [_replay(16, 60), _replay(32, 50), _replay(16, 70, increments=2, sizes=(3, 3))]
    ((_, records),) = replay_tables(sections(runs))
    (top1,) = replay_sizes(records, 1).data
    assert (list(top1.x), [list(row) for row in top1.text]) == (["2", "3"], [["70.0", "60.0"], ["", "50.0"]])


def test_other_settings_and_a_large_base_have_tables_of_their_own() -> None:
    rich: dict[str, Any] = {"memory": {"kind": "fixed", "total": 99}}
    base = [_replay(size, 40, increments=2, sizes=(4, 1, 1)) for size in (16, 32)]
    runs = [_replay(16, 60), _replay(32, 50), _replay(16, 70, **rich), _replay(32, 80, **rich), *base]
    text = page(sections(runs)).partition('<h2 id="replay-sizes">')[2].partition("</section>")[0]
    titles = ["some: ssil, 12 exemplars", "some: ssil, 99 exemplars", "some: ssil, 12 exemplars, large base"]
    assert sorted(re.findall("<h4>(.*?)</h4>", text)) == sorted(titles)
    assert text.count('class="plot"') == 6


@pytest.mark.parametrize(
    "runs",
    [
        [_replay(16, 60), run("ft")],
        [_replay(16, 60), _replay(16, 70, increments=2, sizes=(3, 3))],
        [_replay(16, 60), Run(_replay(32, 50).folder, _replay(32, 50).record.after(2))],
        [run("ssil", options={"batches": "mixed", "replay_batch": size}) for size in (16, 32)],
    ],
    ids=["one run", "T alone", "unfinished", "mixed batches"],
)
def test_without_several_sizes_there_is_no_table(runs: list[Run]) -> None:
    assert replay_tables(sections(runs)) == []
