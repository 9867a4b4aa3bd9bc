"""`ssil weights`: the pretrained weights that have a name."""

from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import App, Parameter

from ssil.cli.terminal import Json, console, json_line
from ssil.core.network_input import NetworkInput
from ssil.nn.weights import NAMED_WEIGHTS, NamedWeights, named_weights

app = App(
    name="weights",
    help_epilogue="""Weights decide the backbone, the image size and the normalisation of the network
that begins with them. --init takes other weights too: a .safetensors file, or a
name on the Hugging Face hub, a model or run directory of yours, or hf:NAME for
a vision model of the transformers library.

Examples:
  ssil weights
  ssil weights efficientnet_lite0 --json
  ssil learn birds photos/ --init efficientnet_lite0 --freeze""",
)


@app.default
def weights(
    name: Annotated[str | None, Parameter(help="only the weights of this name")] = None, /, *, json: Json = False
) -> None:
    """List the pretrained weights that `--init` knows by name, or show those of one name."""
    chosen = [named_weights(name)] if name else [*NAMED_WEIGHTS.values()]
    if json:
        for entry in chosen:
            json_line(**_facts(entry))
        return
    for entry in chosen:
        lines = (f"  {title:14}{value}" for title, value in _lines(entry).items())
        console().print("\n".join([entry.name, *lines]), markup=False)


def _facts(entry: NamedWeights) -> dict[str, Any]:
    return asdict(entry) | {
        "input": entry.input.model_dump(mode="json"),
        "installed": entry.installed,
        "install_command": entry.install_command,
    }


def _lines(entry: NamedWeights) -> dict[str, str]:
    """Return the lines of the description, by their titles."""
    return {
        "backbone": entry.backbone,
        "trained on": entry.trained_on,
        "licence": entry.licence,
        "size": f"{entry.megabytes} MB",
        "input": _input_line(entry.input),
        "normalisation": entry.input.normalisation,
        "SHA-256": entry.sha256,
        "package": f"{entry.package} {entry.version}",
        "file": entry.file,
        "installed": "yes" if entry.installed else f"no; {entry.install_command}",
    }


def _input_line(needed: NetworkInput) -> str:
    seen = "the whole image" if needed.crop == "whole" else f"{needed.crop:g} of the short side"
    return f"{needed.size} x {needed.size} pixels, {seen}, {needed.interpolation}"
