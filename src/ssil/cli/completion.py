"""`ssil completion`: the script with which a shell completes commands and options."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

app = App(
    name="completion",
    help_epilogue="""The script goes to standard output; nothing is installed.

Examples:
  ssil completion bash > ~/.local/share/bash-completion/completions/ssil
  ssil completion zsh > "${fpath[1]}/_ssil"
  ssil completion fish > ~/.config/fish/completions/ssil.fish""",
)


@app.default
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="whose script to print")], /) -> None:
    """Print the script with which a shell completes the commands and options of ssil."""
    from ssil.cli import app as whole  # which imports this file when the command is used

    print(whole.generate_completion(shell=shell, prog_name="ssil"), end="")
