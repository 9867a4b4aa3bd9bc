"""A classifier learns new classes, more of known ones, and one class at a time, never on hold-out images."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from ssil.classifier.holdout import evaluate
from ssil.classifier.prediction import Classifier, predict
from ssil.classifier.update import Update, changed_settings, update
from ssil.core.errors import UserError
from ssil.core.samples import Samples
from ssil.learning.execution import ExecutionContext
from ssil.nn.network import Network, Output
from ssil.nn.pretrained import Pretrained
from tiny_classifiers import labelled_images, settings


@cache
def first() -> Update:
    return update(None, settings(), labelled_images(["cat", "ant", "bee"]))


@cache
def second() -> Update:
    return update(first().classifier, settings(), labelled_images(["dog", "eel"]))


def digests(classifier: Classifier, kind: str) -> set[str]:
    return {image.digest for group in getattr(classifier, kind) for image in group}


def accuracy(classifier: Classifier, names: list[str]) -> float:
    """Return the accuracy on images that were never trained on."""
    fresh = labelled_images(names, count=6, first=100)
    found = list(predict(classifier, [image for image, _ in fresh], top=1))
    return sum(prediction.ranking[0][0] == name for prediction, (_, name) in zip(found, fresh, strict=True)) / len(
        fresh
    )


def test_classes_have_names_in_the_order_of_their_arrival() -> None:
    assert first().classifier.classes.names == ("ant", "bee", "cat")
    assert second().classifier.classes.names == ("ant", "bee", "cat", "dog", "eel")
    assert second().classifier.classes.bounds == (0, 3, 5)
    assert second().known_classes == ("ant", "bee", "cat")


def test_it_knows_old_and_new_classes() -> None:
    assert accuracy(first().classifier, ["ant", "bee", "cat"]) > 0.9
    assert accuracy(second().classifier, ["ant", "bee", "cat", "dog", "eel"]) > 0.7


def test_the_hold_out_set_is_a_fifth_of_a_class_and_never_trained_on() -> None:
    made = second().classifier
    assert [len(group) for group in made.holdout] == [2, 2, 2, 1, 1]  # a fifth of 40 images in all
    assert digests(made, "holdout").isdisjoint(digests(made, "exemplars"))
    assert second().trained_images == 20 - 2
    again = update(made, settings(), labelled_images(["ant"]))
    assert digests(again.classifier, "holdout").isdisjoint(digests(again.classifier, "exemplars"))
    assert again.trained_images == 10 - 2 - len(made.exemplars[0])


def test_no_more_images_are_kept_than_the_memory_allows() -> None:
    made = second().classifier
    sizes = [len(group) for group in made.exemplars]
    assert sum(sizes) + sum(map(len, made.holdout)) == 40
    assert max(sizes) - min(sizes) <= 1


def test_a_class_of_few_images_has_no_hold_out_set() -> None:
    made = update(None, settings(), [*labelled_images(["ant"], 4), *labelled_images(["bee"], 5)])
    assert [len(group) for group in made.classifier.holdout] == [0, 1]
    assert update(None, settings(), labelled_images(["ant", "bee"], 2)).after is None


def test_a_single_class_at_a_time() -> None:
    made = update(second().classifier, settings(), labelled_images(["fox"])).classifier
    assert accuracy(made, ["fox"]) > 0.5
    assert accuracy(made, ["ant", "bee", "cat", "dog", "eel"]) > 0.5


def test_more_images_of_known_classes() -> None:
    made = update(second().classifier, settings(), labelled_images(["ant", "dog"], first=50))
    assert made.classifier.classes.names == second().classifier.classes.names
    assert accuracy(made.classifier, ["ant", "bee", "cat", "dog", "eel"]) > 0.6
    once_more = update(made.classifier, settings(), labelled_images(["gnu"])).classifier
    assert accuracy(once_more, ["gnu"]) > 0.5


def test_an_image_that_comes_as_another_class_belongs_to_that() -> None:
    """A class is split, and one of its images was wrong all along."""
    known = second().classifier
    kept = [*known.exemplars[0], *known.holdout[0]]
    split = [(image, "emu" if place % 2 else "bee") for place, image in enumerate(kept)]
    made = update(known, settings(memory=100), [*split, *labelled_images(["fox"])]).classifier
    assert not made.exemplars[0]
    assert not made.holdout[0]
    emu = made.classes.names.index("emu")
    assert {image.original_digest for image in made.exemplars[emu] + made.holdout[emu]} == {
        image.original_digest for image in kept[1::2]
    }


def test_hold_out_results_before_and_after() -> None:
    before, after = second().before, second().after
    assert before is not None
    assert after is not None
    assert set(before.classes) == {"ant", "bee", "cat"}
    assert set(after.classes) == {"ant", "bee", "cat", "dog", "eel"}
    assert evaluate(second().classifier) == after
    assert before.accuracy([]) is None


@pytest.mark.parametrize(
    ("names", "reason"), [([], "no image to learn from"), (["ant"], "a first update needs at least two classes")]
)
def test_a_first_update_needs_classes(names: list[str], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        update(None, settings(), labelled_images(names))


def test_fixed_settings_cannot_be_changed() -> None:
    assert changed_settings(settings(), {"epochs": 3}).epochs == 3
    with pytest.raises(UserError, match="image_size: the model was made with 8, which can't be changed"):
        changed_settings(settings(), {"image_size": 9})
    with pytest.raises(UserError, match="epochs: 0 does not fit"):
        changed_settings(settings(), {"epochs": 0})


def test_the_newest_memory_setting_counts_and_options_add_up() -> None:
    megabytes = changed_settings(settings(), {"memory_mb": 1.0, "options": {"temperature": 1.0}})
    assert (megabytes.memory_mb, megabytes.options) == (1.0, {"temperature": 1.0})
    number = changed_settings(megabytes, {"memory": 30, "options": {"grad_noise": True}})
    assert (number.memory, number.memory_mb) == (30, None)
    assert number.options == {"temperature": 1.0, "grad_noise": True}


def test_a_memory_in_megabytes() -> None:
    made = update(None, settings(memory_mb=0.002), labelled_images(["ant", "bee"])).classifier
    kept = [one for group in (*made.exemplars, *made.holdout) for one in group]
    assert 0.0015e6 < sum(len(one.read()) for one in kept) < 0.0022e6
    assert len(kept) < 20


def test_exemplars_that_arrive_again_are_not_kept_twice() -> None:
    made = second().classifier
    again = update(made, settings(), [*labelled_images(["ant"]), *labelled_images(["fox"])])
    kept = [one.original_digest for group in (*again.classifier.exemplars, *again.classifier.holdout) for one in group]
    assert len(set(kept)) == len(kept)
    with pytest.raises(UserError, match="the model keeps all of these images already"):
        update(made, settings(), [(one, "ant") for one in made.exemplars[0]])


def test_as_many_epochs_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock of a second for each look at it: a training step takes one."""
    steps = count()
    monkeypatch.setattr(
        "ssil.classifier.epochs_in_time.time", SimpleNamespace(monotonic=lambda: float(next(steps)), process_time=float)
    )
    arrived = labelled_images(["ant", "bee"])
    hurried, slow, slower = (update(None, settings(epochs=50), arrived, minutes=m) for m in (0.01, 1.0, 1.6))
    assert (hurried.epochs, hurried.classifier.settings.epochs) == (1, 50)
    assert 1 < slow.epochs < 30
    assert slower.epochs - slow.epochs == pytest.approx(0.9 * 36 / 3, abs=2)  # two steps and the end of an epoch


