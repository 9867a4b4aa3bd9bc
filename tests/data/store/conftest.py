"""Stores with few images in a shard."""

import pytest

from ssil.data.store import format


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format, "PER_SHARD", 7)
    monkeypatch.setattr(format, "PER_BATCH", 3)
