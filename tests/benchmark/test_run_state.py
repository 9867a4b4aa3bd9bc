"""A checkpoint that does not fit its run is refused in one line, even if its checksums are right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny_runs
from ssil.benchmark.checkpoint import Checkpoints
from ssil.benchmark.runner import run
from ssil.core.errors import UserError

Parts = dict[str, dict[str, Tensor]]
Change = Callable[[dict[str, Any], Parts], object]


def lacking(key: str, *more: str) -> Change:
    """Return a function that takes a key out of the JSON, or a part out of the tensors."""

    def change(meta: dict[str, Any], parts: Parts) -> None:
        place: dict[str, Any] = meta if key in meta else parts
        (place[key] if more else place).pop(*more or (key,))

    return change


CHANGES: dict[str, Change] = {
    **{f"without {key}": lacking(key) for key in ("tasks_done", "memory_counts", "snapshot", "memory")},
    **{
        f"progress without {key}": lacking("progress", key)
        for key in ("phase", "epoch", "step", "images", "losses", "seconds")
    },
    "another key": lambda meta, _: meta.update(colour="red"),
    "more tasks done": lambda meta, _: meta.update(tasks_done=2),
    "too many tasks done": lambda meta, _: meta.update(tasks_done=9),
    "negative tasks done": lambda meta, _: meta.update(tasks_done=-1),
    "text for tasks done": lambda meta, _: meta.update(tasks_done="one"),
    "huge tasks done": lambda meta, _: meta.update(tasks_done=10**30),
    "another phase": lambda meta, _: meta["progress"].update(phase=7),
    "text for losses": lambda meta, _: meta["progress"].update(losses="few"),
    "fewer memory counts": lambda meta, _: meta.update(memory_counts=meta["memory_counts"][:1]),
    "too large memory counts": lambda meta, _: meta.update(memory_counts=[10**12]),
    "exemplars beyond the images": lambda _, parts: parts["memory"]["indices"].add_(10**6),
    "exemplars before the images": lambda _, parts: parts["memory"]["indices"].sub_(10**6),
    "exemplars of other classes": lambda _, parts: parts["memory"].update(indices=parts["memory"]["indices"].flip(0)),
    "values stored with other exemplars": lambda _, parts: parts["memory"].update({"stored/logits": torch.zeros(1, 2)}),
    "weights of another shape": lambda _, parts: parts["snapshot"].update(
        {name: torch.zeros(1) for name in parts["snapshot"]}
    ),
    "momentum of another shape": lambda _, parts: parts["progress"].update(
        {name: torch.zeros(3, 7) for name in parts["progress"] if name.startswith("momentum/")}
    ),
    "no weights": lambda _, parts: parts["progress"].clear(),
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, and a run that was stopped in its second task."""
    folder = tmp_path_factory.mktemp("stopped")
    data = tiny_runs.patterns(folder / "patterns.npz", [5] * 6)
    with pytest.raises(KeyboardInterrupt):
        run(tiny_runs.config(data, tasks=3, memory=9, out=folder / "run"), tiny_runs.Stopper(6))
    return folder


@pytest.mark.parametrize("name", CHANGES)
def test_a_sealed_checkpoint_that_does_not_fit(name: str, stopped: Path) -> None:
    checkpoints = Checkpoints(stopped / "run" / "checkpoint")
    (meta, parts), (before, tensors) = checkpoints.load(), checkpoints.load()
    try:
        CHANGES[name](meta, parts)
        checkpoints.save(meta, parts)
        with pytest.raises(
            UserError, match=r"^checkpoint: .*state\.json does not fit this run \(.*\); start again"
        ) as no:
            run(tiny_runs.config(stopped / "patterns.npz", tasks=3, memory=9, out=stopped / "run"))
        assert "\n" not in str(no.value)
    finally:
        checkpoints.save(before, tensors)
