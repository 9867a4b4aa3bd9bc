"""FT, and what rides on its training: IL2M (Belouadah & Popescu, ICCV 2019), ScaIL (the same, WACV 2020)."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from ssil.core.classes import ClassTable
from ssil.learning.batches import Mixed
from ssil.learning.method import Method, Parts, Phase, Stage, cross_entropy
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.scorers import Rectified, RectifiedLogits, Rescaled
from ssil.learning.snapshot import MAIN, Scorer
from ssil.learning.stages import reset_head
from ssil.nn.heads import LinearHead

Start = Literal["keep", "reset"]
FiveOrMore = Annotated[int, Field(ge=5)]


def _fine_tuned(training: Training, ft_head: Start, scorer: Callable[[], Scorer]) -> Method:
    """One training for all; only the scorer differs."""

    def plan(classes: ClassTable) -> Parts:
        main = Phase("main", cross_entropy, Mixed(training.batch), training.schedule(classes.task))
        return (Stage("reset", reset_head), main) if ft_head == "reset" and classes.old else (main,)

    head = partial(LinearHead, init=training.new_head_init)
    return Method(plan, head, {MAIN: scorer}, chain=("ft", training, ft_head))


@register(paper={"later_epochs": 25}, official={"lr_by_task": True})
def ft(training: Training, *, ft_head: Start = "keep") -> Method:
    """FT: fine-tuning on new images and exemplars (baseline of IL2M, Belouadah & Popescu, ICCV 2019).

    IL2M's original draws the whole head anew for every task (`ft_head` = reset); the code of SS-IL's authors does not.
    """
    return _fine_tuned(training, ft_head, Scorer)


@register(paper={"later_epochs": 25}, official={"lr_by_task": True})
def il2m(training: Training, *, scores: Literal["softmax", "raw"] = "softmax", ft_head: Start = "keep") -> Method:
    """IL2M: class-incremental learning with dual memory (Belouadah & Popescu, ICCV 2019): FT, rectified at inference.

    Where the network sees a new class, old classes regain the confidence they had when they were learnt. The original
    rectifies `raw` logits; SS-IL's authors, and we, the softmax. Statistics are taken under the test transform
    (SS-IL's authors: under augmentation). `ft_head` is FT's.
    """
    return _fine_tuned(training, ft_head, {"softmax": Rectified, "raw": RectifiedLogits}[scores])


@register(paper={"later_epochs": 25}, official={"lr_by_task": True})
def scail(training: Training, *, top_rewound: FiveOrMore | None = 10, ft_head: Start = "keep") -> Method:
    """ScaIL: classifier weights scaling (Belouadah & Popescu, WACV 2020): FT, with old classes' first weights rescaled.

    Follows the paper's formula, not its code's ranks; biases are rescaled as weights are. Only the `top_rewound` old
    classes that FT scores best can be predicted (None: all): five at least, so that there are five best classes.
    `ft_head` is FT's.
    """
    return _fine_tuned(training, ft_head, partial(Rescaled, top_rewound))
