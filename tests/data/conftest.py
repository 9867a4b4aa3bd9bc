from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
