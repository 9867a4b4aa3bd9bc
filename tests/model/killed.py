"""Publishing is killed at given moments, each time in a process of its own, forked from this one.

    PYTHONPATH=tests python tests/model/killed.py OUT < {"name": ["write", 3]}

prints for each name whether the kill took place, which version predicts afterwards, whether all is whole, and which
number the next version gets.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from albums import pictures, settings
from fuse import kill
from ssil.model.classifier import Classifier, guesses, update
from ssil.model.disk import ModelDirectory

TRUSTED = (settings().backbone,)


def publish(folder: Path, classifier: Classifier) -> int:
    directory = ModelDirectory(folder, TRUSTED)
    with directory.locked():
        return directory.publish(classifier, [{}]).number


def answers(classifier: Classifier) -> list[object]:
    return list(guesses(classifier, [picture for picture, _ in pictures(["ant", "cat"], 2)]))


def outcome(begun: Path, out: Path, classifiers: list[Classifier], event: str, when: float) -> dict[str, Any]:
    shutil.copytree(begun, out)
    was_killed = kill(lambda _: publish(out, classifiers[1]), event, when)
    found = ModelDirectory(out, TRUSTED).load()
    whole = answers(found.classifier) == answers(classifiers[found.number - 1])
    read = all(picture.read() for group in (*found.classifier.exemplars, *found.classifier.quiz) for picture in group)
    return {
        "killed": was_killed,
        "version": found.number,
        "whole": whole and read,
        "next": publish(out, classifiers[1]),
    }


def main(out: Path) -> None:
    torch.set_num_threads(1)
    one = update(None, settings(epochs=2), pictures(["ant", "bee"])).classifier
    both = [one, update(one, settings(later_epochs=2), pictures(["cat"])).classifier]
    publish(out / "begun", one)
    cases = enumerate(json.load(sys.stdin).items())
    json.dump({name: outcome(out / "begun", out / f"case-{n}", both, *case) for n, (name, case) in cases}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
