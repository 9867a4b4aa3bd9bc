"""Code from outside the package: `my_file.py:name`, `my_package.module:name`, or an installed entry point."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ssil.core.errors import UserError, did_you_mean, one_line

T = TypeVar("T")

HUB_PREFIX = "hf:"
"""Begins the name of a backbone that the `transformers` library makes from a configuration."""


def names_code(name: str) -> bool:
    """Return whether a method or backbone of this name is code of the user's, `file.py:name` or `module:name`."""
    return ":" in name and not name.startswith(HUB_PREFIX)


def short_name(name: str) -> str:
    """Return a name to be shown: of a long one, the beginning.

    >>> short_name("resnet18"), short_name('hf:{"model_type":"vit","a":"' + "x" * 90)
    ('resnet18', 'hf:{"model_type":"vit","a":"xxxxxxxxx...')
    """
    return f"{name[:37]}..." if name.startswith(HUB_PREFIX) and len(name) > 40 else name


def find(kind: str, name: str, builtin: Mapping[str, T]) -> T:
    """Return a function by name: built in, `file.py:name`, or an entry point of the group `ssil.<kind>s`.

    Args:
        kind: What is looked for, such as "method"; error messages begin with it.
        name: Its name.
        builtin: The built-in functions by name.

    Raises:
        UserError: There is none, or it is not a function.

    >>> find("colour", "red", {"red": 0xFF0000}) == 0xFF0000
    True
    >>> find("colour", "rod", {"red": 0xFF0000})
    Traceback (most recent call last):
    ssil.core.errors.UserError: colour: unknown name 'rod', did you mean 'red'? Known: red; or give file.py:name
    """
    if name in builtin:
        return builtin[name]
    found: T = load_object(name) if ":" in name or name.endswith(".py") else _installed(kind, name, builtin)
    if not callable(found):
        raise UserError(f"{kind}: {name!r} is of type {type(found).__name__}; name a function")
    return found


def _installed(kind: str, name: str, builtin: Iterable[str]) -> Any:
    entries = entry_points(group=f"ssil.{kind}s")
    if name not in entries.names:
        raise UserError(f"{kind}: unknown name {_guess(name, [*builtin, *entries.names])}; or give file.py:name")
    return entries[name].load()


def load_object(reference: str) -> Any:
    """Return the object that `path.py:name` refers to, or `module:name` of an installed module.

    The file is imported once per process, like any module.
    """
    file, _, name = reference.rpartition(":")
    path = code_file(reference)
    module = _import(path) if file.endswith(".py") else _imported(file)
    if not hasattr(module, name):
        raise UserError(f"{file} has no {_guess(name, (known for known in vars(module) if known[0] != '_'))}")
    return getattr(module, name)


def code_file(reference: str) -> Path:
    """Return the file that `path.py:name` or `module:name` refers to; raise UserError if it refers to none."""
    file, _, _ = reference.rpartition(":")
    if file.endswith(".py"):
        return Path(file)
    spec = None
    if all(part.isidentifier() for part in file.split(".")):
        with suppress(ImportError, ValueError):
            spec = find_spec(file)
    if spec is None or not spec.origin or not spec.has_location:
        raise UserError(f"{reference!r} is not of the form file.py:name, such as my_file.py:my_function")
    return Path(spec.origin)


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:
        raise UserError(f"{name!r} can't be imported: {type(error).__name__}: {one_line(error)}; mend it") from error


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"{str(path)!r}: there is no such file; a relative path starts at {Path.cwd()}")
    title = f"ssil_plugin:{path.resolve()}"
    return sys.modules.get(title) or _run(title, path)


def _run(title: str, path: Path) -> ModuleType:
    spec = spec_from_file_location(title, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[title] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[title]
        reason = " ".join(str(error).split())
        raise UserError(f"{str(path)!r} can't be imported: {type(error).__name__}: {reason}; mend the file") from error
    return module


def _guess(name: str, known: Iterable[str]) -> str:
    """Return the misspelt name, similar known names, and all known names, for an error message."""
    known = sorted(known)
    hint = did_you_mean(name, known, otherwise="", count=3)
    return f"{name!r}{f', {hint}' if hint else '.'} Known: {', '.join(known)}"
