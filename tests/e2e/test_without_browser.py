"""Tests in a browser are skipped where there is none, and fail where one should have been installed."""

import shutil

import pytest

import browser


@pytest.mark.parametrize(
    ("system", "ci", "outcome"),
    [("linux", "true", "Failed"), ("linux", "", "Skipped"), ("darwin", "true", "Skipped"), ("darwin", "", "Skipped")],
)
def test_without_a_browser(system: str, ci: str, outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(BaseException, match=r"none of chromium, .* is on PATH") as raised:
        browser.path()
    assert raised.type.__name__ == outcome
