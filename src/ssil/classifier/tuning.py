"""Training a part of a network: its last stage and its head, or all of it."""

from dataclasses import replace

from ssil.classifier.classifier_settings import ClassifierSettings
from ssil.core.classes import ClassTable
from ssil.core.errors import UserError
from ssil.learning.method import Method, Phase, TaskPlan
from ssil.nn.network import Network


def tuned_method(settings: ClassifierSettings, network: Network) -> Method:
    """Return the settings' method, whose phases train only what `settings.tune` says of the network.

    Raises:
        UserError: Only the last stage is to be trained, and the backbone has no stages, or the method adds branches.
    """
    method = settings.configured().method
    if settings.tune != "last":
        return method
    if method.branches:
        raise UserError(
            f"tune: {settings.method} decides itself which parts of its branches it trains; give --tune all"
        )
    frozen = _before_last_stage(settings.backbone, network)

    def plan(classes: ClassTable) -> TaskPlan:
        return tuple(
            replace(part, frozen=(*part.frozen, *frozen))
            if isinstance(part, Phase) and part.trained == "network"
            else part
            for part in method.plan(classes)
        )

    return replace(method, plan=plan)


def _before_last_stage(name: str, network: Network) -> tuple[str, ...]:
    """Return the names of the parts of the network that come before the backbone's last stage."""
    parts = {part for part, _ in network.named_modules()}
    stages = [part for part in sorted(parts) if part.startswith("backbone.stages.") and part.count(".") == 2]
    if not {"backbone.stem", *stages[:1]} <= parts or len(stages) < 2:
        raise UserError(f"tune: the backbone {name} has no stages of which one is the last; give --tune all")
    last = max(stages, key=lambda part: int(part.rpartition(".")[2]))
    return ("backbone.stem", *(stage for stage in stages if stage != last))
