"""Four panels of what each part does."""

from figure_records import record
from ssil.reporting.figures.ablation import replay_ablation, softmax_ablation


def test_scores_of_pairs_then_probabilities_and_accuracies_of_all() -> None:
    runs = {name: [record(name)] for name in ("ssil", "ce_tkd", "ce_ss", "ce")}
    pairs = {title: {name: runs[name] for name in pair} for title, pair in PAIRS.items()}
    panels = softmax_ablation(pairs).axes
    assert [axes.get_title(loc="left") for axes in panels] == [
        "(a) scores, with TKD",
        "(b) scores, without TKD",
        "(c) probabilities",
        "(d) accuracy",
    ]
    assert [len(axes.lines) for axes in panels] == [4, 4, 8, 4]


PAIRS = {"with TKD": ("ssil", "ce_tkd"), "without TKD": ("ce_ss", "ce")}


def test_replay_has_a_confusion_for_each_variant() -> None:
    panels = replay_ablation({"ssil w/o ER": [record("ssil")], "ssil": [record("ssil")]}).axes
    assert [axes.get_title(loc="left")[:14] for axes in panels] == [
        "(a) scores",
        "(b) SS-IL w/o ",
        "(c) SS-IL: 25 ",
        "(d) accuracy",
    ]
    assert [len(axes.images) for axes in panels] == [0, 1, 1, 0]
    assert len({line.get_marker() for line in panels[-1].lines}) == 2
