"""Small models behind a real server process."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from tiny_classifiers import labelled_images, png, settings

FIRST, LATER = ("ant", "bee", "cat"), ("dog", "eel")


def classifiers() -> tuple[Classifier, Classifier]:
    """One of three classes, and one that has learnt two more."""
    one = update(None, settings(), labelled_images(FIRST)).classifier
    return one, update(one, settings(), labelled_images(LATER)).classifier


def two_versions(folder: Path) -> ModelDirectory:
    """A model whose first version is the current one, and whose second knows more classes."""
    directory = ModelDirectory(folder, [settings().backbone])
    before = None
    for classifier in classifiers():
        before = directory.publish_change(before, classifier, new=[*classifier.classes.names])
    directory.point_to(1)
    return directory


@dataclass(frozen=True)
class Served:
    """A server: its address and its token, both as its command has printed them."""

    address: str
    token: str
    process: "subprocess.Popen[str]"

    @property
    def port(self) -> int:
        """The port."""
        return int(self.address.rpartition(":")[2])

    @property
    def bearer(self) -> dict[str, str]:
        """The header that every request needs."""
        return {"authorization": f"Bearer {self.token}"}

    def client(self, **options: Any) -> httpx2.Client:
        """A client with the token."""
        return httpx2.Client(base_url=self.address, headers=self.bearer, timeout=60, **options)


@contextmanager
def served(*arguments: str, command: str = "serve", port: int = 0, **environment: str) -> Iterator[Served]:
    """Run `ssil serve`, or another command that serves, on a free port or a given one; it must end when told to."""
    words = [sys.executable, "-m", "ssil", command, *arguments, "--port", str(port)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            found = re.search(r"(http://\S+:\d+)/enter\?token=(\S+)", line)
            assert found, line
            yield Served(found[1], found[2], process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def form(*names: str) -> list[tuple[str, tuple[str, bytes]]]:
    """Images of classes as the files of a form."""
    return [("images", (f"{name}.png", png(name, 77))) for name in names]
