"""The drawings say what is so."""

from pathlib import Path

from ssil.reporting.figures.diagrams import distillations, separated_softmax
from ssil.reporting.figures.style import save


def test_shares_of_soft_targets() -> None:
    *_, general, by_task = distillations().axes
    shares = [[int(text.get_text().removesuffix(" %")) for text in axes.texts] for axes in (general, by_task)]
    assert sum(shares[0]) == 100 > max(shares[0]) == shares[0][-1] > 50
    assert shares[1] == [100, 100, 100]


def test_the_loss_is_drawn(tmp_path: Path) -> None:
    assert save(separated_softmax(), tmp_path / "loss").stat().st_size < 150_000
