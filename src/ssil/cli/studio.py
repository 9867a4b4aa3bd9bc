"""`ssil studio`: a model in the browser, for people who would rather look than type."""

import os
import webbrowser
from typing import Annotated

from cyclopts import App, Parameter

from ssil.cli.serve import TOKEN
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

Needs: pip install 'ssil[studio]'

Examples:
  ssil studio birds
  ssil studio birds --no-browser --port 8080""",
)


@app.default
def studio(
    model: Model,
    /,
    *,
    port: Annotated[int, Parameter(help="to listen on; 0 for any that is free")] = 8080,
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

    host = "127.0.0.1"
    with listen(host, port) as listening:
        port = listening.getsockname()[1]
        access = make_access(host, port, token=os.environ.get(TOKEN) or None)
        server = studio_server(ServerSettings(model, access, trusted=trust or (), max_drop=max_drop))
        address = f"http://{host}:{port}/enter?token={access.token}"
        print(f"{printable(model)} is at {address}", flush=True)
        if browser:
            webbrowser.open(address)
        run_server(server, listening)