def test_first_weights() -> None:
    start = first().classifier.snapshot.network.backbone.state_dict()
    init = Pretrained("mine", {f"backbone.{name}": value for name, value in start.items()})
    frozen = settings(epochs=1, lr=1e-9)
    made = update(None, frozen, labelled_images(["dog", "eel"]), init=init).classifier.snapshot.network.backbone
    for name, value in made.named_parameters():
        assert torch.allclose(value, start[name], atol=1e-5)


def test_the_new_model_scores_the_hold_out_set_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[tuple[int, int]] = []
    inner = ExecutionContext.batched_outputs

    def batched_outputs(
        self: ExecutionContext, network: Network, indices: Tensor, samples: Samples | None = None
    ) -> Iterator[tuple[Tensor, Output]]:
        scored.append((network.head.classes, len(indices)))
        return inner(self, network, indices, samples)

    before = first().classifier
    monkeypatch.setattr(ExecutionContext, "batched_outputs", batched_outputs)
    made = update(before, settings(), labelled_images(["dog", "eel"]))
    old, new = (sum(map(len, made.classifier.holdout[:classes])) for classes in (3, 5))
    assert scored == [(3, old), (5, new)]
    assert made.after == evaluate(made.classifier)
    assert made.after_unscaled == evaluate(replace(made.classifier, temperature=1.0))


@pytest.mark.parametrize("rule", ["keep", "reservoir", "recent"])
def test_exemplars_of_known_classes_follow_their_rule(rule: str) -> None:
    given = settings(memory=20, epochs=1, later_epochs=1, exemplars=rule)
    made = update(None, given, labelled_images(["ant", "bee"], 20)).classifier
    first, kept = kept_names(made), 0
    for week in range(1, 6):
        made = update(made, given, labelled_images(["ant", "bee"], 20, 20 * week)).classifier
        assert len(kept_names(made)) == len(first)
    kept = len(first & kept_names(made))
    assert kept == len(first) if rule == "keep" else kept < len(first) / 2


def kept_names(classifier: Classifier) -> set[str]:
    """Return the names of all exemplars."""
    return {image.name for group in classifier.exemplars for image in group}
