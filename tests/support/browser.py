"""Headless Chromium, controlled over a pipe by its DevTools protocol: no driver, no further package."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 120.0
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe")
SHIM = (
    "import os, sys; _, read, write, *command = sys.argv; os.dup2(int(read), 3); os.dup2(int(write), 4); "
    "os.execv(command[0], command)"
)
"""The browser reads commands from file descriptor 3 and writes answers to 4."""

TROUBLE = {"Runtime.exceptionThrown", "Network.loadingFailed"}


def path() -> str:
    """Return the browser's path; without one skip the test, or in CI on Linux, where .ci/run installs it, fail it."""
    if found := next(filter(None, map(shutil.which, NAMES)), None):
        return found
    reason = f"none of {', '.join(NAMES)} is on PATH; Debian: apt-get install chromium"
    needed = os.environ.get("CI") == "true" and sys.platform == "linux"
    return pytest.fail(reason) if needed else pytest.skip(reason)


class Browser:
    """A browser with one page; `trouble` lists logged errors and failed requests."""

    def __init__(self, profile: Path) -> None:
        command = [path(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        (theirs, self._to), (self._from, ours) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs, ours)]
        shim = [sys.executable, "-c", SHIM, *map(str, ends)]
        self._process = subprocess.Popen([*shim, *command], pass_fds=ends, stderr=subprocess.DEVNULL)
        for end in (theirs, ours, *ends):
            os.close(end)
        self._buffer, self._number, self._session = b"", 0, ""
        self.trouble: list[str] = []

    def __enter__(self) -> Self:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def open(self, file: Path, width: int, height: int = 900) -> None:
        """Open a file in a window of this size, without waiting for the page to load."""
        mobile = width < 600
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.send("Page.navigate", url=file.absolute().as_uri())

    def ask(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.send("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript condition holds."""
        end = time.monotonic() + SECONDS
        while not self.ask(condition):
            assert time.monotonic() < end, f"{condition} never came true; {self.trouble}"
            time.sleep(0.1)

    def screenshot(self, file: Path) -> None:
        """Write the whole page as PNG."""
        data = self.send("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return a command's result, and record errors among the events before it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._record_trouble(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert select.select([self._from], [], [], SECONDS)[0], "the browser does not answer"
            found = os.read(self._from, 1 << 20)
            assert found, "the browser has ended"
            self._buffer += found
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def _record_trouble(self, event: dict[str, Any]) -> None:
        details = event.get("params", {})
        logged = details.get("entry", {}).get("level") == "error" or details.get("type") in {"error", "assert"}
        if event["method"] in TROUBLE or (event["method"] in {"Log.entryAdded", "Runtime.consoleAPICalled"} and logged):
            self.trouble.append(json.dumps(details)[:500])
