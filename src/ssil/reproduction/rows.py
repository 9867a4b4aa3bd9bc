"""The rows of the paper's tables and the lines of its figures, as runs."""

from typing import Any, NamedTuple

ROWS: dict[str, dict[str, Any]] = {
    "ssil": {"method": "ssil"},
    "ft": {"method": "ft,il2m,scail"},
    "icarl": {"method": "icarl"},
    "eeil": {"method": "eeil"},
    "bic": {"method": "bic"},
    "lucir": {"method": "lucir"},
    "podnet": {"method": "podnet"},
    "joint": {"method": "joint"},
    "wa": {"method": "wa"},
    "uw": {"method": "uw"},
    "er": {"method": "er"},
    "lwf": {"method": "lwf"},
    "ce": {"method": "ce"},
    "ce_ss": {"method": "ce_ss"},
    "ce_tkd-replay": {"method": "ce_tkd", "options": {"batches": "replay"}},
    "ce_tkd": {"method": "ce_tkd"},
    "ce_gkd": {"method": "ce_gkd", "branch": "ce_tkd"},
    "ssil-mixed": {"method": "ssil", "options": {"batches": "mixed"}},
    "ssil-n16": {"method": "ssil"},
    "ssil-n32": {"method": "ssil"},
    "ssil-n64": {"method": "ssil"},
}
"""Figures 6 and 7 compare four models on replay batches; Figures 2, 8 and 9 use mixed ones, and their chain of CE+GKD
has branches of CE+TKD. `ssil-nN` has N exemplars in a batch of 128 new images, or as many in proportion (Table S2)."""


class Line(NamedTuple):
    """A row of a table: the run, the scorer that rides on it, the name in print."""

    row: str
    rider: str
    shown: str


LINES = {
    line.shown: line
    for line in (
        Line("icarl", "", "iCaRL"),
        Line("ft", "", "FT"),
        Line("ft", "il2m", "IL2M"),
        Line("eeil", "", "EEIL"),
        Line("bic", "", "BiC"),
        Line("lucir", "", "LUCIR"),
        Line("podnet", "", "PODNet"),
        Line("ssil", "", "SS-IL"),
        Line("joint", "", "Joint"),
        Line("ft", "scail", "ScaIL"),
        Line("wa", "", "WA"),
        Line("uw", "", "UW"),
        Line("er", "", "ER"),
        Line("lwf", "", "LwF"),
        Line("ce", "", "CE"),
        Line("ce_ss", "", "CE-SS"),
        Line("ce_tkd-replay", "", "CE+TKD (replay)"),
        Line("ce_tkd", "", "CE+TKD"),
        Line("ce_gkd", "", "CE+GKD"),
        Line("ce_gkd", "ce_tkd", "CE+TKD from CE+GKD's teacher"),
        Line("ssil-mixed", "", "SS-IL without ER"),
        Line("ssil-n16", "", "SS-IL, N_M = 16"),
        Line("ssil-n32", "", "SS-IL, N_M = 32"),
        Line("ssil-n64", "", "SS-IL, N_M = 64"),
    )
}

GKD, TKD, BRANCH = "CE+GKD", "CE+TKD", "CE+TKD from CE+GKD's teacher"
TABLE_1 = ("iCaRL", "FT", "IL2M", "EEIL", "BiC", "LUCIR", "PODNet", "SS-IL")
SUPPLEMENT = ("EEIL", "BiC", "LUCIR", "PODNet", "SS-IL")
NAMED = ("ScaIL", "WA", "UW", "ER", "LwF")
"""Methods that the paper names and does not compare with."""
ABLATION = ("CE", "CE-SS", "CE+TKD (replay)", "SS-IL")

REPLAY_SIZES = {
    tasks: {size: "SS-IL" if size == usual else f"SS-IL, N_M = {size}" for size in (16, 32, 64)}
    for tasks, usual in ((20, 16), (10, 32), (5, 64))
}
"""Table S2: by T and N_M the line; one of the three sizes is the usual one."""


def replay_batch(row: str, batch: int) -> dict[str, Any]:
    """The option of a row that fixes the exemplars of a batch; N_M is stated for 128 new images.

    >>> replay_batch("ssil-n32", 64), replay_batch("ssil", 64)
    ({'options': {'replay_batch': 16}}, {})
    """
    name, _, number = row.rpartition("-n")
    return {"options": {"replay_batch": max(1, round(int(number) * batch / 128))}} if name and number.isdigit() else {}
