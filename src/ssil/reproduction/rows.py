"""Rows of the paper's tables and lines of its figures: the runs that produce them, and their printed names."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ssil.benchmark.config import override

ROWS: dict[str, dict[str, Any]] = {
    "ssil": {"method": "ssil"},
    "ft": {"method": "ft,il2m,scail"},
    **{
        name: {"method": name}
        for name in ("icarl", "eeil", "bic", "lucir", "podnet", "joint", "wa", "uw", "er", "lwf", "ce", "ce_ss")
    },
    "ce_tkd-replay": {"method": "ce_tkd", "options": {"batches": "replay"}},
    "ce_tkd": {"method": "ce_tkd"},
    "ce_gkd": {"method": "ce_gkd", "branch": "ce_tkd"},
    "ssil-mixed": {"method": "ssil", "options": {"batches": "mixed"}},
    **{f"ssil-n{size}": {"method": "ssil"} for size in (16, 32, 64)},
}
"""Settings of the runs by the name in their folder.

Fig. 6 and 7 compare four models on replay batches; Fig. 2, 8 and 9 use mixed batches, and in each task of their chain
of CE+GKD a branch learns with CE+TKD. `ssil-nN` has N exemplars per 128 new images of a batch (Table S2)."""


class Line(NamedTuple):
    """The run that a line is read from; `method` names another method that shares its training, if it is that one's."""

    row: str
    method: str = ""


LINES = {
    "iCaRL": Line("icarl"),
    "FT": Line("ft"),
    "IL2M": Line("ft", "il2m"),
    "EEIL": Line("eeil"),
    "BiC": Line("bic"),
    "LUCIR": Line("lucir"),
    "PODNet": Line("podnet"),
    "SS-IL": Line("ssil"),
    "Joint": Line("joint"),
    "ScaIL": Line("ft", "scail"),
    "WA": Line("wa"),
    "UW": Line("uw"),
    "ER": Line("er"),
    "LwF": Line("lwf"),
    "CE": Line("ce"),
    "CE-SS": Line("ce_ss"),
    "CE+TKD (replay)": Line("ce_tkd-replay"),
    "CE+TKD": Line("ce_tkd"),
    "CE+GKD": Line("ce_gkd"),
    "CE+TKD from CE+GKD's teacher": Line("ce_gkd", "ce_tkd"),
    "SS-IL without ER": Line("ssil-mixed"),
    "SS-IL, N_M = 16": Line("ssil-n16"),
    "SS-IL, N_M = 32": Line("ssil-n32"),
    "SS-IL, N_M = 64": Line("ssil-n64"),
}
"""Lines by their printed names."""

GKD, TKD, BRANCH = "CE+GKD", "CE+TKD", "CE+TKD from CE+GKD's teacher"
TABLE_1 = ("iCaRL", "FT", "IL2M", "EEIL", "BiC", "LUCIR", "PODNet", "SS-IL")
SUPPLEMENT = ("EEIL", "BiC", "LUCIR", "PODNet", "SS-IL")
"""The methods of Tables S3 to S5."""
UNCOMPARED = ("ScaIL", "WA", "UW", "ER", "LwF")
"""Methods that the paper mentions without comparing with them."""
ABLATION = ("CE", "CE-SS", "CE+TKD (replay)", "SS-IL")
"""The four models of Fig. 6 and 7."""

REPLAY_SIZES = {
    tasks: {size: "SS-IL" if size == usual else f"SS-IL, N_M = {size}" for size in (16, 32, 64)}
    for tasks, usual in ((20, 16), (10, 32), (5, 64))
}
"""The lines of Table S2 by T and N_M; for each T, one of the three sizes is SS-IL's own."""


def row_settings(row: str, batch: int, own: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of a row's runs; `own` holds a preset's further settings by row.

    Variants of SS-IL (`ssil-mixed`, `ssil-nN`) have those of `ssil` too, but for what makes them a variant.

    >>> row_settings("ssil-n32", 64, {"ssil": {"lr": 0.2, "options": {"replay_batch": 8}}})
    {'lr': 0.2, 'options': {'replay_batch': 16}, 'method': 'ssil'}
    """
    shared = own.get("ssil", {}) if row.startswith("ssil-") else {}
    return override(override(override(shared, ROWS[row]), replay_batch(row, batch)), own.get(row, {}))


def replay_batch(row: str, batch: int) -> dict[str, Any]:
    """Return the option that fixes the exemplars in a batch of a row `ssil-nN`; N is stated for 128 new images.

    >>> replay_batch("ssil-n32", 64), replay_batch("ssil", 64)
    ({'options': {'replay_batch': 16}}, {})
    """
    name, _, number = row.rpartition("-n")
    return {"options": {"replay_batch": max(1, round(int(number) * batch / 128))}} if name and number.isdigit() else {}
