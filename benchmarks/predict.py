"""How fast a model names pictures: `ssil predict` against its bare network, side by side in one run.

python benchmarks/predict.py [--images 1000] [--rounds 5]
python benchmarks/predict.py --startup [--rounds 5]

Small pictures (64 pixels, half of them PNG, half JPEG) lie in a folder. In each round `ssil predict FOLDER` answers all
of them, its words going nowhere, from the moment when the model is loaded; and the bare network looks at the same
pictures, decoded and normalised already, in batches of the same size. The two take turns, in one process. Seconds are
of the processor, all threads together, so that a machine with other work to do can measure too; the ratio is the
network's by those of `ssil predict`, the median over the rounds.

`--startup` runs `ssil predict` on one picture, each time in a new process, in turns with one that only imports torch;
seconds are the fastest of the rounds, by the clock and of the processor.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ssil.classifier.classifier_settings import make_settings
from ssil.classifier.images import load_images
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.prediction import Classifier
from ssil.classifier.prediction_inputs import BATCH_SIZE
from ssil.classifier.update import update
from ssil.cli.predict import predict
from ssil.data.assemble import make_transform

SIZE = 64
NETWORKS = {"resnet18": 64, "resnet14": 32}
"""And the size at which they see pictures; the first as `ssil learn` makes it."""


def photos(folder: Path, images: int) -> Path:
    random = np.random.default_rng(0)
    for number in range(images):
        coarse = random.integers(256, size=(SIZE // 8, SIZE // 8, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
        path = folder / f"class{number % 10}" / f"{number}.{('png', 'jpg')[number // 10 % 2]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)
    return folder


def made(folder: Path, backbone: str, images: Path) -> Classifier:
    """A model of ten classes; how well it knows them does not matter."""
    settings = make_settings({"backbone": backbone, "image_size": NETWORKS[backbone], "epochs": 1})
    arrived, _ = load_images(str(images))
    classifier = update(None, settings, arrived).classifier
    directory = ModelDirectory(folder)
    with directory.locked():
        directory.publish(classifier, [{}])
    return classifier


def seconds(act: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    started = clock()
    act()
    return clock() - started


@torch.inference_mode()
def bare(classifier: Classifier, batches: Sequence[Tensor]) -> None:
    for batch in batches:
        classifier.snapshot.network(batch)


def answer(model: Path, pictures: Path) -> None:
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        predict(model, str(pictures))


def _turn(classifier: Classifier, batches: Sequence[Tensor], model: Path, pictures: Path) -> tuple[float, float]:
    opening = seconds(lambda: ModelDirectory(model).load())
    return seconds(lambda: bare(classifier, batches)), seconds(lambda: answer(model, pictures)) - opening


def compare(root: Path, images: int, rounds: int) -> None:
    pictures, few = photos(root / "pictures", images), photos(root / "few", 20)
    print("| network | pictures a second, bare | `ssil predict` | ratio |\n|---|---|---|---|")
    for backbone, size in NETWORKS.items():
        classifier = made(root / backbone, backbone, few)
        classifier.snapshot.network.eval()
        pixels = torch.randint(256, (images, size, size, 3), dtype=torch.uint8)
        batches = make_transform(classifier.settings.preprocessing()).test(pixels, torch.float32).split(BATCH_SIZE)
        turns = [_turn(classifier, batches, root / backbone, pictures) for _ in range(rounds)]
        network, whole = (median(column) for column in zip(*turns, strict=True))
        ratio = median(one / other for one, other in turns)
        print(f"| {backbone}, {size} pixels | {images / network:,.0f} | {images / whole:,.0f} | {ratio:.2f} |")


def run(*command: str) -> tuple[float, float]:
    """What a process takes: seconds by the clock, and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = seconds(
        lambda: subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL), time.perf_counter
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def startup(root: Path, rounds: int) -> None:
    pictures = photos(root / "few", 20)
    made(root / "model", "resnet18", pictures)
    one = str(next(pictures.rglob("*.jpg")))
    commands = {
        "python -c 'import torch'": ("-c", "import torch"),
        "ssil predict MODEL PICTURE": ("-m", "ssil", "predict", str(root / "model"), one),
    }
    turns = [{name: run(*command) for name, command in commands.items()} for _ in range(rounds)]
    print("| command | seconds by the clock | of the processor |\n|---|---|---|")
    for name in commands:
        wall, busy = (min(turn[name][column] for turn in turns) for column in (0, 1))
        print(f"| `{name}` | {wall:.1f} | {busy:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--startup", action="store_true")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        if arguments.startup:
            startup(Path(folder), arguments.rounds)
        else:
            compare(Path(folder), arguments.images, arguments.rounds)


if __name__ == "__main__":
    main()
