"""Advice in plain words: what is odd, and what to do about it."""

from collections.abc import Iterator
from typing import Any

from ssil.classifier.advice.advise import KINDS, Advice, AlikePair, ConfusedPair, Kind, NeededImages, Suspect

TITLES: dict[Kind, str] = {
    "same": "in two classes",
    "nearly same": "nearly the same in two classes",
    "wrong class": "probably in the wrong class",
    "blurred": "blurred",
    "dark": "very dark",
    "far": "unlike others of the same class",
}
"""What the images of a kind are."""
TASKS: dict[Kind, str] = {
    "same": "Decide which class is right, and delete the file in the other one.",
    "nearly same": "Decide which class is right, and delete the file in the other one.",
    "wrong class": "Move those that are in the wrong folder; leave those that are right.",
    "blurred": "Take the photograph again, or delete it.",
    "dark": "Take the photograph again with more light, or delete it.",
    "far": "Keep those that show what they should; delete the others.",
}
"""What to do about the images of a kind."""


def about_suspect(suspect: Suspect) -> str:
    """Return what to do about an image, in one sentence that names its file.

    >>> from ssil.classifier.image_file import ImageFile
    >>> image = ImageFile.from_bytes("leek/3.jpg", b"")
    >>> about_suspect(Suspect("wrong class", image, "leek", "zucchini"))
    'leek/3.jpg is in leek, but looks like zucchini: if it is, put it into a folder zucchini beside leek.'
    """
    name, label, other = suspect.image.name, suspect.label, suspect.other
    placed = placed_name(name, label)
    twin = placed_name(suspect.twin.name, other) if suspect.twin else f"an image that was learnt as {other}"
    move = f"put it into a folder {other} beside {label}"
    sentences: dict[Kind, str] = {
        "same": f"{placed} is the same image as {twin}: delete the wrong one.",
        "nearly same": f"{placed} is nearly the same image as {twin}: delete the wrong one.",
        "wrong class": f"{name} is in {label}, but looks like {other}: if it is, {move}.",
        "blurred": f"{name} is blurred: take it again, or delete it.",
        "dark": f"{name} is very dark: take it again with more light, or delete it.",
        "far": f"{name} looks unlike the other images of {label}: keep it only if it shows {label}.",
    }
    return sentences[suspect.kind]


def placed_name(name: str, label: str) -> str:
    """Return a file's name, with its class unless a folder in it is called like the class.

    >>> placed_name("leek/3.jpg", "leek"), placed_name("3.jpg", "leek")
    ('leek/3.jpg', '3.jpg (in leek)')
    """
    return name if label in name.split("/")[:-1] else f"{name} (in {label})"


def about_alike(pair: AlikePair) -> str:
    """Return what to do about two classes that look like one."""
    share = f"{pair.nearer} of their {pair.images} images look more like the other"
    return (
        f"{pair.first} and {pair.second} look like one class under two names ({share}): "
        "if they are one, put their images into one folder."
    )


def about_needed(needed: NeededImages) -> str:
    """Return that a class needs images, and why.

    >>> about_needed(NeededImages("garlic", 8, 0, 0)), about_needed(NeededImages("kiwi", 40, 3, 8))
    ('Add images of garlic: there are only 8.', 'Add images of kiwi: 3 of 8 were recognised.')
    """
    few = f"there are only {needed.images}" if needed.images else "none was learnt"
    why = f"{needed.correct} of {needed.total} were recognised" if needed.total else few
    return f"Add images of {needed.label}: {why}."


def about_confused(pair: ConfusedPair) -> str:
    """Return how often a class is taken for another one.

    >>> about_confused(ConfusedPair("leek", "zucchini", (), 6))
    'leek was taken for zucchini: 0 of 6'
    """
    return f"{pair.label} was taken for {pair.other}: {len(pair.images)} of {pair.total}"


def next_steps(advice: Advice) -> Iterator[str]:
    """Yield what would help, the most important first, one sentence each."""
    for kind in KINDS:
        if count := len(advice.of_kind(kind)):
            yield f"{count} image{'s are' if count > 1 else ' is'} {TITLES[kind]}. {TASKS[kind]}"
    yield from map(about_alike, advice.alike)
    yield from map(about_needed, advice.needed)


def advice_facts(advice: Advice) -> dict[str, Any]:
    """Return advice as values of JSON."""
    return {
        "examined": advice.examined,
        "suspects": [
            {
                "kind": one.kind,
                "image": one.image.name,
                "class": one.label,
                "other_class": one.other or None,
                "other_image": one.twin.name if one.twin else None,
                "what_to_do": about_suspect(one),
            }
            for one in advice.suspects
        ],
        "taken_for": [
            {
                "class": pair.label,
                "taken_for": pair.other,
                "images": [image.name for image in pair.images],
                "of": pair.total,
            }
            for pair in advice.confused
        ],
        "alike": [{"classes": [pair.first, pair.second], "what_to_do": about_alike(pair)} for pair in advice.alike],
        "add_images": [
            {"class": one.label, "images": one.images, "what_to_do": about_needed(one)} for one in advice.needed
        ],
    }
