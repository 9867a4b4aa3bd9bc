"""What each part of a run costs as classes become many: seconds and memory for 100 to 100,000 classes.

python benchmarks/scale.py [--classes 100,1000,10000,100000] [--repeats 5] [--plot PNG]

Features of 512 numbers stand for images, so that nothing but what depends on the classes is measured: ten tasks, the
last of which is being learnt. Times are CPU time of one thread, the least of the repeats, so that other work on the
machine counts little. Memory is how far the process's peak rises. "growth" is the exponent between the two largest
numbers of classes, of the cost of all classes together: 1 is linear. "held" is by how many numbers for each class and
image the peak grows with more images (at up to 10,000 classes): an array of classes x images is 1.

python benchmarks/scale.py --network

prints what resnet18 costs for an image of 224 pixels: a step of the student, and the look of a teacher.
"""

import argparse
import ctypes
import math
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch

from scale_parts import PARTS, Act, Part, Scene, scene
from ssil.learning.execution import M_MMAP_MAX, keep_freed_memory
from ssil.nn.heads import LinearHead
from ssil.nn.network import build, folded

M_MMAP_THRESHOLD = -3


class Cost(NamedTuple):
    """Of one part."""

    seconds: float
    peak: int
    held: float | None
    """Numbers kept for each class and image."""


def cost(part: Part, of: Scene, repeats: int) -> Cost:
    act = part.ready(of, part.images)
    act()  # the first time makes buffers that stay
    seconds, peak = min(timed(act) for _ in range(repeats)), peak_growth(act)
    return Cost(seconds, peak, held(part, of, peak) if part.images else None)


def held(part: Part, of: Scene, peak: int, times: int = 20) -> float | None:
    """Numbers that are kept for each class and image, by what so many times the images take more."""
    if of.classes.seen > 10_000:  # it would be told by less memory
        return None
    more = peak_growth(part.ready(of, times * part.images)) - peak
    return more / ((times - 1) * part.images * of.classes.seen * 4)


def timed(act: Act) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def peak_growth(act: Act) -> int:
    """How far above what is held now the memory of a process that does it rises."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, str(_peak_growth(act)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(reader, 99))


def _peak_growth(act: Act) -> int:
    """Of this process, if all that is freed is given back at once."""
    library = ctypes.CDLL(None)
    library.mallopt(M_MMAP_MAX, 2**16)
    library.mallopt(M_MMAP_THRESHOLD, 2**16)
    library.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = resident("VmRSS")
    act()
    return resident("VmHWM") - before


def resident(name: str) -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(lines[name].split()[0])


Costs = dict[str, dict[int, Cost]]


def measure(numbers: list[int], repeats: int) -> Costs:
    costs: Costs = {part.name: {} for part in PARTS}
    for classes in numbers:
        of = scene(classes)
        for part in PARTS:
            costs[part.name][classes] = cost(part, of, repeats)
            print(f"{classes} classes, {part.name}: {costs[part.name][classes]}", file=sys.stderr, flush=True)
    return costs


def table(costs: Costs) -> str:
    numbers = [*next(iter(costs.values()))]
    head = ["part", *(f"{classes:,}" for classes in numbers), "growth", "held"]
    rows = [head, ["---"] * len(head), *(_row(part, [*costs[part.name].values()], numbers) for part in PARTS)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(part: Part, found: list[Cost], numbers: list[int]) -> list[str]:
    cells = [f"{_time(one.seconds)}, {one.peak / 1e6:,.0f} MB" for one in found]
    kept = [one.held for one in found if one.held is not None]
    return [part.name, *cells, f"{growth(part, found, numbers):.2f}", f"{kept[-1]:.1f}" if kept else "-"]


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def growth(part: Part, found: list[Cost], numbers: list[int]) -> float:
    """The exponent of the cost of all classes."""
    (before, after), (few, many) = found[-2:], numbers[-2:]
    return part.each_class + math.log(after.seconds / before.seconds) / math.log(many / few)


def plot(costs: Costs, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure, sides = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for name, found in costs.items():
        sides[0].loglog([*found], [one.seconds for one in found.values()], marker="o", label=name)
        sides[1].loglog([*found], [max(one.peak, 1e5) / 1e6 for one in found.values()], marker="o")
    for side, title in zip(sides, ("seconds", "memory at its peak, MB"), strict=True):
        side.set(xlabel="classes", title=title)
        side.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize="small")
    figure.savefig(path, dpi=80)


def network(repeats: int, batch: int = 16) -> None:
    """Print the cost of the network itself, for an image."""
    generator = torch.Generator().manual_seed(0)
    student = build("resnet18", LinearHead, 3, "batch", generator).grow(1000, generator)
    teacher = folded(student.clone())
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(batch, 3, 224, 224, generator=generator).to(memory_format=torch.channels_last)

    def learn() -> None:
        optimizer.zero_grad()
        student(images).logits.square().mean().backward()
        optimizer.step()

    for name, act in (("a step of the student", learn), ("a look of the teacher", lambda: teacher(images))):
        with torch.set_grad_enabled(act is learn):
            act()
            print(f"{name}: {min(timed(act) for _ in range(repeats)) / batch * 1000:.0f} ms an image")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", default="100,1000,10000,100000")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--network", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()  # as `ssil run` does
    print(f"CPU time of one thread, torch {torch.__version__}, the least of {arguments.repeats} times\n")
    if arguments.network:
        network(arguments.repeats)
        return
    costs = measure([int(number) for number in arguments.classes.split(",")], arguments.repeats)
    print(table(costs))
    if arguments.plot:
        plot(costs, arguments.plot)


if __name__ == "__main__":
    main()
