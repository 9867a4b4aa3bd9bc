"""Requests per second and latencies of `ssil serve`, beside the bare network in ONNX Runtime, in one run.

The model is made for it: EfficientNet-Lite0 with 10 classes at 224 pixels. Clients are threads of another process, each
with one connection, each request has one JPEG of 256 pixels. The bare network predicts the same image, decoded and
resized once, one at a time, as fast as it can. Both are measured in turns, so that what else the machine does is the
same for both. During the last turn the current version changes twice.

    python benchmarks/serve.py [--seconds 10] [--turns 3]
"""

import argparse
import multiprocessing
import os
import re
import signal
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

import httpx2
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
def served(model: Path) -> Iterator[tuple[str, str]]:
    words = [sys.executable, "-m", "ssil", "serve", str(model), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        found = re.search(r"(http://\S+:\d+)/enter\?token=(\S+)", process.stdout.readline() if process.stdout else "")
        assert found
        yield found[1], found[2]
        process.send_signal(signal.SIGTERM)


def ask(address: str, token: str, data: bytes, until: float) -> list[float]:
    """Send requests one after the other; return the seconds of each, negative if it failed."""
    found = []
    with httpx2.Client(base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
        while time.monotonic() < until:
            started = time.monotonic()
            answer = client.post("/predict", files={"images": ("a.jpg", data)})
            seconds = time.monotonic() - started
            found.append(seconds if answer.status_code == 200 else -seconds)
    return found


def load(address: str, token: str, data: bytes, clients: int, seconds: float) -> list[float]:
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(clients) as pool:
        asked = [pool.submit(ask, address, token, data, until) for _ in range(clients)]
        return [one for client in asked for one in client.result()]


def bare(model: Path, data: bytes, seconds: float) -> float:
    """Return the images per second of the network alone."""
    predictor = load_predictor(model)
    views, count, started = read_view(data, predictor.preprocessing)[None], 0, time.monotonic()
    while time.monotonic() - started < seconds:
        list(predictor.predict(["a"], views, 5))
        count += 1
    return count / (time.monotonic() - started)


def change_versions(model: Path, seconds: float) -> None:
    """Make the version current anew, twice."""
    for _ in range(2):
        time.sleep(seconds / 3)
        VersionedDirectory(model).point_to(1)


def measure(model: Path, seconds: float, turns: int) -> None:
    data = photo(0, 99)
    with served(model) as (address, token), multiprocessing.get_context("spawn").Pool(1) as other:
        other.apply(load, (address, token, data, 1, 1.0))  # both are warm
        print("clients  requests/s  p50 ms  p99 ms  failed  bare images/s  ratio (by turn)")
        for clients in CLIENTS:
            ratios, times, rates, alone = list[float](), list[float](), list[float](), list[float]()
            for turn in range(turns):
                if turn == turns - 1:
                    threading.Thread(target=change_versions, args=(model, seconds), daemon=True).start()
                found = other.apply(load, (address, token, data, clients, seconds))
                rates.append(len(found) / seconds)
                alone.append(bare(model, data, seconds))
                ratios.append(rates[-1] / alone[-1])
                times += found
            failed, good = sum(one < 0 for one in times), [abs(one) for one in times]
            middle, late = (1000 * float(np.quantile(good, share)) for share in (0.5, 0.99))
            shown = f"{statistics.median(ratios):.2f} ({', '.join(f'{one:.2f}' for one in ratios)})"
            print(f"{clients:7d}  {statistics.median(rates):10.1f}  {middle:6.0f}  {late:6.0f}  {failed:6d}", end="  ")
            print(f"{statistics.median(alone):13.1f}  {shown}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count() or 1))
    with TemporaryDirectory() as scratch:
        measure(make_model(Path(scratch)), given.seconds, given.turns)
