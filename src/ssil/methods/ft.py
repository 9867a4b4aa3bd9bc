"""FT: fine-tuning with exemplars, the baseline of IL2M (Belouadah & Popescu, ICCV 2019)."""

from ssil.learning.method import Method
from ssil.learning.registry import register
from ssil.learning.schedule import Training
from ssil.learning.snapshot import Scorer
from ssil.learning.stages import HeadStart, fine_tuning


# A quarter of the epochs after the first task: SS-IL, supplement, "FT and IL2M".
@register(paper={"later_epochs": 25}, official={"lr_by_task": True})
def ft(training: Training, *, ft_head: HeadStart = "keep") -> Method:
    """FT: fine-tuning on new images and exemplars (baseline of IL2M, Belouadah & Popescu, ICCV 2019).

    Cross-entropy over all classes seen, with no means against the bias to new classes. IL2M (`il2m`) and ScaIL
    (`scail`) train in the same way and differ in their scores alone, so the three can share a run
    (--method ft,il2m,scail).

    Args:
        ft_head: "keep" trains old rows of the head on, as SS-IL's authors' code does; "reset"
            initialises the whole head anew for every task, as IL2M's authors' code does.
    """
    return fine_tuning(training, ft_head, Scorer)
