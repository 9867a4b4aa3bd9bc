"""IL2M: Class Incremental Learning with Dual Memory (Belouadah & Popescu, ICCV 2019)."""

from typing import Literal

import torch
from torch import Tensor

from ssil.core.classes import ClassTable
from ssil.learning.memory import by_class
from ssil.learning.method import Method
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Scorer, TaskState
from ssil.learning.stages import HeadStart, fine_tuning, nonzero, updated_rows
from ssil.nn.network import Output


class Rectified(Scorer):
    """IL2M's Eq. 1: old classes regain the confidence that they had when they were learnt.

    Where the network predicts a new class, the probability of an old class c of task s is multiplied by
    initial_c / current_c * confidence_t / confidence_s. The statistics are the paper's second memory.
    """

    per_class = ("initial", "current")
    initial: Tensor
    """The mean probability of each class for its own images, at the end of the task that brought the class."""
    current: Tensor
    """The same mean now; for an old class it is taken over its exemplars."""
    confidence: Tensor
    """For each task, the mean of the largest probability for its images, at its end."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("initial", "current", "confidence"):
            self.register_buffer(name, torch.empty(0))

    def values(self, logits: Tensor) -> Tensor:
        """The values that are rectified: probabilities."""
        return logits.softmax(1)

    def forward(self, output: Output, classes: ClassTable) -> Tensor:
        """Rectify the values where the largest is a new class's (Eq. 1). They are not normalised."""
        values = self.values(output.logits)
        confidence = self.confidence[-1] / nonzero(self.confidence)[classes.task_of()]
        factors = self.initial / nonzero(self.current) * confidence
        factors[classes.old :] = 1.0
        predicts_new = values.argmax(1, keepdim=True) >= classes.old
        return torch.where(predicts_new, values * factors, values)

    def probabilities(self, scores: Tensor) -> Tensor:
        """The rectified values, normalised."""
        return scores / scores.sum(1, keepdim=True)

    @torch.no_grad()
    def fit(self, state: TaskState) -> None:
        """Compute the statistics over the task's images and the exemplars.

        Under the test transform, as the authors' code does; SS-IL's authors augment.
        """
        labels = state.pool.labels[state.pool.all]
        own, largest = self._evaluate(state, labels)
        means = {label: own[rows].mean() for label, rows in by_class(torch.arange(len(labels)), labels).items()}
        self.current = updated_rows(self.current, means)
        self.initial = torch.cat([self.initial, self.current[state.classes.old :]])
        self.confidence = torch.cat([self.confidence, largest[: len(state.pool.new)].mean().view(1)])

    def _evaluate(self, state: TaskState, labels: Tensor) -> tuple[Tensor, Tensor]:
        """For each image, the value of its own class and the largest value, in chunks to limit the memory used."""
        own, largest = list[Tensor](), list[Tensor]()
        for images, of_class in zip(state.pool.all.split(512), labels.split(512), strict=True):
            values = self.values(state.outputs(images).logits)
            own.append(values[torch.arange(len(values)), of_class])
            largest.append(values.amax(1))
        return torch.cat(own), torch.cat(largest)


class RectifiedLogits(Rectified):
    """IL2M on raw logits, as its authors' code has it: a factor above 1 makes a negative logit more negative."""

    def values(self, logits: Tensor) -> Tensor:
        """The values that are rectified: logits."""
        return logits

    def probabilities(self, scores: Tensor) -> Tensor:
        """The softmax of the rectified logits."""
        return scores.softmax(1)


# FT's schedule: SS-IL, supplement, "FT and IL2M".
@register(paper={"later_epochs": 25}, official={"lr_by_task": True})
def il2m(training: Training, *, scores: Literal["softmax", "raw"] = "softmax", ft_head: HeadStart = "keep") -> Method:
    """IL2M: class-incremental learning with dual memory (Belouadah & Popescu, ICCV 2019): FT, rectified at inference.

    Where the network predicts a new class, old classes regain the confidence they had when they were learnt. The
    training is FT's. Departure from the authors' code: probabilities are rectified, not logits, as in the code of
    SS-IL's authors, because a logit may be negative.

    Args:
        scores: What is rectified: "softmax", or "raw" logits as in the authors' code.
        ft_head: "keep" trains old rows of the head on, as SS-IL's authors' code does; "reset"
            initialises the whole head anew for every task, as IL2M's authors' code does.
    """
    return fine_tuning(training, ft_head, {"softmax": Rectified, "raw": RectifiedLogits}[scores])
