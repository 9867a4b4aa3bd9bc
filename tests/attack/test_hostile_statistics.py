"""Models whose weights are sums of features, with sums that can't be: refused in one line, never a wrong model."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from attacked import TRUST, fresh, seal
from command_lines import Answer, CommandLines, contents
from ssil.core.files import checksum

pytestmark = pytest.mark.slow

METHODS = {
    "slda": ("slda",),
    "ncm": ("ncm",),
    "fecam": ("fecam",),
    "fecam, full": ("fecam", "--option", "covariance=full"),
    "ranpac": ("ranpac", "--option", "width=12"),
}
MEMORY = 16 << 30
WEIGHTS = "versions/0002/weights.safetensors"

Statistics = dict[str, Tensor]


def forge(folder: Path, change: Callable[[Statistics], object]) -> None:
    """Change the statistics of a model's current version, with the right checksums; let PyTorch predict by them."""
    tensors = safetensors.torch.load((folder / WEIGHTS).read_bytes())
    start = "scorer.main/"
    statistics = {name.removeprefix(start): tensors.pop(name) for name in [*tensors] if name.startswith(start)}
    change(statistics)
    data = safetensors.torch.save(tensors | {start + name: value for name, value in statistics.items()})
    (folder / WEIGHTS).write_bytes(data)
    path = folder / "versions" / "0002" / "model.json"
    said = json.loads(path.read_text())
    seal(path, {key: said[key] for key in said if key not in ("checksum", "onnx")} | {"weights": checksum(data)})


def filled(name: str, value: float) -> Callable[[Statistics], object]:
    """Return a change of the last value of a tensor."""
    return lambda known: known[name].view(-1)[-1:].fill_(value)


def shaped(name: str, *shape: int) -> Callable[[Statistics], object]:
    """Return a change of a tensor to zeros of another shape."""
    return lambda known: known.update({name: torch.zeros(shape, dtype=known[name].dtype)})


IMPOSSIBLE: dict[str, Callable[[Statistics], object]] = {
    "a sum of NaN": filled("sums", torch.nan),
    "an infinite sum": filled("sums", -torch.inf),
    "a negative count": filled("counts", -3),
    "a huge count": filled("counts", 2**62),
    "fewer images than counts": filled("images", 0),
    "negative images": filled("images", -1),
    "counts of no dimension": shaped("counts"),
    "counts of one dimension": shaped("counts", 3),
    "counts of no class": shaped("counts", 2, 0),
    "counts of a class more": shaped("counts", 2, 4),
    "counts of a class less": lambda known: known.update(counts=known["counts"][:, :2].contiguous()),
    "statistics of a class less": lambda known: known.update(
        counts=known["counts"][:, :2].contiguous(), sums=known["sums"][:, :2].contiguous()
    ),
    "counts of 10^12 classes": shaped("counts", 0, 10**12),
    "sums of 10^12 classes": shaped("sums", 2, 10**12, 0),
    "sums of another width": lambda known: known.update(sums=known["sums"][..., 1:].contiguous()),
    "sums of no class": shaped("sums", 2, 0, 0),
    "Gram matrices of 10^7 values": shaped("grams", 2, 10**7),
    "Gram matrices of no dimension": shaped("grams"),
    "images of three parts": shaped("images", 3),
    "images of no dimension": shaped("images"),
    "no counts": lambda known: known.pop("counts"),
    "no statistics": lambda known: known.clear(),
}
UNLIKELY: dict[str, Callable[[Statistics], object]] = {
    "a negative Gram matrix": lambda known: known["grams"].neg_(),
    "a Gram matrix of zeros": lambda known: known["grams"].zero_(),
    "a huge Gram matrix": lambda known: known["grams"].fill_(1e300),
    "huge sums": lambda known: known["sums"].fill_(-1e300),
    "sums of zeros": lambda known: known["sums"].zero_(),
    "weights of zeros": lambda known: [value.zero_() for name, value in known.items() if value.is_floating_point()],
    "more images than counts": filled("images", 2**62),
}
"""What a sum of features could hardly be, but is not refused where it is not used."""


def used(ssil: CommandLines, folder: Path, photos: Path, use: str) -> Answer:
    more: dict[str, tuple[object, ...]] = {
        "learn": (photos / "third",),
        "predict": (photos / "first", "--csv"),
        "forget": ("bee",),
        "verify": (),
    }
    return ssil(use, folder, *more[use], *TRUST, seconds=30.0, memory_limit=MEMORY)


CASES = [
    *((use, case) for case in IMPOSSIBLE for use in ("learn", "predict", "forget", "verify")),
    *((use, case) for case in UNLIKELY for use in ("learn", "predict", "forget")),
]


@pytest.mark.parametrize(("use", "case"), CASES)
@pytest.mark.parametrize("method", METHODS)
def test_hostile_statistics_end_in_one_line(
    ssil: CommandLines,
    closed_form_models: Callable[..., Path],
    photos: Path,
    tmp_path: Path,
    method: str,
    case: str,
    use: str,
) -> None:
    """What cannot be is refused, and nothing is changed; what is only unlikely may be used."""
    folder = fresh(closed_form_models(*METHODS[method]), tmp_path / "model")
    forge(folder, {**IMPOSSIBLE, **UNLIKELY}[case])
    before = contents(folder)
    answer = used(ssil, folder, photos, use)
    assert not answer.hangs
    assert not answer.crashed, answer.err[-1500:]
    unchanged = answer.refused and contents(folder) == before
    assert unchanged or (case in UNLIKELY and answer.code == 0), (answer.code, answer.out[-300:], answer.err[-300:])
