"""What `ssil doctor` finds, and what it says of faults."""

import json
from pathlib import Path

import pytest

from ssil.cli import main
from ssil.core.files import locked
from ssil.testing import installation
from ssil.testing.installation import InstallationFact, extras, installation_facts, self_test


def fact(name: str) -> InstallationFact:
    (found,) = (fact for fact in installation_facts() if fact.name == name)
    return found


def test_versions_and_weights_of_this_installation_are_found() -> None:
    assert fact("torch").value.startswith("2.")
    assert fact("efficientnet_lite0") == InstallationFact("weights", "efficientnet_lite0", "installed")


def test_a_missing_library_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "LIBRARIES", ("no-such-library",))
    assert "install ssil again" in fact("no-such-library").fault


def test_an_extra_that_is_not_installed_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "extras", lambda: {"report": ["jinja2"], "rare": ["no-such-library"]})
    assert fact("report").value == "installed"
    assert fact("rare") == InstallationFact(
        "extras", "rare", "not installed (no-such-library); pip install 'ssil[rare]'"
    )


def test_extras_are_those_of_the_package() -> None:
    found = extras()
    assert found["report"] == ["markupsafe", "plotly"]
    assert "dev" not in found


def test_a_cache_that_can_not_be_written_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path / "file" / "cache"))
    assert "set SSIL_CACHE to another folder" in fact("cache").fault


def test_trying_the_cache_leaves_nothing_and_needs_no_lock_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSIL_CACHE", str(tmp_path))
    with locked(tmp_path, "cache", ours=True):
        assert not fact("cache").fault
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


@pytest.mark.parametrize(("name", "wrong"), [("here", False), ("elsewhere", True)])
def test_the_folder_of_data_must_exist(name: str, wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here" / "omniglot").mkdir(parents=True)
    monkeypatch.setenv("SSIL_DATA", str(tmp_path / name))
    assert bool(fact("data").fault) == wrong
    assert ("omniglot" in fact("data").value) != wrong


def test_a_trial_that_raises_is_a_fault_and_the_others_go_on() -> None:
    def breaks() -> str:
        """Break."""
        raise ValueError("no\nluck")

    def works() -> str:
        """Work."""
        return "fine"

    broken, fine = self_test((breaks, works))
    assert (broken.name, broken.fault) == ("Break", "ValueError: no luck; report this with the lines above")
    assert fine.value.startswith("fine, ")
    assert not fine.fault


def test_a_fault_is_printed_and_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installation, "LIBRARIES", ("no-such-library",))
    assert main(["doctor", "--no-self-test"]) == 3
    out, err = capsys.readouterr()
    assert "! no-such-library is missing" in out
    assert "1 thing is wrong" in err


@pytest.mark.slow
def test_the_self_test_of_this_installation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["fault"] for line in lines if line["topic"] == "self-test"] == [""] * 3
