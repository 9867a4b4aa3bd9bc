"""How fast an export in 8-bit integers is: two ONNX files of `ssil export`, side by side in one run.

OMP_NUM_THREADS=1 python benchmarks/int8.py LARGE.onnx SMALL.onnx [--images 50] [--rounds 5]

Both answer the same random images, one at a time, in turns. Seconds are of the processor, with one thread; the ratio is
the median over the rounds.
"""

import argparse
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from predict import seconds
from ssil.classifier.exported_model import open_session, run_views


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs=2, type=Path)
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    sessions = [open_session(path.read_bytes(), 1) for path in arguments.files]
    shape = sessions[0].get_inputs()[0].shape[1:]
    views = np.random.default_rng(0).integers(256, size=(arguments.images, *shape), dtype=np.uint8)
    turns = [[seconds(partial(run_views, one, views)) for one in sessions] for _ in range(arguments.rounds)]
    large, small = (1000 * median(column) / arguments.images for column in zip(*turns, strict=True))
    ratio = median(one / other for one, other in turns)
    sizes = ", ".join(f"{path.stat().st_size / 1e6:.1f}" for path in arguments.files)
    print(f"{large:.2f} and {small:.2f} ms an image, ratio {ratio:.2f}; {sizes} MB")


if __name__ == "__main__":
    main()
