"""A chain and what branches off it."""

import numpy as np

from figure_records import record
from ssil.reporting.figures.branches import branch_curves


def test_from_the_third_task_on() -> None:
    chain = record("ce_gkd", [90, 80, 70, 60])
    branch = record("ce_tkd", [90, 80, 72, 66], {"chain": "ce_gkd"})
    (axes,) = branch_curves({run.label: [run] for run in (chain, branch)}).axes
    assert np.array_equal(axes.lines[0].get_xydata(), [[3, 75], [4, 65]])
    assert np.array_equal(axes.lines[1].get_xydata(), [[3, 77], [4, 71]])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["CE+GKD, the chain", "CE+TKD, branching off CE+GKD"]
