"""The illustrations show what the equations give."""

from pathlib import Path

import pytest
import torch

from ssil.reporting.figures.illustrations import (
    LOSSES,
    descend,
    distillations,
    imbalanced_steps,
    imbalanced_stream,
    separated_softmax,
)
from ssil.reporting.figures.style import save

ONE, SEPARATED = LOSSES.values()
SAMPLES = imbalanced_stream(rounds=6, new=8)
NEW = torch.tensor(SAMPLES) >= 2


def test_the_first_step_by_hand() -> None:
    """Scores (0.5, 0.5, 0, 0) and a sample of class 2: p - y is (p, p, q - 1, q), p = e^0.5 / (2 e^0.5 + 2)."""
    after = descend(ONE, [2])[1]
    p = 0.5 * torch.e**0.5 / (torch.e**0.5 + 1)
    assert after.tolist() == pytest.approx([0.5 - 0.2 * p, 0.5 - 0.2 * p, 0.2 * (0.5 + p), -0.2 * (0.5 - p)])
    assert descend(SEPARATED, [2])[1].tolist() == pytest.approx([0.5, 0.5, 0.1, -0.1])


def test_old_scores_fall_under_one_softmax() -> None:
    path = descend(ONE, SAMPLES)
    assert (path.diff(dim=0)[NEW, :2] < 0).all()
    ends = path[::9, :2].mean(1)
    assert (ends.diff() < 0).all()
    assert ends[-1] < path[-1, 2:].mean()


def test_separated_scores_do_not_move_on_samples_of_the_other_side() -> None:
    steps = descend(SEPARATED, SAMPLES).diff(dim=0)
    assert (steps[NEW, :2] == 0).all()
    assert (steps[~NEW, 2:] == 0).all()
    assert (steps[NEW, 2:] != 0).all()


def test_both_are_drawn_to_one_scale() -> None:
    left, right = imbalanced_steps(rounds=2, new=3).axes
    assert left.get_ylim() == right.get_ylim()
    assert torch.equal(torch.as_tensor(left.lines[0].get_ydata()), descend(ONE, imbalanced_stream(2, 3))[:, 0])


def test_shares_of_soft_targets() -> None:
    *_, general, by_task = distillations().axes
    shares = [[int(text.get_text().removesuffix(" %")) for text in axes.texts] for axes in (general, by_task)]
    assert sum(shares[0]) == 100 > max(shares[0]) == shares[0][-1] > 50
    assert shares[1] == [100, 100, 100]


def test_the_loss_is_drawn(tmp_path: Path) -> None:
    assert save(separated_softmax(), tmp_path / "loss").stat().st_size < 150_000
