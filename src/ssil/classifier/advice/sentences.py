"""Advice in plain words: what is odd, and what to do about it."""

from typing import Any

from ssil.classifier.advice.advise import FEW, Advice, AlikePair, Kind, NeededImages, Suspect
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
    "wrong class": "Move it if it is in the wrong folder; leave it if it is right; delete it if it shows neither of "
    "the two, or several things.",
    "blurred": "Take it again, or delete it.",
    "dark": "Take it again with more light, or delete it.",
    "far": "Keep it if it shows what it should; delete it if not.",
}
"""What to do about the only photo of a kind."""
SEVERAL: dict[Kind, str] = {
    "same": "Decide for each which class is right, and delete the file in the other one.",
    "nearly same": "Decide for each which class is right, and delete the file in the other one.",
    "wrong class": "Move those that are in the wrong folder; leave those that are right; delete those that show "
    "neither of the two, or several things.",
    "blurred": "Take them again, or delete them.",
    "dark": "Take them again with more light, or delete them.",
    "far": "Keep those that show what they should; delete the others.",
}
"""What to do about several photos of a kind."""
SHORT: dict[Kind, str] = {
    "same": "delete the wrong one of the two",
    "nearly same": "delete the wrong one of the two",
    "wrong class": "move it if so, leave it if right, delete it if it shows neither or several",
    "blurred": "take it again, or delete it",
    "dark": "take it again with more light, or delete it",
    "far": "keep it if it shows its class, else delete it",
}
"""The same in few words, for each photo."""


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
    'leek/3.jpg looks like lime: if it is, move it to lime (make the folder if needed); if it shows neither, delete it.'
    """
    name, label, other = suspect.image.name, suspect.label, suspect.other
    placed = placed_name(name, label)
    twin = placed_name(suspect.twin.name, other) if suspect.twin else f"a photo that was learnt as {other}"
    move = f"move it to {folder_beside(name, label, other)} (make the folder if needed)"
    sentences: dict[Kind, str] = {
        "same": f"{placed} is the same photo as {twin}: delete the wrong one.",
        "nearly same": f"{placed} is nearly the same photo as {twin}: delete the wrong one.",
        "wrong class": f"{placed} looks like {other}: if it is, {move}; if it shows neither, delete it.",
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


def folder_beside(name: str, label: str, other: str) -> str:
    """Return where the folder of another class is, or should be, for a file in the folder of its own class.

    >>> folder_beside("week-2/leek/3.jpg", "leek", "lime"), folder_beside("3.jpg", "leek", "lime")
    ('week-2/lime', 'a folder lime')
    """
    folders = name.split("/")[:-1]
    return "/".join([*folders[:-1], other]) if folders[-1:] == [label] else f"a folder {other}"


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


def often_confused(advice: Advice) -> list[ConfusedPair]:
    """Return the confused pairs without those of which a single image of many was taken for the other class."""
    return [pair for pair in advice.confused if pair.wrong > 1 or pair.total <= FEW]


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
