"""When a version was made, in the time of the place where it is read."""

import time

import pytest

from ssil.classifier.version_changes import local_time


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system can't change its time zone for a test")
@pytest.mark.parametrize(
    ("zone", "shown"), [("UTC0", "2026-11-18 23:50"), ("XXX-2", "2026-11-19 01:50"), ("XXX5", "2026-11-18 18:50")]
)
def test_moments_are_shown_in_local_time(zone: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert local_time("2026-11-18T23:50:07+00:00") == shown
    finally:
        monkeypatch.undo()
        time.tzset()
