"""Requests per second and latencies of `ssil serve`, beside the bare network in ONNX Runtime, in one run.

The model is made for it: EfficientNet-Lite0 with 10 classes at 224 pixels. Clients are threads of another process, each
with one connection, each request has one JPEG of 256 pixels. The bare network predicts the same image, decoded and
resized once, one at a time, as fast as it can. Both are measured in turns, so that what else the machine does is the
same for both. During the last turn the current version changes twice. The last columns are the processor's time per
request of the server, and per image of the network alone: they hardly depend on what else the machine does.

    python benchmarks/serve.py [--seconds 10] [--turns 3]
"""

import argparse
import multiprocessing
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import simplejpeg

from ssil.classifier.exported_model import load_predictor
from ssil.classifier.prediction_inputs import read_view
from ssil.classifier.publish_update import publish_update
from ssil.classifier.versions import VersionedDirectory

CLIENTS = (1, 8, 64)
CLASSES, IMAGES, SIDE = 10, 6, 256


def photo(label: int, number: int) -> bytes:
    """A JPEG of coarse patches with noise, about as large as a photograph of its size."""
    own, noise = np.random.default_rng(label), np.random.default_rng([label, number])
    patches = np.kron(own.integers(256, size=(8, 8, 3)), np.ones((SIDE // 8, SIDE // 8, 1)))
    pixels = (patches + noise.normal(0, 20, (SIDE, SIDE, 3))).clip(0, 255).astype(np.uint8)
    return bytes(simplejpeg.encode_jpeg(pixels, 90))


def make_model(root: Path) -> Path:
    for label in range(CLASSES):
        folder = root / "photos" / f"class {label}"
        folder.mkdir(parents=True)
        for number in range(IMAGES):
            (folder / f"{number}.jpg").write_bytes(photo(label, number))
    publish_update(root / "model", str(root / "photos"), {})
    return root / "model"


@contextmanager
def served(model: Path) -> Iterator[tuple[str, str, int]]:
    words = [sys.executable, "-m", "ssil", "serve", str(model), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        found = re.search(r"(http://\S+:\d+)/enter\?token=(\S+)", process.stdout.readline() if process.stdout else "")
        assert found
        yield found[1], found[2], process.pid
        process.send_signal(signal.SIGTERM)


def request_bytes(address: str, token: str, data: bytes) -> bytes:
    """A whole request, as `curl -F images=@a.jpg` sends it."""
    head = (
        '--edge\r\nContent-Disposition: form-data; name="images"; filename="a.jpg"\r\nContent-Type: image/jpeg\r\n\r\n'
    )
    body = head.encode() + data + b"\r\n--edge--\r\n"
    lines = [
        "POST /predict HTTP/1.1",
        f"Host: {address.removeprefix('http://')}",
        f"Authorization: Bearer {token}",
        "Content-Type: multipart/form-data; boundary=edge",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def ask(address: str, token: str, data: bytes, until: float) -> list[float]:
    """Send requests one after the other; return the seconds of each, negative if it failed.

    The connection is a bare socket: a client in Python would take more of the two cores than the server's own work.
    """
    found, (host, port) = list[float](), address.removeprefix("http://").split(":")
    message = request_bytes(address, token, data)
    with socket.create_connection((host, int(port)), 60) as connection, connection.makefile("rb") as answers:
        while time.monotonic() < until:
            started = time.monotonic()
            connection.sendall(message)
            good = answers.readline().startswith(b"HTTP/1.1 200")
            length = 0
            while (line := answers.readline().strip().lower()) != b"":
                length = int(line.rpartition(b":")[2]) if line.startswith(b"content-length:") else length
            good &= b'"error":null' in answers.read(length)
            seconds = time.monotonic() - started
            found.append(seconds if good else -seconds)
    return found


def load(address: str, token: str, data: bytes, clients: int, seconds: float) -> list[float]:
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(clients) as pool:
        asked = [pool.submit(ask, address, token, data, until) for _ in range(clients)]
        return [one for client in asked for one in client.result()]


def processor_seconds(process: int) -> float:
    """The time that a process has computed, on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare(model: Path, data: bytes, seconds: float) -> tuple[float, float]:
    """Return the images per second of the network alone, and the processor's milliseconds of each."""
    predictor = load_predictor(model)
    views, count, started, before = (
        read_view(data, predictor.preprocessing)[None],
        0,
        time.monotonic(),
        time.process_time(),
    )
    while time.monotonic() - started < seconds:
        list(predictor.predict(["a"], views, 5))
        count += 1
    return count / (time.monotonic() - started), 1000 * (time.process_time() - before) / count


def change_versions(model: Path, seconds: float) -> None:
    """Make the version current anew, twice."""
    for _ in range(2):
        time.sleep(seconds / 3)
        VersionedDirectory(model).point_to(1)


class Turns:
    """What was measured with one number of clients."""

    def __init__(self) -> None:
        self.times, self.rates, self.alone = list[float](), list[float](), list[float]()
        self.costs, self.costs_alone = list[float](), list[float]()

    def add(self, times: list[float], seconds: float, cost: float, alone: tuple[float, float]) -> None:
        """Add a turn: the times of its requests, and what the server and the bare network took."""
        self.times += times
        self.rates.append(len(times) / seconds)
        self.costs.append(1000 * cost / len(times))
        self.alone.append(alone[0])
        self.costs_alone.append(alone[1])

    def line(self, clients: int) -> str:
        """Return the medians of all turns."""
        failed, late = sum(one < 0 for one in self.times), np.quantile(np.abs(self.times), [0.5, 0.99]) * 1000
        ratios = [one / other for one, other in zip(self.rates, self.alone, strict=True)]
        shown = f"{statistics.median(ratios):.2f} ({', '.join(f'{one:.2f}' for one in ratios)})"
        costs = statistics.median(self.costs), statistics.median(self.costs_alone)
        rates = f"{clients:7d}  {statistics.median(self.rates):10.1f}  {late[0]:6.0f}  {late[1]:6.0f}  {failed:6d}"
        alone = f"{statistics.median(self.alone):13.1f}  {shown:24s}"
        return f"{rates}  {alone}  {costs[0]:6.1f} {costs[1]:6.1f}  {costs[1] / costs[0]:.2f}"


def measure(model: Path, seconds: float, turns: int) -> None:
    data = photo(0, 99)
    with served(model) as (address, token, process), multiprocessing.get_context("spawn").Pool(1) as other:
        other.apply(load, (address, token, data, 1, 1.0))  # both are warm
        print(
            "clients  requests/s  p50 ms  p99 ms  failed  bare images/s  ratio (by turn)           CPU ms, bare, ratio"
        )
        for clients in CLIENTS:
            found = Turns()
            for turn in range(turns):
                if turn == turns - 1:
                    threading.Thread(target=change_versions, args=(model, seconds), daemon=True).start()
                before = processor_seconds(process)
                times = other.apply(load, (address, token, data, clients, seconds))
                cost = processor_seconds(process) - before
                found.add(times, seconds, cost, bare(model, data, seconds))
            print(found.line(clients), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count() or 1))
    with TemporaryDirectory() as scratch:
        measure(make_model(Path(scratch)), given.seconds, given.turns)
