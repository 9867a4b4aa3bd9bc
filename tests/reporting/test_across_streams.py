"""What lies across streams: a table of N_M by T from runs that differ in nothing else, and a toy."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from report_runs import TRAINING, run
from ssil.benchmark.results import Run
from ssil.reporting import across_streams
from ssil.reporting.figures.toy import LOSSES, descend, stream
from ssil.reporting.sections import sections


def _run(
    replay: int | None, top1: float, increments: int = 3, sizes: Sequence[int] = (2, 2, 2), **settings: Any
) -> Run:
    options = {"batches": "replay", "replay_batch": replay}
    training = TRAINING | {"increments": increments}
    return run("ssil", (top1,) * len(sizes), sizes, options=options, training=training, **settings)


def _figures(text: str) -> list[dict[str, Any]]:
    return [json.loads(data) for data in re.findall(r'application/json">(.*?)</script>', text)]


def test_cells_are_means_over_seeds() -> None:
    runs = [_run(None, 60), _run(None, 62, seed=1), _run(16, 50)]
    top1, top5 = (figure["data"][0] for figure in _figures(across_streams.replay_sizes(sections(runs))))
    assert (top1["x"], top1["y"]) == (["3"], ["16", "107"])  # usual for T = 3: 2.5 * 128 / 3
    assert top1["text"] == [["50.0"], ["61.0 ± 1.4"]]
    assert top5["text"] == [["70.0"], ["81.0 ± 1.4"]]


def test_streams_of_another_t_are_columns_of_one_table() -> None:
    runs = [_run(16, 60), _run(32, 50), _run(16, 70, increments=2, sizes=(3, 3))]
    top1, _ = (figure["data"][0] for figure in _figures(across_streams.replay_sizes(sections(runs))))
    assert (top1["x"], top1["text"]) == (["2", "3"], [["70.0", "60.0"], ["", "50.0"]])


def test_other_settings_and_a_large_base_have_tables_of_their_own() -> None:
    rich: dict[str, Any] = {"memory": {"kind": "fixed", "total": 99}}
    base = [_run(size, 40, increments=2, sizes=(4, 1, 1)) for size in (16, 32)]
    runs = [_run(16, 60), _run(32, 50), _run(16, 70, **rich), _run(32, 80, **rich), *base]
    text = across_streams.replay_sizes(sections(runs))
    titles = ["some: ssil, 12 exemplars", "some: ssil, 99 exemplars", "some: ssil, 12 exemplars, large base"]
    assert sorted(re.findall("<h4>(.*?)</h4>", text)) == sorted(titles)
    assert len(_figures(text)) == 6


@pytest.mark.parametrize(
    "runs",
    [
        [_run(16, 60), run("ft")],
        [_run(16, 60), _run(16, 70, increments=2, sizes=(3, 3))],
        [_run(16, 60), Run(_run(32, 50).folder, _run(32, 50).record.after(2))],
        [run("ssil", options={"batches": "mixed", "replay_batch": size}) for size in (16, 32)],
    ],
    ids=["one run", "T alone", "unfinished", "mixed batches"],
)
def test_without_several_sizes_there_is_no_table(runs: list[Run]) -> None:
    assert across_streams.replay_sizes(sections(runs)) == ""


def test_the_toy_is_that_of_the_figure() -> None:
    drawn = _figures(across_streams.toy(sections([run("ft")])))
    samples = stream(rounds=6, new=8)
    for figure, loss in zip(drawn, LOSSES.values(), strict=True):
        lines = torch.tensor([line["y"] for line in figure["data"]]).T
        torch.testing.assert_close(lines, descend(loss, samples))
        assert len(figure["layout"]["shapes"]) == 6
    assert drawn[0]["layout"]["yaxis"]["range"] == drawn[1]["layout"]["yaxis"]["range"]


def test_before_a_second_task_there_is_no_bias_to_explain() -> None:
    assert across_streams.toy(sections([run("ft", (90,))])) == ""
