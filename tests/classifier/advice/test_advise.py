"""Advice on whole updates, with planted faults."""

from dataclasses import replace
from io import BytesIO

import pytest
from PIL import Image

from frozen_classifiers import backbone, frozen
from ssil.classifier.advice.advise import Advice, advise
from ssil.classifier.advice.confusions import confused_pairs
from ssil.classifier.image_file import ImageFile, LabelledImages
from ssil.classifier.update import update
from tiny_classifiers import labelled_images, png, settings

CLOSED = settings(method="slda", unknown_loss=0)


def named(name: str, data: bytes) -> ImageFile:
    return ImageFile.from_bytes(name, data)


def faulty() -> LabelledImages:
    again = BytesIO()
    Image.open(BytesIO(png("ant", 0))).resize((40, 40), Image.Resampling.BILINEAR).save(again, "PNG")
    planted = [
        (named("bee/swapped.png", png("cat", 91)), "bee"),
        (named("cat/copy.png", png("bee", 3)), "cat"),
        (named("bee/larger.png", again.getvalue()), "bee"),
    ]
    return [*labelled_images(["ant", "bee", "cat"], 20), *labelled_images(["emu"], 4), *planted]


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advise(None, update(None, CLOSED, faulty()))


def test_planted_faults_are_told_once(advice: Advice) -> None:
    told = {one.image.name: (one.kind, one.label, one.other) for one in advice.suspects}
    assert told["cat/copy.png"] == ("same", "cat", "bee")
    assert told["bee/swapped.png"] == ("wrong class", "bee", "cat")
    assert ("bee/larger.png" in told) != ("ant/0.png" in told)
    assert told.get("bee/larger.png", told.get("ant/0.png"))[0] == "nearly same"  # type: ignore[index]
    assert len(told) == len(advice.suspects) == 3
    (twin,) = (one.twin.name for one in advice.of_kind("same") if one.twin)
    assert twin == "bee/3.png"


def test_small_classes_are_named(advice: Advice) -> None:
    assert [(one.label, one.images, one.total) for one in advice.needed] == [("emu", 4, 0)]
    assert advice.alike == ()


def test_typical_images_are_of_their_class(advice: Advice) -> None:
    assert {name: image.name.partition("/")[0] for name, image in advice.typical.items()} == {
        name: name for name in ("ant", "bee", "cat", "emu")
    }


def test_images_of_an_earlier_update_are_recognised() -> None:
    first = update(None, CLOSED, labelled_images(["ant", "bee"], 10)).classifier
    arrived = [*labelled_images(["cat"], 10), (named("cat/old.png", png("ant", 2)), "cat")]
    told = advise(first, update(first, CLOSED, arrived)).of_kind("same")
    assert [(one.image.name, one.label, one.other, one.twin) for one in told] == [("cat/old.png", "cat", "ant", None)]


def test_an_old_class_is_recognised_by_the_features_that_are_kept() -> None:
    """No image of the first update is kept, but all features."""
    own = frozen(method="slda", memory=60, unknown_loss=0)
    first = update(None, own, labelled_images(["ant", "bee", "cat"], 20), init=backbone()).classifier
    bare = replace(first, holdout=((), (), ()))
    arrived = [*labelled_images(["dog"], 20), (named("dog/ant.png", png("ant", 90)), "dog")]
    told = [(one.image.name, one.other) for one in advise(bare, update(bare, own, arrived)).of_kind("wrong class")]
    assert told == [("dog/ant.png", "ant")]
    blind = replace(bare, validated=None)
    assert not advise(blind, update(blind, own, arrived)).of_kind("wrong class")


def test_confused_classes_of_a_network_that_is_trained() -> None:
    """Two names for one pattern: half of the hold-out images are taken for the other one."""
    images = [(named(f"{name}/{at}.png", png("ant", at + 50 * (name == "emu"))), name)
              for name in ("ant", "emu") for at in range(20)]  # fmt: skip
    result = update(None, settings(epochs=2), [*images, *labelled_images(["bee"], 20)])
    found = [*confused_pairs(result.classifier, None)]
    assert {(pair.label, pair.other) for pair in found} & {("ant", "emu"), ("emu", "ant")}
    for pair in found:
        assert all(image.name.startswith(pair.label) for image in pair.images)
        assert 0 < len(pair.images) == pair.wrong <= pair.total <= 4


def test_classes_that_are_one_are_told() -> None:
    images = [(named(f"{name}/{at}.png", png("ant", at + 50 * (name == "emu"))), name)
              for name in ("ant", "emu") for at in range(20)]  # fmt: skip
    found = advise(None, update(None, CLOSED, [*images, *labelled_images(["bee", "cat"], 20)]))
    assert [{pair.first, pair.second} for pair in found.alike] == [{"ant", "emu"}]
    assert 0.4 <= found.alike[0].nearer / found.alike[0].images <= 1


def test_only_arrived_images_are_suspects_and_nothing_needs_a_hold_out_set() -> None:
    first = update(None, CLOSED, faulty()).classifier
    second = advise(first, update(first, CLOSED, labelled_images(["fox"], 3)))
    assert second.suspects == ()
    assert {one.label for one in second.needed} >= {"fox", "emu"}
    none = advise(None, update(None, settings(method="slda", memory=0), labelled_images(["ant", "bee"], 2)))
    assert (none.confused, none.suspects) == ((), ())


def test_where_no_class_is_told_from_another_none_is_called_its_double() -> None:
    images = [(named(f"{name}/{at}.png", png("ant", 30 * number + at)), name)
              for number, name in enumerate(("ant", "bee", "cat", "dog")) for at in range(20)]  # fmt: skip
    assert advise(None, update(None, CLOSED, images)).alike == ()


def test_two_spellings_are_told_as_one_class_and_nothing_else_of_them() -> None:
    """Six images of a class in a folder with a capital: no advice to add images, or to move them one by one."""
    first = update(None, CLOSED, labelled_images(["ant", "bee", "cat"], 20)).classifier
    arrived = [(named(f"Bee/{at}.png", png("bee", 40 + at)), "Bee") for at in range(6)]
    told = advise(first, update(first, CLOSED, [*arrived, *labelled_images(["dog"], 20)]))
    assert [(pair.first, pair.second, pair.spelling) for pair in told.alike] == [("bee", "Bee", True)]
    assert "Bee" not in {one.label for one in told.needed}
    assert told.of_kind("wrong class") == []
    assert {"bee", "Bee"} not in [{pair.label, pair.other} for pair in told.confused]
