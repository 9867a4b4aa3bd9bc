"""The findings on the paper's claims, as a table."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from ssil.reporting.text_tables import Table
from ssil.reproduction.paper_claims import Finding
from ssil.reproduction.verdicts import Effect, Verdict

HEADER = ("", "claim", "accuracy", "effect", "mean", "95 % interval", "holds if", "verdict")


def findings_table(findings: Sequence[Finding]) -> Table:
    """A row a claim and accuracy; where it has several effects, a row each below it."""
    return Table(HEADER, [*chain.from_iterable(map(_rows, findings))], words=len(HEADER))


def _rows(finding: Finding) -> list[list[str]]:
    accuracy = f"top-{finding.k}" if finding.k else "-"
    head = [str(finding.claim.number), finding.claim.text, accuracy]
    if not finding.effects:
        return [[*head, f"needs {finding.missing}", "-", "-", "-", str(Verdict.NOT_RUN)]]
    first, *others = ([*_numbers(effect), effect.wanted] for effect in finding.effects)
    return [[*head, *first, said(finding)], *(["", "", "", *other, ""] for other in others)]


def _numbers(effect: Effect) -> list[str]:
    found = effect.estimate
    interval = f"{found.low:z.2f} to {found.high:z.2f}" if found.count > 1 else "one seed"
    return [effect.what, f"{found.mean:z.2f}", interval]


def said(finding: Finding) -> str:
    """The verdict; of one seed it is indicative."""
    single = any(len(effect.values) == 1 for effect in finding.effects)
    return f"{finding.verdict}{' (indicative)' if single else ''}"


def tally(findings: Sequence[Finding]) -> str:
    """How many hold, on one line."""
    counts = Counter(finding.verdict for finding in findings)
    shares = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in Verdict if counts[verdict])
    return f"{shares} (of {len(findings)})"
