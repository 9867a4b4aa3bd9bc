"""A batch that is trained on in parts gives the gradients of the undivided batch."""

from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_runs
from followed_methods import IMAGES, SETTINGS, plan_for
from ssil.benchmark.record import read_record
from ssil.benchmark.runner import run
from ssil.core.errors import UserError
from ssil.learning.batches import Mixed
from ssil.learning.engine import learn
from ssil.learning.memory import Memory
from ssil.learning.method import Method, Phase, Term
from ssil.learning.registry import recipes
from ssil.learning.schedule import Schedule
from ssil.learning.snapshot import Step
from ssil.nn.heads import LinearHead

EXACT: dict[str, Any] = SETTINGS | {"norm": "group", "precision": "64-true", "batch": 7}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("accumulate") / "patterns.npz", IMAGES)


@pytest.mark.parametrize("method", recipes())
def test_parts_of_a_batch_are_as_good_as_the_batch(method: str, dataset: Path, tmp_path: Path) -> None:
    """Also where a term is over some of the images only; the last of the parts is smaller."""
    for parts in (1, 3):
        run(tiny_runs.config(dataset, **EXACT, method=method, accumulate=parts, out=tmp_path / str(parts)))
    whole, divided = (read_record(tmp_path / parts) for parts in "13")
    assert divided.provenance["accumulate"] == 3
    assert "accumulate" not in whole.provenance
    assert divided.config == whole.config
    for mine, theirs in zip(divided.tasks, whole.tasks, strict=True):
        for phase, losses in theirs.loss.items():
            for part, values in losses.items():
                assert mine.loss[phase][part] == pytest.approx(values, rel=0, abs=1e-9)
    tensors = tiny_runs.tensors(tmp_path / "1")
    for name, tensor in tiny_runs.tensors(tmp_path / "3").items():
        torch.testing.assert_close(tensor, tensors[name], rtol=0, atol=1e-9, equal_nan=True, msg=name)


def test_more_parts_than_images(dataset: Path) -> None:
    record = run(tiny_runs.config(dataset, **EXACT, method="ft", accumulate=100))
    assert record.summary is not None


def test_a_divisor_that_the_labels_do_not_decide_is_refused(dataset: Path) -> None:
    """It can't be foreseen from a part of the batch what it is for the whole batch."""

    def loss(step: Step) -> dict[str, Term]:
        logits = step.output.logits
        sure = logits[:, 0] > logits[0, 0] - 1e-9  # the first of a part, and some others
        return {"ce": Term(logits.square().sum(1), int(sure.sum()))}

    method = Method(lambda _: (Phase("main", loss, Mixed(6), Schedule(2, (0.1,))),), head=LinearHead)
    plan = plan_for("ft", dataset, accumulate=2)
    with pytest.raises(UserError, match=r"^method: the divisor of loss part 'ce' .*; leave --accumulate out$"):
        learn(method, None, Memory(), plan.stream.tasks[0], plan.context)
