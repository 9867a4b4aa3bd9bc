"""Images that looked wrong in an earlier update are told until they are mended."""

from pathlib import Path

from ssil.classifier.advice.advise import Suspect, advise
from ssil.classifier.advice.earlier_suspects import MOST, earlier_suspects, suspects_to_remember
from ssil.classifier.edits import forget
from ssil.classifier.image_file import ImageFile
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.update import update
from ssil.core.files import checksum
from ssil.core.model_layout import PAGE
from tiny_classifiers import labelled_images, png, settings

CLOSED = settings(method="slda", unknown_loss=0)
SWAPPED = ImageFile.from_bytes("bee/swapped.png", png("cat", 91))


def test_a_suspect_is_told_until_it_arrives_in_another_class() -> None:
    first = update(None, CLOSED, [*labelled_images(["ant", "bee", "cat"], 20), (SWAPPED, "bee")])
    told = suspects_to_remember(advise(None, first))
    assert [one["image"] for one in told] == ["bee/swapped.png"]
    history = [{"images": "week-1", "suspects": told}]
    later = labelled_images(["dog"], 20)
    second = update(first.classifier, CLOSED, later).classifier
    (open_still,) = earlier_suspects(history, second, later)
    assert (open_still.update, open_still.image) == (0, "bee/swapped.png")
    assert open_still.sentence.startswith("bee/swapped.png looks like cat")
    moved = [*later, (SWAPPED, "cat")]
    assert earlier_suspects(history, update(first.classifier, CLOSED, moved).classifier, moved) == []


def test_a_suspect_is_shown_by_its_file_or_by_the_copy_that_the_model_keeps(tmp_path: Path) -> None:
    made = update(None, CLOSED, labelled_images(["ant", "bee"], 8)).classifier
    held = next(image for group in made.holdout for image in group)
    (tmp_path / "ant").mkdir()
    file = tmp_path / "ant" / "1.png"
    one = {"digest": held.original_digest, "class": "ant", "kind": "blurred", "image": "ant/1.png"}
    entry = {"images": str(tmp_path), "suspects": [{**one, "what_to_do": "ant/1.png is blurred."}]}
    (gone,) = earlier_suspects([entry], made, [])
    assert (gone.image, gone.sentence) == ("ant/1.png", "ant/1.png is blurred.")
    shown = gone.picture(made)
    assert shown is not None
    assert shown.digest == held.digest
    file.write_bytes(png("ant", 77))
    (there,) = earlier_suspects([entry], made, [])
    assert (there.image, there.sentence) == (str(file), f"{file} is blurred.")
    other = there._replace(digest=checksum(file.read_bytes())).picture(made)
    assert other is not None
    assert other.read() == file.read_bytes()
    assert there._replace(digest="0" * 32).picture(made) is None  # another image is there now


def test_what_is_not_as_it_should_be_is_left_out() -> None:
    made = update(None, CLOSED, labelled_images(["ant", "bee"], 4)).classifier
    (image, name), *_ = labelled_images(["ant", "bee"], 4)
    whole = {
        "digest": image.original_digest,
        "class": name,
        "kind": "blurred",
        "image": "a.png",
        "what_to_do": "Take it again.",
    }
    odd = [
        {key: value for key, value in whole.items() if key != "class"},
        {**whole, "kind": "odd"},
        {**whole, "image": 3},
        "text",
        {},
    ]
    assert len(earlier_suspects([{"suspects": [whole, *odd]}, {"suspects": None}, {}], made, [])) == 1


def test_few_are_kept() -> None:
    first = update(None, CLOSED, labelled_images(["ant", "bee"], 4))
    advice = advise(None, first)
    many = tuple(Suspect("blurred", ImageFile.from_bytes(f"{at}.png", b"x"), "ant") for at in range(MOST + 9))
    assert len(suspects_to_remember(type(advice)(9, many, (), (), (), {}))) == MOST


def test_a_class_that_is_forgotten_leaves_no_trace_of_its_images(tmp_path: Path) -> None:
    first = update(None, CLOSED, [*labelled_images(["ant", "bee", "cat"], 20), (SWAPPED, "bee")])
    told = suspects_to_remember(advise(None, first))
    directory = ModelDirectory(tmp_path / "model", (CLOSED.backbone,))
    with directory.locked():
        one = directory.publish(first.classifier, [{"new": ["ant", "bee", "cat"], "suspects": told}])
        directory.publish_change(
            one, update(first.classifier, CLOSED, labelled_images(["dog"])).classifier, new=["dog"]
        )
    (tmp_path / "model" / PAGE).write_text("a page with photos")
    assert "swapped" in (directory.version(1) / "model.json").read_text()
    forget(directory, "bee")
    assert not (tmp_path / "model" / PAGE).exists()
    for number in directory.numbers():
        assert "swapped" not in (directory.version(number) / "model.json").read_text()
