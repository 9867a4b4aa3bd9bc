"""A loss's terms over a batch that is divided: each sum is divided by what the whole batch's would be."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from ssil.core.errors import UserError
from ssil.learning import processes
from ssil.learning.execution import ExecutionContext
from ssil.learning.method import Loss, Term
from ssil.learning.snapshot import Step, TeacherOutput
from ssil.nn.network import Output

Terms = Mapping[str, Term]


def checked(terms: Terms) -> Terms:
    """The terms, if they are."""
    if strange := [name for name, term in terms.items() if not isinstance(term, Term)]:
        raise UserError(f"method: loss part {strange[0]!r} is no Term; return ssil.method.mean(values, one a sample)")
    return terms


def divisors(terms: Terms) -> dict[str, int]:
    """What each term is to be divided by."""
    return {name: term.divisor for name, term in terms.items()}


@torch.no_grad()
def foreseen(loss: Loss, step: Step, labels: Tensor) -> dict[str, int]:
    """The divisors for a batch of these labels, of which `step` is a part: what the network says has no say in them."""
    labels = labels.to(step.labels.device)
    views = {
        name: TeacherOutput(_spread(view.output, labels), _rows(view.scores, labels))
        for name, view in step.teachers.items()
    }
    return divisors(loss(replace(step, labels=labels, output=_spread(step.output, labels), teachers=views)))


def _spread(output: Output, labels: Tensor) -> Output:
    """An output for each label, all alike; of stage maps a single pixel, for whole ones would take much room."""
    stages = tuple(_rows(stage[..., :1, :1], labels) for stage in output.stages)
    return Output(_rows(output.logits, labels), _rows(output.features, labels), stages)


def _rows(values: Tensor, labels: Tensor) -> Tensor:
    return values[:1].expand(len(labels), *values.shape[1:])


def refuse_surprises(left: Mapping[str, int]) -> None:
    """Refuse a loss of which the parts' divisors are not together what was foreseen for the whole batch."""
    if odd := [name for name, count in left.items() if count]:
        what = f"the divisor of loss part {odd[0]!r} depends on more than the labels"
        raise UserError(f"method: {what}, which can't be known of a batch in parts; leave --accumulate out")


def factors(divisors: Mapping[str, int], context: ExecutionContext) -> dict[str, float]:
    """One over each divisor in all processes, times the processes: DDP takes the mean of their gradients."""
    totals = processes.total(context.fabric, divisors.values())
    return {name: context.fabric.world_size / max(total, 1) for name, total in zip(divisors, totals, strict=True)}
