"""The folder of the cache: what can be computed or downloaded again."""

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Return $SSIL_CACHE, or else the platform's cache folder."""
    return Path(os.environ.get("SSIL_CACHE") or platformdirs.user_cache_dir("ssil"))
