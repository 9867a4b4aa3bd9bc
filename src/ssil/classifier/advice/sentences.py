"""Advice in plain words: what is odd, and what to do about it."""

from collections.abc import Iterator
from typing import Any

from ssil.classifier.advice.advise import KINDS, Advice, AlikePair, Kind, NeededImages, Suspect
from ssil.classifier.advice.confusions import ConfusedPair

TITLES: dict[Kind, str] = {
    "same": "in two classes",
    "nearly same": "nearly the same in two classes",
    "wrong class": "probably in the wrong class",
    "blurred": "blurred",
    "dark": "very dark",
    "far": "unlike others of the same class",
}
"""What the photos of a kind are."""
ONE: dict[Kind, str] = {
    "same": "Decide which class is right, and delete the file in the other one.",
    "nearly same": "Decide which class is right, and delete the file in the other one.",
    "wrong class": "Move it if it is in the wrong folder; leave it if it is right.",
    "blurred": "Take it again, or delete it.",
    "dark": "Take it again with more light, or delete it.",
    "far": "Keep it if it shows what it should; delete it if not.",
}
"""What to do about the only photo of a kind."""
SEVERAL: dict[Kind, str] = {
    "same": "Decide for each which class is right, and delete the file in the other one.",
    "nearly same": "Decide for each which class is right, and delete the file in the other one.",
    "wrong class": "Move those that are in the wrong folder; leave those that are right.",
    "blurred": "Take them again, or delete them.",
    "dark": "Take them again with more light, or delete them.",
    "far": "Keep those that show what they should; delete the others.",
}
"""What to do about several photos of a kind."""


def photos(count: int) -> str:
    """Return a number of photos.

    >>> photos(1), photos(2304)
    ('1 photo', '2,304 photos')
    """
    return f"{count:,} photo{'s' * (count != 1)}"


def task(kind: Kind, count: int) -> str:
    """Return what to do about so many photos of a kind."""
    return (SEVERAL if count > 1 else ONE)[kind]


def about_suspect(suspect: Suspect) -> str:
    """Return what to do about an image, in one sentence that names its file.

    >>> from ssil.classifier.image_file import ImageFile
    >>> image = ImageFile.from_bytes("leek/3.jpg", b"")
    >>> about_suspect(Suspect("wrong class", image, "leek", "lime"))
    'leek/3.jpg is in leek, but looks like lime: if it is, put it into a folder lime beside leek (make it if needed).'
    """
    name, label, other = suspect.image.name, suspect.label, suspect.other
    placed = placed_name(name, label)
    twin = placed_name(suspect.twin.name, other) if suspect.twin else f"a photo that was learnt as {other}"
    move = f"put it into a folder {other} beside {label} (make it if needed)"
    sentences: dict[Kind, str] = {
        "same": f"{placed} is the same photo as {twin}: delete the wrong one.",
        "nearly same": f"{placed} is nearly the same photo as {twin}: delete the wrong one.",
        "wrong class": f"{name} is in {label}, but looks like {other}: if it is, {move}.",
        "blurred": f"{name} is blurred: take it again, or delete it.",
        "dark": f"{name} is very dark: take it again with more light, or delete it.",
        "far": f"{name} looks unlike the other photos of {label}: keep it only if it shows {label}.",
    }
    return sentences[suspect.kind]


def placed_name(name: str, label: str) -> str:
    """Return a file's name, with its class unless a folder in it is called like the class.

    >>> placed_name("leek/3.jpg", "leek"), placed_name("3.jpg", "leek")
    ('leek/3.jpg', '3.jpg (in leek)')
    """
    return name if label in name.split("/")[:-1] else f"{name} (in {label})"


def about_alike(pair: AlikePair) -> str:
    """Return what to do about two classes that look like one, or are spelt like one.

    >>> about_alike(AlikePair("leek", "Leek", 0, 9, spelling=True))
    'leek and Leek are one class under two names, it seems. If so, keep all photos under one name, leek.'
    """
    cure = f"keep all photos under one name, {pair.first}."
    if pair.spelling:
        return f"{pair.first} and {pair.second} are one class under two names, it seems. If so, {cure}"
    share = f"{pair.nearer} of their {pair.images} photos look more like the other"
    return f"{pair.first} and {pair.second} look like one class under two names ({share}). If they are one, {cure}"


def about_needed(needed: NeededImages) -> str:
    """Return that a class needs photos, and why.

    >>> about_needed(NeededImages("garlic", 8, 0, 0)), about_needed(NeededImages("kiwi", 40, 3, 8))
    ('Add photos of garlic: there are only 8.', 'Add photos of kiwi: 3 of 8 were recognised.')
    """
    few = f"there are only {needed.images}" if needed.images else "none was learnt"
    why = f"{needed.correct} of {needed.total} were recognised" if needed.total else few
    return f"Add photos of {needed.label}: {why}."


def about_confused(pair: ConfusedPair) -> str:
    """Return how often a class is taken for another one.

    >>> about_confused(ConfusedPair("leek", "zucchini", (), 2, 25))
    'leek was taken for zucchini: 2 of 25'
    """
    return f"{pair.label} was taken for {pair.other}: {pair.wrong} of {pair.total}"


def next_steps(advice: Advice) -> Iterator[str]:
    """Yield what would help, the most important first, one sentence each."""
    yield from (about_alike(pair) for pair in advice.alike if pair.spelling)
    for kind in KINDS:
        if count := len(advice.of_kind(kind)):
            yield f"{photos(count)} {'are' if count > 1 else 'is'} {TITLES[kind]}. {task(kind, count)}"
    yield from (about_alike(pair) for pair in advice.alike if not pair.spelling)
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
                "wrong": pair.wrong,
                "of": pair.total,
            }
            for pair in advice.confused
        ],
        "alike": [{"classes": [pair.first, pair.second], "what_to_do": about_alike(pair)} for pair in advice.alike],
        "add_images": [
            {"class": one.label, "images": one.images, "what_to_do": about_needed(one)} for one in advice.needed
        ],
    }
