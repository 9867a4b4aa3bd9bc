"""Sentences agree with the numbers."""

from report_runs import run, task
from ssil.benchmark.results import Run
from ssil.reporting import findings
from ssil.reporting.sections import sections


def _other(method: str, **last: object) -> Run:
    """A run that ends otherwise."""
    shorter = run(method, (90, 60))
    return Run(shorter.folder, shorter.record.with_task(task(3, 50, **last)))


FAIR = [[7, 0, 1], [1, 7, 0], [0, 1, 7]]


def test_who_leads() -> None:
    (alone,) = sections([run("ft")])
    assert findings.accuracy(alone) == ["<b>ft</b> has 63.3 % top-1 on average and 40.0 % at the end."]
    (two,) = sections([run("ft"), run("ssil", (90, 80, 70))])
    lead = "<b>ssil</b> is the most accurate on average, with 80.0 % top-1, 16.7 points ahead of <b>ft</b>"
    assert findings.accuracy(two) == [f"{lead}; with one seed, small gaps may be chance."]


def test_a_lead_that_seeds_could_make() -> None:
    seeds = [run("ft", (60,) * 3), run("ft", (50,) * 3, seed=1), run("ssil", (62,) * 3), run("ssil", (54,) * 3, seed=1)]
    (sentence,) = findings.accuracy(sections(seeds)[0])
    assert sentence.endswith(
        "with 58.0 ± 5.7 % top-1, 3.0 points ahead of <b>ft</b>, less than one deviation over seeds."
    )
    (sentence,) = findings.accuracy(sections([*seeds[:2], run("ssil", (90,) * 3), run("ssil", (91,) * 3, seed=1)])[0])
    assert sentence.endswith("35.5 points ahead of <b>ft</b>.")


def test_a_bound_leads_nobody() -> None:
    (section,) = sections([run("ft"), run("joint", (99,) * 3, memory={"kind": "unlimited"})])
    first, second = findings.accuracy(section)
    assert first.startswith("<b>ft</b> has 63.3 %")
    assert second.endswith("99.0 % at the end: an upper bound, as it keeps all images.")
    assert findings.forgetting(section) == ["<b>ft</b> forgets most, 35.0 points of a task's best accuracy."]


def test_bias() -> None:
    (section,) = sections(
        [run("ft"), _other("ssil", confusion=FAIR, score_gap=-0.5, softmax_new=0.1, teacher_ratio=[0.5, 0.5])]
    )
    sentence = "<b>ft</b> puts 75 % of its predictions on the newest of 3 tasks, where 33 % of the test images belong"
    assert findings.bias(section) == [f"{sentence}; <b>ssil</b> 33 %."]
    gap = "<b>ft</b> scores new classes +2.0 deviations of an image's scores above old ones; <b>ssil</b> -0.5."
    assert findings.scores(section) == [gap]
    odds = "<b>ft</b> gives a new class 4.0 times the mean probability of an old one; <b>ssil</b> 2.0 times."
    assert findings.probabilities(section) == [odds]
    (teachers,) = findings.teachers(section)
    assert "the model of <b>ft</b> takes 75 %" in teachers
    assert teachers.endswith("that of <b>ssil</b> 50 %.")


def test_no_bias_to_a_task_that_brought_no_class() -> None:
    (section,) = sections([_other("ssil", confusion=[[7, 1, 0], [1, 7, 0], [0, 0, 0]])])
    assert findings.bias(section) == []


def test_cost() -> None:
    (section,) = sections([run("ft"), _other("ssil", seconds=40)])
    assert findings.cost(section) == ["<b>ssil</b> takes longest, 2.0 times as long as <b>ft</b>."]
    assert findings.cost(sections([run("ft")])[0]) == []


def test_a_first_task_says_nothing_of_bias() -> None:
    (section,) = sections([run("ft", (90,))])
    assert [*findings.bias(section), *findings.teachers(section), *findings.forgetting(section)] == []


def test_unfinished_runs_are_named() -> None:
    runs = [run("ft"), run("ft", (90,), seed=1, folder="runs/<b>"), run("er", (90,), folder="runs/er")]
    assert findings.unfinished(sections(runs)[0]) == [
        "runs/<b> is not finished, and not counted: 1 of 3 tasks are done.",
        "runs/er is not finished: 1 of 3 tasks are done.",
    ]


def test_names_are_escaped() -> None:
    (section,) = sections([run("a.py:<i>"), run("ssil", (10, 10, 10))])
    (found,) = findings.accuracy(section)
    assert found.startswith("<b>&lt;i&gt;</b> is the most accurate")
