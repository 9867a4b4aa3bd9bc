"""How fast a model names images: `ssil predict` by ONNX Runtime against the same by PyTorch, side by side in one run.

python benchmarks/predict.py [--images 1000] [--rounds 5] [--network efficientnet_lite0]
python benchmarks/predict.py --startup [--rounds 8]

A folder holds images as large as the network's users have them: 64 pixels (half PNG, half JPEG) for a ResNet-18 at 64
pixels, JPEGs of 500 x 375 for EfficientNet-Lite0 at 224, with one view of an image and with two, the default. In each
round `ssil predict FOLDER` answers all of them twice, its words going nowhere, once the model is loaded:
by the version's `model.onnx`, and by PyTorch, as it does for a version without that file. The two take turns, in one
process, with one thread that computes. Seconds are of the processor, all threads together, so that a machine with other
work to do can measure too; the ratio is PyTorch's by ONNX Runtime's, the median over the rounds.

`--startup` runs `ssil predict` on one image, each time in a new process, for the model as it is published and for a
copy without `model.onnx`; seconds are the fastest of the rounds, by the clock and of the processor.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from PIL import Image

from ssil.classifier.classifier_settings import make_settings, with_weights_settings
from ssil.classifier.exported_model import Predictor, load_predictor
from ssil.classifier.images import load_images
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_files import read_checked_json, write_checked_json
from ssil.classifier.prediction_inputs import read_inputs
from ssil.classifier.update import update
from ssil.nn.first_weights import find_first_weights, read_first_weights


class Case(NamedTuple):
    """A network, the size at which it sees images, the size of the images in the folder, their formats, its weights."""

    backbone: str
    size: int
    width: int
    height: int
    suffixes: tuple[str, ...]
    init: str | None = None
    views: int = 1

    @property
    def name(self) -> str:
        """A folder's name."""
        return f"{self.backbone}-{self.views}"

    @property
    def label(self) -> str:
        """What the table calls it."""
        return f"{self.backbone}, {self.size} pixels{', two views' * (self.views > 1)}"


CASES = (
    Case("resnet18", 64, 64, 64, ("png", "jpg")),
    Case("efficientnet_lite0", 224, 500, 375, ("jpg",), "efficientnet_lite0"),
    Case("efficientnet_lite0", 224, 500, 375, ("jpg",), "efficientnet_lite0", 2),
)


def photos(folder: Path, case: Case, images: int) -> Path:
    random = np.random.default_rng(0)
    for number in range(images):
        coarse = random.integers(256, size=(case.height // 8, case.width // 8, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((case.width, case.height), Image.Resampling.BICUBIC)
        suffix = case.suffixes[number // 10 % len(case.suffixes)]
        path = folder / f"class{number % 10}" / f"{number}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)
    return folder


def publish(folder: Path, case: Case, images: Path) -> Path:
    """A model of ten classes; how well it knows them does not matter."""
    given = {"backbone": case.backbone, "image_size": case.size, "epochs": 1, "method": "eeil", "views": case.views}
    weights = find_first_weights(case.init) if case.init else None
    settings = make_settings(with_weights_settings({**given, "freeze": weights is not None}, weights))
    arrived, _ = load_images(str(images))
    made = update(None, settings, arrived, init=read_first_weights(weights) if weights else None)
    directory = ModelDirectory(folder)
    with directory.locked():
        problem = directory.publish(made.classifier, [{}]).onnx_problem
    assert problem is None, problem
    return folder


def without_onnx(model: Path, copy: Path) -> Path:
    shutil.copytree(model, copy)
    path = copy / "versions" / "0001" / "model.json"
    said = read_checked_json(path)
    del said["onnx"]
    write_checked_json(path, said)
    (path.parent / "model.onnx").unlink()
    return copy


def seconds(act: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    started = clock()
    act()
    return clock() - started


def answer(predictor: Predictor, images: Path) -> None:
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        for names, views, _ in read_inputs([str(images)], BytesIO(), predictor.preprocessing):
            for prediction in predictor.predict(names, views, 1):
                print(prediction)


def compare(root: Path, cases: Sequence[Case], images: int, rounds: int) -> None:
    print("| network | images a second, PyTorch | ONNX Runtime | ratio |\n|---|---|---|---|")
    for case in cases:
        folder = photos(root / case.name / "images", case, images)
        few = photos(root / case.name / "few", case, 20)
        model = publish(root / case.name / "model", case, few)
        exported = load_predictor(model, threads=1)
        by_torch = load_predictor(without_onnx(model, root / case.name / "copy"), threads=1)
        turns = [[seconds(partial(answer, one, folder)) for one in (by_torch, exported)] for _ in range(rounds)]
        old, new = (images / median(column) for column in zip(*turns, strict=True))
        ratio = median(one / other for one, other in turns)
        print(f"| {case.label} | {old:,.0f} | {new:,.0f} | {ratio:.2f} |", flush=True)


def run(*command: str) -> tuple[float, float]:
    """What a process takes: seconds by the clock, and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = seconds(
        lambda: subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL), time.perf_counter
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def startup(root: Path, rounds: int) -> None:
    commands: dict[str, tuple[str, ...]] = {"python -c 'import torch'": ("-c", "import torch")}
    for case in CASES:
        images = photos(root / case.name / "few", case, 20)
        model = publish(root / case.name / "model", case, images)
        one, copy = str(next(images.rglob("*.jpg"))), without_onnx(model, root / case.name / "copy")
        commands[f"{case.label}, PyTorch"] = ("-m", "ssil", "predict", str(copy), one)
        commands[f"{case.label}, ONNX Runtime"] = ("-m", "ssil", "predict", str(model), one)
    turns = [{name: run(*command) for name, command in commands.items()} for _ in range(rounds)]
    print("| process | seconds by the clock | of the processor |\n|---|---|---|")
    for name in commands:
        wall, busy = (min(turn[name][column] for turn in turns) for column in (0, 1))
        print(f"| {name} | {wall:.2f} | {busy:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--startup", action="store_true")
    parser.add_argument("--network", choices=sorted({case.backbone for case in CASES}), help="this one alone")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        if arguments.startup:
            startup(Path(folder), arguments.rounds)
        else:
            chosen = [case for case in CASES if arguments.network in (None, case.backbone)]
            compare(Path(folder), chosen, arguments.images, arguments.rounds)


if __name__ == "__main__":
    main()
