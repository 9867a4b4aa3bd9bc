"""How fast photographs become training batches: ssil against the usual pipeline, side by side in one run.

python benchmarks/loading.py PHOTOS [--seconds 20] [--rounds 3]
python benchmarks/loading.py PHOTOS --verification [--rounds 50]
python benchmarks/loading.py --startup [--images 1200000]

PHOTOS is a folder with a sub-folder a class. Three pipelines take turns, each in a process of its own, with the same
files, on the same cores (two are right for it: `taskset -c 0,1`). Each delivers batches of 64 random parts of
photographs (8 % to 100 % of the area, sides 3:4 to 4:3), resized to 224 pixels, half of them mirrored, as normalised
float32:

- usual: torch's DataLoader with two processes; Pillow decodes, crops and resizes; then a tensor, normalised;
- files: ssil reads the same files, with three decoding threads;
- store: ssil reads a store with a short side of 256 pixels (`ssil data prepare --short-side 256`).

What is counted are images a second, after some batches that warm up. Memory is the peak of the summed proportional set
sizes (Pss) of the pipeline's processes. `--startup` makes a store of many tiny images, and opens it twice, each time in
a new process; the second time counts (what is read excludes pages that are mapped; memory is growth of Pss).

`--verification` tells what the checksums of a store's images cost: in each round the store is opened three times, and
every image becomes part of a batch once, with the same crops; nothing is compared when it is read, or its CRC-32 (as
`ssil run` does at the first read), or its SHA-256. What is counted is the time of all cores, so that other programs on
the machine matter little.
"""

import argparse
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean, median, quantiles, stdev
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from ssil.data.augmentation import Transform
from ssil.data.crop_boxes import CROP_NUMBERS, random_box
from ssil.data.data_settings import DataSettings
from ssil.data.encoded_images import Encoded
from ssil.data.image_index import Files, ImageIndex, Preprocessing
from ssil.data.load import find_image_index, load
from ssil.data.prefetch import prefetch
from ssil.data.store.reader import StoredImages
from ssil.data.store.writer import prepare
from ssil.learning.execution import keep_freed_memory

SIZE, BATCH, WORKERS, SHORT_SIDE, WARM = 224, 64, 2, 256, 6
PREPROCESSING = Preprocessing(SIZE)
Pipeline = Generator[Tensor, None, None]


class Usual(Dataset[Tensor]):
    """Photographs, as most programs read them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self.mean, self.std = (torch.tensor(values).view(3, 1, 1) for values in (PREPROCESSING.mean, PREPROCESSING.std))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor:
        with self.paths[index].open("rb") as file:
            image = Image.open(file).convert("RGB")
        *crop, mirrored = torch.rand(CROP_NUMBERS + 1).tolist()
        left, top, width, height = random_box(*image.size, crop)
        image = image.crop((left, top, left + width, top + height)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        if mirrored < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
        return pixels.float().div(255).sub_(self.mean).div_(self.std)


def encoded(path: Path) -> tuple[Encoded, Transform]:
    """The training images of a folder or a store, not held in memory."""
    dataset = load(
        DataSettings(dataset=str(path), image_size=SIZE, augment="crop", in_memory=False), threads=WORKERS + 1
    )
    assert isinstance(dataset.train.images, Encoded)
    return dataset.train.images, dataset.transform


def paths(photos: Path) -> list[Path]:
    """The files of a folder's training images."""
    images, _ = encoded(photos)
    assert isinstance(images.source, Files)
    return [images.source.root / images.source.names[row] for row in images.rows]


class Endless(Sampler[int]):
    """Random indices until it is stopped."""

    def __init__(self, length: int) -> None:
        self.length, self.stopped = length, False

    def __iter__(self) -> Iterator[int]:
        while not self.stopped:
            yield int(torch.randint(self.length, ()))


def usual(files: Sequence[Path]) -> Pipeline:
    sampler = Endless(len(files))
    batches = iter(DataLoader(Usual(files), BATCH, sampler=sampler, num_workers=WORKERS))
    try:
        yield from batches
    finally:  # workers that are stopped amid their work don't always go quietly
        sampler.stopped = True
        for _ in batches:
            pass


def ours(path: Path) -> Pipeline:
    keep_freed_memory()  # as `ssil run` does
    images, transform = encoded(path)
    generator = torch.Generator().manual_seed(0)
    draws = (transform.draw(BATCH, generator) for _ in count())
    batches = ((torch.randint(len(images), (BATCH,), generator=generator), drawn) for drawn in draws)
    for pixels, drawn in prefetch(lambda batch: (images.fetch(*batch), batch[1]), batches, depth=2, threads=2):
        yield transform.train(pixels, drawn)


def pace(batches: Iterator[Tensor], seconds: float) -> float:
    """Images a second."""
    for _ in range(WARM):
        next(batches)
    started, images = time.perf_counter(), 0
    while time.perf_counter() < started + seconds:
        images += len(next(batches))
    return images / (time.perf_counter() - started)


def run(pipeline: Callable[[Any], Pipeline], of: object, seconds: float, answer: Connection) -> None:
    """Send the pace of a pipeline."""
    torch.set_num_threads(1)
    with closing(pipeline(of)) as batches:
        answer.send(pace(batches, seconds))


def opening(path: Path, answer: Connection) -> None:
    """Send what opening a store takes: seconds, bytes read, bytes read from the disk, bytes of memory."""
    before, memory, started = transfers(), pss(os.getpid()), time.perf_counter()
    dataset = encoded(path)
    seconds, after = time.perf_counter() - started, transfers()
    read, disk = (after[name] - before[name] for name in ("rchar", "read_bytes"))
    answer.send((seconds, read, disk, pss(os.getpid()) - memory))
    del dataset


