"""Only what may be compared shares a section, and only what is finished counts beside what is."""

from pathlib import Path

from report_runs import run
from ssil.reporting.sections import sections


def test_a_section_a_stream() -> None:
    runs = [
        run("ft"),
        run("ssil", dataset="moved", folder="b"),
        run("ft", sizes=(4, 1, 1)),
        run("ft", data_fingerprint="beef"),
        run("ft", validation=0.1),
    ]
    found = sections(runs)
    assert [(section.title, len(section.runs)) for section in found] == [
        ("some: 6 classes in 3 tasks (data f00d)", 2),
        ("some: 6 classes in 3 tasks, 4 of them in the first", 1),
        ("some: 6 classes in 3 tasks (data beef)", 1),
        ("some: 6 classes in 3 tasks, tested on 10 % of the training images", 1),
    ]


def test_streams_are_titled_by_the_setting_in_which_they_differ() -> None:
    runs = [
        run("ft", train_per_class=20),
        run("ft", train_per_class=40, data_fingerprint="beef"),
        run("ft", data_fingerprint="cafe"),
        run("ft", data_fingerprint="d00d"),
    ]
    assert [section.title for section in sections(runs)] == [
        "some: 6 classes in 3 tasks, train per class 20",
        "some: 6 classes in 3 tasks, train per class 40",
        "some: 6 classes in 3 tasks, train per class by default (data cafe)",
        "some: 6 classes in 3 tasks, train per class by default (data d00d)",
    ]


def test_seeds_that_hold_out_other_images_share_a_section() -> None:
    (section,) = sections([run("ft", seed=seed, validation=0.1, data_fingerprint=str(seed)) for seed in range(3)])
    assert [len(variant.records) for variant in section.variants] == [3]


def test_the_best_come_first_bounds_and_unfinished_last() -> None:
    everything = {"kind": "unlimited"}
    runs = [run("er", (99,)), run("joint", (95, 95, 95), memory=everything), run("ft"), run("ssil", (90, 80, 70))]
    (section,) = sections([*runs, run("lwf", ())])
    assert [variant.name for variant in section.variants] == ["ssil", "ft", "joint", "er"]
    assert [variant.name for variant in section.waiting] == ["lwf"]
    assert [variant.ranked for variant in section.variants] == [True, True, False, False]
    assert [variant.name for variant in section.since(2).variants] == ["ssil", "ft", "joint"]
    assert len(section.runs) == 5


def test_unfinished_seeds_do_not_count_beside_finished_ones() -> None:
    (section,) = sections([run("ft", (90, 60, 40)), run("ft", (80, 50, 30), seed=1), run("ft", (10,), seed=2)])
    (variant,) = section.variants
    assert [one.text() for one in variant.along(lambda task: task.top1)] == ["85.0 ± 7.1", "55.0 ± 7.1", "35.0 ± 7.1"]
    assert variant.over(lambda record: record.tasks[-1].top1).mean == 35
    assert variant.confusion == [[4, 0, 12], [0, 8, 8], [0, 0, 16]]


def test_without_a_finished_seed_all_are_cut_to_the_slowest() -> None:
    (section,) = sections([run("ft", (90, 60)), run("ft", (80,), seed=1), run("ft", (), seed=2)])
    (variant,) = section.variants
    assert not variant.finished
    assert [one.mean for one in variant.along(lambda task: task.top1)] == [85]
    assert [one.folder for one in section.runs] == [Path("runs/some")] * 3
