"""Near names: for misspelt classes, methods, commands and backbones."""

import pytest

from ssil.cli import main
from ssil.core.errors import did_you_mean
from ssil.core.spelling import near_names, plain_spelling

CLASSES = ["arla_standard_milk", "oat_milk", "Leek", "red_bell_pepper", "red_beet", "garlic"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("LEEK", "Leek"),
        ("leek ", "Leek"),
        ("garlik", "garlic"),
        ("red bell pepper", "red_bell_pepper"),
        ("bell", "red_bell_pepper"),
        ("standard", "arla_standard_milk"),
    ],
)
def test_classes(name: str, found: str) -> None:
    assert did_you_mean(name, CLASSES, "none") == f"did you mean {found!r}?"


def test_what_is_far_is_not_proposed() -> None:
    assert did_you_mean("zucchini", CLASSES, "none") == "none"
    assert did_you_mean("re", CLASSES, "none") == "none"  # two letters are in too many names
    assert near_names("milk", CLASSES, 3) == ["oat_milk", "arla_standard_milk"]
    assert near_names("red", CLASSES, 9) == ["red_beet", "red_bell_pepper"]


def test_a_name_without_letters_stays() -> None:
    assert plain_spelling("--") == "--"
    assert near_names("--", ["..", "--"], 2) == ["--"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["lern", "a", "b"], "did you mean 'learn'?"),
        (["Learn", "a", "b"], "did you mean 'learn'?"),
        (["roll-back", "a", "1"], "did you mean 'rollback'?"),
        (["methods", "sslda"], "did you mean 'slda'"),
        (["methods", "SSIL"], "did you mean 'ssil'"),
        (["run", "--dataset", "digits", "--backbone", "resnet-18"], "did you mean 'resnet18'"),
        (["run", "--dataset", "digits", "--backbone", "lite0"], "did you mean 'efficientnet_lite0'"),
    ],
)
def test_commands_methods_and_backbones(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert hint in capsys.readouterr().err
