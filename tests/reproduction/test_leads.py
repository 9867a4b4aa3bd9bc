"""SS-IL's leads by the memory's share of a task's images, from simulated runs and from the paper's table."""

from pathlib import Path

import pytest

from simulated_evidence import WORLD, SimulatedEvidence
from ssil.reproduction.leads import all_measured_leads, all_printed_leads, measured_leads, memory_share
from ssil.reproduction.paper_scenarios import HIGH, Condition
from ssil.reproduction.presets import find_preset


def _evidence(*lines: str) -> SimulatedEvidence:
    return SimulatedEvidence(Path(), find_preset("cifar100-full"), (0, 1), {line: WORLD[line] for line in lines})


@pytest.mark.parametrize(
    ("condition", "share"),
    [(Condition(), 400 / 5000), (Condition(level=HIGH), 800 / 5000), (Condition(20), 400 / 2500)],
)
def test_the_share_is_all_exemplars_by_the_images_of_a_task(condition: Condition, share: float) -> None:
    assert memory_share(find_preset("cifar100-full"), condition) == pytest.approx(share)


def test_a_lead_is_the_difference_of_the_averages_seed_by_seed() -> None:
    leads = measured_leads(_evidence("SS-IL", "FT"))
    assert [(lead.rival, lead.tasks) for lead in leads] == [("FT", tasks) for tasks in (10, 10, 10, 20, 5)]
    # Over ten tasks SS-IL falls from 80 by 2 a task, FT by 4: on average by 9 points less, with the middle memory.
    assert leads[1].points == pytest.approx((9.0, 9.0))


def test_without_ssil_there_are_no_leads() -> None:
    assert measured_leads(_evidence("FT")) == []


def test_the_paper_s_leads() -> None:
    printed = all_printed_leads()
    assert [len(leads) for leads in printed.values()] == [5 * 7, 5 * 6, 5 * 6]  # PODNet on ImageNet alone
    (lead,) = (lead for lead in printed["ImageNet-1K"] if lead.rival == "EEIL" and round(lead.memory_share, 2) == 0.08)
    assert lead.points == pytest.approx((64.5 - 59.4,))


def test_presets_with_the_paper_s_proportions_are_drawn_together() -> None:
    found = all_measured_leads(_evidence("SS-IL", "EEIL"))
    assert next(iter(found)) == "CIFAR-100, 500 images a class"
    assert "1,000 Chinese characters" in found
    assert find_preset("imagenet").title not in found  # its numbers are the paper's
