"""Cross-validation of closed forms: against fitting each fold anew, and what it says of near-duplicates."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ssil.classifier.cross_validation import (
    FOLDS,
    ValidatedImages,
    assign_folds,
    cross_validated,
    restore_validated,
    validate_update,
)
from ssil.core.classes import ClassTable
from ssil.learning.feature_statistics import ClosedForm
from ssil.methods.fecam import ClassMahalanobis, SharedMahalanobis
from ssil.methods.ranpac import RandomRidge
from ssil.methods.slda import LinearDiscriminants
from ssil.nn.network import Output

CLASSES = ClassTable(("ant", "bee", "cat"), (0, 3))


def ridge() -> RandomRidge:
    made = RandomRidge(width=30)
    made.projection = torch.randn(12, 30, generator=torch.Generator().manual_seed(1))
    return made


def images(seed: int = 0, count: int = 20, copies: int = 1, spread: float = 1.0) -> ValidatedImages:
    """Images of three classes, each `copies` times with little difference."""
    random = torch.Generator().manual_seed(seed)
    means = torch.randn(3, 12, generator=random).abs()
    labels = torch.arange(3).repeat(count)
    things = (means[labels] + spread * torch.randn(len(labels), 12, generator=random)).abs()
    shots = things.repeat_interleave(copies, 0)
    shots = shots + 1e-3 * torch.randn(shots.shape, generator=random).abs()
    return ValidatedImages.of(shots, labels.repeat_interleave(copies), torch.full((len(shots),), -1))


def fitted(scorer: ClosedForm, found: ValidatedImages) -> ClosedForm:
    scorer.add(scorer.embed(found.features.double()), found.labels, 3)
    scorer.solve()
    return scorer


@pytest.mark.parametrize("make", [LinearDiscriminants, SharedMahalanobis, ClassMahalanobis, ridge])
def test_each_fold_is_predicted_by_a_model_of_the_others(make: type[ClosedForm]) -> None:
    given = images()
    whole = fitted(make(), given)
    found, scores = cross_validated(whole, CLASSES, given)
    folds = assign_folds(found.groups, found.labels)
    assert folds.unique().tolist() == [*range(FOLDS)]
    for fold in range(FOLDS):
        anew = make()
        anew.settled = whole.emptied().settled
        other = fitted(anew, given.take((folds != fold).nonzero()[:, 0]))
        rows = (folds == fold).nonzero()[:, 0]
        features = given.features[rows].float()
        torch.testing.assert_close(
            scores[rows], other(Output(features[:, :0], features), CLASSES), rtol=1e-3, atol=1e-3
        )
    assert torch.equal(found.predicted, scores.argmax(1))
    assert torch.equal(whole.sums_of().counts, torch.full((3,), 20.0, dtype=torch.float64))


def accuracy(found: ValidatedImages) -> float:
    return float((found.predicted == found.labels).double().mean())


def test_copies_of_learnt_images_do_not_flatter() -> None:
    """Where every image is there four times, a split of the images finds a copy of each in training; groups do not."""
    given = images(count=10, copies=4, spread=2.0)
    whole = fitted(LinearDiscriminants(shrinkage=1e-3), given)
    honest = accuracy(cross_validated(whole, CLASSES, given)[0])
    new = images(seed=0, count=30, spread=2.0)
    features = new.features[90 - 60 :].float()
    truth = float(
        (whole(Output(features[:, :0], features), CLASSES).argmax(1) == new.labels[90 - 60 :]).double().mean()
    )
    learnt = given.features.float()
    seen = float((whole(Output(learnt[:, :0], learnt), CLASSES).argmax(1) == given.labels).double().mean())
    assert seen > honest + 0.1
    assert abs(honest - truth) < 0.2


def test_groups_are_of_copies() -> None:
    given = images(count=8, copies=3, spread=2.0)
    found, _ = cross_validated(fitted(LinearDiscriminants(), given), CLASSES, given)
    assert len(found.groups.unique()) == 24
    assert all(len(found.groups[start : start + 3].unique()) == 1 for start in range(0, 72, 3))


def test_before_and_after_an_update_leave_the_same_images_out() -> None:
    first = images(count=10)
    two = first.take((first.labels < 2).nonzero()[:, 0])
    before = fitted(LinearDiscriminants(), two)
    start = validate_update(before, CLASSES, two.features.float(), two.labels, None, most=100)
    assert start.before.predicted.tolist() == [-1] * 20
    third = first.take((first.labels == 2).nonzero()[:, 0])
    after = fitted(LinearDiscriminants(), first)
    known = (before, ClassTable(("ant", "bee"), (0, 2)), start.images)
    found = validate_update(after, CLASSES, third.features.float(), third.labels, known, most=100)
    folds = assign_folds(found.images.groups, found.images.labels)[:20]
    for fold in range(FOLDS):
        anew = LinearDiscriminants()
        anew.settled = before.emptied().settled
        other, rows = fitted(anew, two.take((folds != fold).nonzero()[:, 0])), (folds == fold).nonzero()[:, 0]
        features = two.features[rows].float()
        scores = other(Output(features[:, :0], features), known[1])[:, :2]
        assert torch.equal(found.before.predicted[rows], scores.argmax(1))
    assert torch.equal(found.before.groups, found.images.groups)
    assert found.scores.shape == (30, 3)
    assert len(validate_update(after, CLASSES, third.features.float(), third.labels, known, most=12).images) == 12
    assert len(validate_update(after, CLASSES, third.features.float(), third.labels, known, most=0).images) == 0


def test_new_classes_do_not_change_what_was_told_of_the_version_before() -> None:
    """Also if one is an old class under another name, which without care raises the threshold of near-duplicates."""
    random = torch.Generator().manual_seed(0)
    labels, means = torch.arange(240) % 6, torch.randn(6, 12, generator=random).abs()
    features = (means[labels] + 0.4 * torch.randn(240, 12, generator=random)).abs()
    known = ClassTable(tuple("abcdef"), (0, 6))
    before, after = LinearDiscriminants(), LinearDiscriminants()
    before.add(before.embed(features.double()), labels, 6)
    before.solve()
    told = validate_update(before, known, features, labels, None, most=1000).images
    assert len(told.groups.unique()) < len(told)
    doubles, double_labels = (means[:1] + 0.4 * torch.randn(40, 12, generator=random)).abs(), torch.full((40,), 6)
    after.add(after.embed(torch.cat([features, doubles]).double()), torch.cat([labels, double_labels]), 7)
    after.solve()
    classes = ClassTable((*known.names, "A"), (0, 6, 7))
    found = validate_update(after, classes, doubles, double_labels, (before, known, told), most=1000)
    assert found.images.alike_above == told.alike_above
    assert torch.equal(found.before.groups[:240], told.groups)
    assert torch.equal(found.before.predicted[:240], told.predicted)
    forgotten = replace(told, alike_above=None)  # as a version has it that was made before thresholds were kept
    anew = validate_update(after, classes, doubles, double_labels, (before, known, forgotten), most=1000)
    assert anew.images.alike_above not in (None, told.alike_above)


def test_a_class_can_be_removed_and_all_be_restored() -> None:
    found = replace(images(count=2), predicted=torch.tensor([0, 1, 2, 2, 1, 0]))
    left = found.without_class(1)
    assert left.labels.tolist() == [0, 1, 0, 1]
    assert left.predicted.tolist() == [0, 1, 1, 0]
    again = restore_validated(found.tensors(), 3)
    assert torch.equal(again.predicted, found.predicted)
    assert again.alike_above is None
    assert restore_validated(replace(left, alike_above=0.75).tensors(), 3).alike_above == 0.75


def forged(**changed: Tensor) -> dict[str, Tensor]:
    return images(count=2).tensors() | changed


@pytest.mark.parametrize(
    "tensors",
    [
        forged(labels=torch.tensor([0, 1, 2, 3, 0, 0])),
        forged(labels=torch.tensor([0, 1, 2, -1, 0, 0])),
        forged(predicted=torch.zeros(5, dtype=torch.long)),
        forged(groups=torch.zeros(6)),
        forged(alike_above=torch.tensor(float("nan"), dtype=torch.float64)),
        forged(alike_above=torch.zeros(2, dtype=torch.float64)),
        forged(alike_above=torch.tensor(1)),
        {"features": torch.zeros(2, 2)},
    ],
)
def test_tensors_that_do_not_fit_are_refused(tensors: dict[str, Tensor]) -> None:
    with pytest.raises(ValueError, match="cross-validation"):
        restore_validated(tensors, 3)