def transfers() -> dict[str, int]:
    """What this process has read and written."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def watched(act: Callable[..., None], *arguments: object) -> tuple[Any, int]:
    """What a new process sends, and the peak of the memory of it and its descendants, in bytes."""
    context = get_context("spawn")
    answer, sender = context.Pipe(duplex=False)
    process = context.Process(target=act, args=(*arguments, sender))
    process.start()
    sender.close()
    peak = 0
    while not answer.poll(0.5):
        peak = max(peak, sum(map(pss, tree(process.pid or 0))))
    sent = answer.recv()
    process.join()
    return sent, peak


def tree(root: int) -> set[int]:
    """A process and its descendants."""
    parents = {int(path.name): parent(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    found, more = {root}, {root}
    while more:
        more = {pid for pid, above in parents.items() if above in more}
        found |= more
    return found


def parent(process: Path) -> int | None:
    with suppress(OSError):
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return None


def pss(pid: int) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return 0


def compare(photos: Path, seconds: float, rounds: int) -> None:
    """Print the table."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        image_index = find_image_index(DataSettings(dataset=str(photos)))
        assert image_index is not None
        prepare(image_index, store, SHORT_SIDE)
        pipelines = {"usual": (usual, paths(photos)), "files": (ours, photos), "store": (ours, store)}
        turns = [{name: watched(run, *what, seconds) for name, what in pipelines.items()} for _ in range(rounds)]
    print("| pipeline | images a second | times the usual | peak memory |\n|---|---|---|---|")
    for name in pipelines:
        paces = [turn[name][0] for turn in turns]
        ratios = [turn[name][0] / turn["usual"][0] for turn in turns]
        memory = max(turn[name][1] for turn in turns) / 1e6
        print(f"| {name} | {spread(paces, 0)} | {spread(ratios, 2)} | {memory:,.0f} MB |")


def verification(photos: Path, rounds: int) -> None:
    """Print what the comparison of checksums costs at the first read of each image."""
    torch.set_num_threads(1)
    reads = {"nothing": StoredImages.read_unverified, "CRC-32": StoredImages.read, "SHA-256": read_by_digest}
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        image_index = find_image_index(DataSettings(dataset=str(photos)))
        assert image_index is not None
        prepare(image_index, store, SHORT_SIDE)
        first_pass(store, StoredImages.read, 0)  # warms up
        turns = [{name: first_pass(store, read, seed) for name, read in reads.items()} for seed in range(rounds)]
    print("| compared | microseconds of a core for an image | more than nothing, in percent: median (quartiles) |")
    print("|---|---|---|")
    for name in reads:
        low, middle, high = quantiles([100 * (turn[name] / turn["nothing"] - 1) for turn in turns], n=4)
        print(
            f"| {name} | {1e6 * median(turn[name] for turn in turns):,.0f} | {middle:.1f} ({low:.1f} to {high:.1f}) |"
        )


def read_by_digest(images: StoredImages, row: int) -> memoryview:
    """Return an encoded image whose SHA-256 was compared, as in stores without CRC-32."""
    data = images.read_unverified(row)
    assert images.is_unchanged(row, data)
    return data


def first_pass(store: Path, read: Callable[[StoredImages, int], memoryview], seed: int) -> float:
    """Return the seconds of all cores for an image, when all images of a store that was just opened become batches."""
    images, transform = encoded(store)
    generator = torch.Generator().manual_seed(seed)
    with patch.object(StoredImages, "read", read):
        started = time.process_time()
        for indices in torch.arange(len(images)).split(BATCH):
            drawn = transform.draw(len(indices), generator)
            transform.train(images.fetch(indices, drawn), drawn)
        return (time.process_time() - started) / len(images)


def spread(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation."""
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):,.{digits}f}{deviation}"


@dataclass(frozen=True)
class Tiny:
    """The same small picture many times: a source."""

    names: tuple[str, ...]
    picture: bytes

    def read(self, index: int) -> bytes:
        """The picture."""
        return self.picture

    def __len__(self) -> int:
        return len(self.names)


def startup(images: int) -> None:
    """Print how long the second opening of a large store takes."""
    picture = BytesIO()
    Image.new("RGB", (8, 8)).save(picture, "jpeg")
    names = tuple(f"{number // 1300:04d}/{number:07d}.jpg" for number in range(images))
    classes = tuple(f"{label:04d}" for label in range(-(-images // 1300)))
    image_index = ImageIndex("tiny", Tiny(names, picture.getvalue()), np.arange(images) // 1300, classes, PREPROCESSING)
    with TemporaryDirectory() as folder:
        prepare(image_index, Path(folder) / "store")
        for _ in range(2):
            (seconds, *sizes), _ = watched(opening, Path(folder) / "store")
    print("| images | seconds to open | read | of it from the disk | memory |\n|---|---|---|---|---|")
    print(f"| {images:,} | {seconds:.2f} | {' | '.join(f'{size / 1e6:.1f} MB' for size in sizes)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, nargs="?", help="a folder with a sub-folder a class")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--startup", action="store_true")
    parser.add_argument("--verification", action="store_true")
    parser.add_argument("--images", type=int, default=1_200_000)
    arguments = parser.parse_args()
    if arguments.startup:
        startup(arguments.images)
    elif arguments.photos and arguments.verification:
        verification(arguments.photos, arguments.rounds)
    elif arguments.photos:
        compare(arguments.photos, arguments.seconds, arguments.rounds)
    else:
        parser.error("give a folder of photographs, or --startup")


if __name__ == "__main__":
    main()
