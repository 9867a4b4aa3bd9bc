"""Objects from files and entry points."""

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from ssil.core import plugins
from ssil.core.errors import UserError
from ssil.core.plugins import code_file, find, load_object


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.py"
    file.write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Point:\n    x: int\n\ndef method(): return 7\n"
    )
    return file


def test_an_object_of_a_file(own: Path) -> None:
    assert load_object(f"{own}:method")() == 7
    assert load_object(f"{own}:Point")(3).x == 3


def test_a_relative_path(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    assert load_object("own.py:method")() == 7


def test_a_file_is_run_once(own: Path) -> None:
    assert load_object(f"{own}:Point") is find("method", f"{own}:Point", {})


def test_what_is_found_must_be_callable(own: Path) -> None:
    own.write_text("method = 3")
    with pytest.raises(UserError, match=r"method: '.*:method' is of type int; name a function"):
        find("method", f"{own}:method", {})


def test_an_object_of_an_installed_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours_for_plugins").mkdir()
    (tmp_path / "ours_for_plugins/__init__.py").write_text("")
    (tmp_path / "ours_for_plugins/views.py").write_text("def view(): return 9\n")
    (tmp_path / "ours_for_plugins/broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_object("ours_for_plugins.views:view")() == 9
    assert code_file("ours_for_plugins.views:view") == tmp_path / "ours_for_plugins/views.py"
    with pytest.raises(UserError, match=r"has no 'vew', did you mean 'view'"):
        load_object("ours_for_plugins.views:vew")
    with pytest.raises(UserError, match=r"'ours_for_plugins.broken' can't be imported: ZeroDivisionError"):
        load_object("ours_for_plugins.broken:view")
    for reference in ("ours_for_plugins.none:view", "sys:path", "ours for.plugins:x"):
        with pytest.raises(UserError, match=r"is not of the form file\.py:name"):
            load_object(reference)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.py'.*there is no such file"):
        load_object(f"{tmp_path}/none.py:method")


def test_a_missing_name_gets_a_guess(own: Path) -> None:
    with pytest.raises(UserError, match=r"has no 'methud', did you mean 'method'\?"):
        load_object(f"{own}:methud")


@pytest.mark.parametrize("reference", ["own.py", "own:method", ":", "own.txt:method"])
def test_a_wrong_form(reference: str) -> None:
    with pytest.raises(UserError, match=r"is not of the form file\.py:name"):
        find("method", reference, {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
    ],
)
def test_a_file_that_fails_can_be_mended(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    with pytest.raises(UserError, match=reason) as caught:
        load_object(f"{file}:method")
    assert "\n" not in str(caught.value)
    file.write_text("method = 'mended, and of another length'")
    assert load_object(f"{file}:method") == "mended, and of another length"


def test_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = EntryPoints([EntryPoint("root", "math:sqrt", "ssil.methods")])
    monkeypatch.setattr(plugins, "entry_points", lambda group: installed.select(group=group))
    assert find("method", "root", {})(9.0) == 3.0
    with pytest.raises(
        UserError, match=r"method: unknown name 'rot', did you mean 'root'\? Known: root, ssil; or give"
    ):
        find("method", "rot", {"ssil": 1})
    with pytest.raises(UserError, match=r"backbone: unknown name 'root'\. Known: "):
        find("backbone", "root", {})


def test_a_name_in_other_letters_is_recognised() -> None:
    with pytest.raises(UserError, match=r"^colour: unknown name 'RED', did you mean 'red'\?"):
        plugins.find("colour", "RED", {"red": 1, "blue": 2})
