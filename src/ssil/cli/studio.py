"""`ssil studio`: a model in the browser, for people who would rather look than type."""

import os
import socket
import webbrowser
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.serve import TOKEN, ServerNames, address_of
from ssil.cli.terminal import Model, Trust, printable, require_studio
from ssil.core.errors import UserError

app = App(
    name="studio",
    help_epilogue="""Opens a page in the browser. Drop photos on it, one folder per class; press
Learn; see what it did to the old classes; take it back if you don't like it;
try it on other photos; download it. MODEL is created if it does not exist.
Photos that wait to be learnt are in MODEL/staging.

Nothing leaves this computer: the page is served by this command, to this
computer alone, and needs no internet. The address that is printed contains a
secret; who has it can use the page until the command ends (Ctrl-C). An update
that runs then goes on, and is shown when the studio is opened again.

With --host 0.0.0.0 a phone in the same network can open the page too, to take
photos with its camera. This needs a token of yours, SSIL_TOKEN in the
environment; the address for the phone is printed. Who reads along in the
network can read the token: use this at home only.

Needs: pip install 'ssil[studio]'

Examples:
  ssil studio birds
  ssil studio birds --no-browser --port 8080
  SSIL_TOKEN=a-long-secret-of-yours ssil studio birds --host 0.0.0.0""",
)


@app.default
def studio(
    model: Model,
    /,
    *,
    port: Annotated[int, Parameter(help="to listen on; 0 for any that is free")] = 8080,
    host: Annotated[str, Parameter(help="the address to listen on")] = "127.0.0.1",
    name: ServerNames = None,
    browser: Annotated[bool, Parameter(help="open a browser")] = True,
    max_drop: Annotated[float, Parameter(help="points that the old classes may lose before you are asked")] = 5.0,
    trust: Trust = None,
) -> None:
    """Open a model in the browser: add photos, learn, try, take back."""
    require_studio("studio")
    if not 0 <= max_drop <= 100:
        raise UserError(f"max_drop: {max_drop} is no number of points of accuracy; give 0 to 100")
    from ssil.studio.access import make_access
    from ssil.studio.application import ServerSettings, listen, run_server, studio_server

    token = os.environ.get(TOKEN) or None
    make_access(host, port, name or (), token)  # fails before anything is opened
    with listen(host, port) as listening:
        port = listening.getsockname()[1]
        access = make_access(host, port, name or (), token)
        server = studio_server(ServerSettings(model, access, trusted=trust or (), max_drop=max_drop))
        here, others = (f"{address_of(one, port)}/enter?token={access.token}" for one in reached_at(host))
        print(f"{printable(model)} is at {here}", flush=True)
        if others != here:
            print(f"from other devices in this network: {others}", flush=True)
        if browser:
            webbrowser.open(here)
        run_server(server, listening)


def reached_at(host: str) -> tuple[str, str]:
    """Return the address by which this computer reaches a server that listens on `host`, and that for others.

    >>> reached_at("127.0.0.1")
    ('127.0.0.1', '127.0.0.1')
    """
    if host not in {"0.0.0.0", "::"}:
        return host, host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: the system chooses the address that it would send from
            return "127.0.0.1", str(probe.getsockname()[0])
        except OSError:  # no network
            return "127.0.0.1", "127.0.0.1"
