import pytest

from ssil.benchmark.scenario import task_sizes
from ssil.core.errors import UserError
from ssil.learning.memory import FixedBudget, GrowingBudget
from ssil.reproduction.paper_scenarios import find, scenarios

ROWS = [  # number, name, tasks in all, first task, later tasks, exemplars per class: first -> end, N_M, in tables
    (1, "imagenet-base-fixed-t10-5k", 10, 100, 100, 50, 5, 32, True),
    (2, "imagenet-base-fixed-t10-10k", 10, 100, 100, 100, 10, 32, True),
    (4, "imagenet-base-fixed-t20-10k", 20, 50, 50, 200, 10, 16, True),
    (8, "landmark-v2-1k-base-fixed-t10-20k", 10, 100, 100, 200, 20, 32, True),
    (10, "landmark-v2-1k-base-fixed-t5-10k", 5, 200, 200, 50, 10, 64, True),
    (13, "landmark-v2-10k-base-fixed-t10-60k", 10, 1000, 1000, 60, 6, 32, True),
    (14, "landmark-v2-10k-base-fixed-t20-40k", 20, 500, 500, 80, 4, 16, True),
    (16, "imagenet-base-growing-t10-5", 10, 100, 100, 5, 5, 32, True),
    (25, "landmark-v2-1k-base-growing-t5-10", 5, 200, 200, 10, 10, 64, True),
    (26, "landmark-v2-10k-base-growing-t10-2", 10, 1000, 1000, 2, 2, 32, False),
    (31, "imagenet-largebase-fixed-t10-5k", 11, 500, 50, 10, 5, 32, True),
    (34, "imagenet-largebase-fixed-t20-10k", 21, 500, 25, 20, 10, 16, True),
    (40, "landmark-v2-1k-largebase-fixed-t5-10k", 6, 500, 100, 20, 10, 64, True),
    (43, "landmark-v2-10k-largebase-fixed-t10-60k", 11, 5000, 500, 12, 6, 32, False),
    (48, "imagenet-largebase-growing-t10-20", 11, 500, 50, 20, 20, 32, True),
    (55, "landmark-v2-1k-largebase-growing-t5-10", 6, 500, 100, 10, 10, 64, True),
    (59, "landmark-v2-10k-largebase-growing-t20-4", 21, 5000, 250, 4, 4, 16, False),
    (60, "landmark-v2-10k-largebase-growing-t5-4", 6, 5000, 1000, 4, 4, 64, False),
]


@pytest.mark.parametrize("row", ROWS, ids=[row[1] for row in ROWS])
def test_rows_of_the_table(row: tuple[int, str, int, int, int, int, int, int, bool]) -> None:
    number, name, tasks, first, later, exemplars, in_the_end, replay, in_tables = row
    scenario = find(number)
    sizes = task_sizes(scenario.classes, scenario.tasks, scenario.large_base)
    budget = (
        GrowingBudget(scenario.memory_per_class) if scenario.memory_per_class else FixedBudget(scenario.memory or 0)
    )
    assert scenario == find(name) == find(str(number))
    assert (scenario.name, scenario.replay_batch, scenario.in_tables) == (name, replay, in_tables)
    assert (len(sizes), sizes[0], set(sizes[1:])) == (tasks, first, {later})
    assert set(budget.quotas([300] * sizes[0])) == {exemplars}
    assert set(budget.quotas([300] * scenario.classes)) == {in_the_end}


def test_there_are_sixty_and_the_tables_print_forty_five() -> None:
    everything = scenarios()
    assert [scenario.number for scenario in everything] == list(range(1, 61))
    assert len({scenario.name for scenario in everything}) == 60
    assert sum(scenario.in_tables for scenario in everything) == 45
    assert sum(scenario.large_base for scenario in everything) == 30
    assert sum(scenario.memory is None for scenario in everything) == 30
    assert all((scenario.memory is None) != (scenario.memory_per_class is None) for scenario in everything)


def test_each_setting_has_five_conditions_of_each_dataset() -> None:
    for setting in range(4):
        part = scenarios()[15 * setting : 15 * (setting + 1)]
        assert [scenario.dataset for scenario in part[::5]] == ["imagenet", "landmark-v2-1k", "landmark-v2-10k"]
        assert [scenario.tasks for scenario in part] == [10, 10, 10, 20, 5] * 3
        assert len({(scenario.large_base, scenario.memory is None) for scenario in part}) == 1


def test_an_unknown_scenario_gets_close_matches() -> None:
    with pytest.raises(UserError, match=r"scenario: 'imagenet-base-fixd-t10-10k'.*imagenet-base-fixed-t10-10k"):
        find("imagenet-base-fixd-t10-10k")
    with pytest.raises(UserError, match=r"scenario: 61 .* number from 1 to 60"):
        find(61)
