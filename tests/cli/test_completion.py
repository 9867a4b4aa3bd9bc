"""The completion script, sourced by a real shell."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ssil.cli import COMMANDS, main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [name for group in COMMANDS.values() for name in group if name not in script] == []


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [("ssil le", {"learn"}), ("ssil run --epoch", {"--epochs", "--epoch-scale"}), ("ssil xyz", set())],
)
def test_bash_completes(words: str, found: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "bash"])
    script = tmp_path / "ssil.bash"
    script.write_text(capsys.readouterr().out)
    last = len(words.split()) - 1
    code = f"source {script}; COMP_WORDS=({words}); COMP_CWORD={last}; _ssil; echo ${{COMPREPLY[*]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} == found


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
