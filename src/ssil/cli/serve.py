"""`ssil serve`: a model behind HTTP, for programs."""

import os
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.terminal import Model, Trust, printable, require_studio
from ssil.core.errors import UserError

TOKEN = "SSIL_TOKEN"
"""The environment variable with the token."""
MAX_THREADS, MAX_IMAGES, MAX_MEGABYTES = 1024, 1000, 1000

ServerNames = Annotated[
    list[str] | None,
    Parameter(negative_iterable="", help="a further name under which the server is reached; may be repeated"),
]

app = App(
    name="serve",
    help_epilogue="""POST /predict takes images as a form and answers with JSON; GET /classes,
/health and /metrics (Prometheus) tell about the model and the server; /docs
describes them all, /openapi.json does so for programs. A version that `ssil
learn` or `ssil rollback` makes current is used a moment later; no request fails
meanwhile.

Every request but /health needs the token that is printed, as the header
`Authorization: Bearer TOKEN`. Set SSIL_TOKEN in the environment to choose it
yourself. Without --host, only programs on this computer reach the server; with
--host 0.0.0.0 others do too, which needs a token of yours, and the names under
which they know this computer, --name.

Needs: pip install 'ssil[studio]'

Examples:
  ssil serve birds
  curl -H "Authorization: Bearer TOKEN" -F images=@somebody.jpg \\
    http://127.0.0.1:8000/predict
  SSIL_TOKEN=a-long-secret-of-yours ssil serve birds --host 0.0.0.0""",
)


@app.default
def serve(
    model: Model,
    /,
    *,
    port: Annotated[int, Parameter(help="to listen on; 0 for any that is free")] = 8000,
    host: Annotated[str, Parameter(help="the address to listen on")] = "127.0.0.1",
    name: ServerNames = None,
    max_images: Annotated[int, Parameter(help="of one request")] = 64,
    max_megabytes: Annotated[int, Parameter(help="of one request")] = 64,
    threads: Annotated[int | None, Parameter(help="that compute (default: one per core)")] = None,
    trust: Trust = None,
) -> None:
    """Predict over HTTP, for other programs."""
    require_studio("serve")
    for field, value, most in (
        ("max_images", max_images, MAX_IMAGES),
        ("max_megabytes", max_megabytes, MAX_MEGABYTES),
        ("threads", 1 if threads is None else threads, MAX_THREADS),
    ):
        if not 1 <= value <= most:
            raise UserError(f"{field}: {value} is out of range; give 1 to {most}")
    from ssil.studio.access import make_access
    from ssil.studio.application import ServerSettings, listen, prediction_server, run_server

    token = os.environ.get(TOKEN) or None
    make_access(host, port, name or (), token)  # fails before anything is opened
    with listen(host, port) as listening:
        port = listening.getsockname()[1]
        access = make_access(host, port, name or (), token, max_megabytes)
        server = prediction_server(ServerSettings(model, access, max_images, threads, trust or ()))
        address = address_of(host, port)
        print(f"{printable(model)} at {address}, described at {address}/enter?token={access.token}", flush=True)
        print(f'curl -H "Authorization: Bearer {access.token}" -F images=@somebody.jpg {address}/predict', flush=True)
        run_server(server, listening)


def address_of(host: str, port: int) -> str:
    """Return the address of a server.

    >>> address_of("127.0.0.1", 80), address_of("::1", 80)
    ('http://127.0.0.1:80', 'http://[::1]:80')
    """
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
