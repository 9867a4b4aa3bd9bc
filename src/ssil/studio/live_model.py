"""The version of a model that predicts: another one that is published is loaded beside it, then takes its place."""

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from ssil.classifier.exported_model import Predictor, load_predictor
from ssil.classifier.versions import VersionedDirectory
from ssil.core.errors import UserError, one_line
from ssil.core.model_layout import CURRENT

SECONDS = 0.5
"""Between two looks at which version is the current one."""

Stamp = tuple[int, int, int]


class LoadedVersion(NamedTuple):
    """A version that is ready to predict."""

    number: int
    class_names: tuple[str, ...]
    predictor: Predictor


class LiveModel:
    """A model directory, and the version of it that predicts now."""

    def __init__(self, folder: Path, trusted: Collection[str] = (), threads: int | None = None) -> None:
        """Load the current version; a directory without a model is not an error, but has no `loaded`."""
        self.folder, self._trusted, self._threads = folder, trusted, threads
        self.loaded: LoadedVersion | None = None
        self.problem: str | None = None
        """Why the current version can't be loaded; then the version before it goes on predicting."""
        self._stamp: Stamp | None = None
        if VersionedDirectory(folder).exists:
            stamp = self._look()
            self.loaded, self._stamp = self._load(), stamp

    def refresh(self) -> None:
        """Load the current version if `current.json` has changed; if that fails, keep the one before and try again."""
        stamp = self._look()
        if stamp is None or stamp == self._stamp:
            return
        try:
            self.loaded, self._stamp, self.problem = self._load(), stamp, None
        except (UserError, OSError) as error:
            self.problem = one_line(error)

    def forget(self) -> None:
        """Predict no more, after the only version was removed."""
        self.loaded, self._stamp, self.problem = None, None, None

    async def follow(self, seconds: float = SECONDS) -> None:
        """Look for another version again and again; loading is done in a thread, while requests go on."""
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.refresh)

    def _load(self) -> LoadedVersion:
        directory = VersionedDirectory(self.folder)
        number = directory.current()
        predictor = load_predictor(self.folder, number, self._trusted, self._threads)
        names = directory.description(number)["classes"]["names"]
        return LoadedVersion(number, tuple(names), predictor)

    def _look(self) -> Stamp | None:
        try:
            status = (self.folder / CURRENT).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
