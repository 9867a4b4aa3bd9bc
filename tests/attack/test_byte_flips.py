"""A flipped byte in any file of ours is named, or does no harm: no other result, no traceback, no hang."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attacked import SHORT, TRAINING, TRUST, fresh, log
from command_lines import LONG, SEED, Answer, CommandLines, contents, model_result, run_result

FLIPS = 25 if LONG else 5
"""Flips of each kind of file; the long form has 500 of them."""

pytestmark = pytest.mark.slow

TEXT = (".json", ".jsonl", ".csv")
TOLD = ("damaged", "can't be", "not what it should be", "has changed", "is not there")


@dataclass(frozen=True)
class Place:
    """What a use of a directory needs: the server, the directory, a scratch folder, fixtures by name."""

    ssil: CommandLines
    folder: Path
    scratch: Path
    fixture: Callable[[str], Any]


Use = Callable[[Place], tuple[Answer, Any]]
"""Uses a directory by a command line; returns the answer and the result, to be compared."""


def predict(at: Place, *more: object) -> tuple[Answer, Any]:
    answer = at.ssil("predict", at.folder, at.fixture("photos") / "first", "--json", "--top", 9, *TRUST, *more)
    return answer, answer.out


def predict_old(at: Place) -> tuple[Answer, Any]:
    return predict(at, "--version", 1)


def inspect(at: Place) -> tuple[Answer, Any]:
    answer = at.ssil("inspect", at.folder, "--json", *TRUST)
    return answer, answer.out


def history(at: Place) -> tuple[Answer, Any]:
    answer = at.ssil("history", at.folder, "--json")
    return answer, answer.out


def learn(at: Place, *training: object) -> tuple[Answer, Any]:
    answer = at.ssil("learn", at.folder, at.fixture("photos") / "third", *TRUST, *training)
    return answer, model_result(at.folder) if answer.code == 0 else None


def train(at: Place) -> tuple[Answer, Any]:
    return learn(at, *SHORT)


def resume(at: Place) -> tuple[Answer, Any]:
    answer = at.ssil(*at.fixture("run_command"), "--out", at.folder)
    return answer, run_result(at.folder) if answer.code == 0 else None


def show(at: Place) -> tuple[Answer, Any]:
    answer = at.ssil("show", at.folder, "--metrics", "--json")
    return answer, answer.out


def show_tables(at: Place) -> tuple[Answer, Any]:
    answer = at.ssil("show", at.folder, "--metrics")
    return answer, answer.out


def report(at: Place) -> tuple[Answer, Any]:
    answer = at.ssil("report", at.folder, "--out", at.scratch / "report")
    return answer, contents(at.scratch) if answer.code == 0 else None


def run_on_store(at: Place) -> tuple[Answer, Any]:
    out = at.scratch / "run"
    answer = at.ssil("run", "--dataset", at.folder, "--image-size", 8, "--tasks", 2, *TRAINING, "--out", out)
    if answer.code:
        return answer, None
    return answer, run_result(out) | {"remarks": contents(out).get("remarks.csv")}


def check(at: Place) -> tuple[Answer, Any]:
    answer = at.ssil("data", "check", at.folder)
    return answer, None if answer.code == 0 else answer.out


def prepare_again(at: Place) -> tuple[Answer, Any]:
    answer = at.ssil("data", "prepare", at.fixture("jpeg_store").parent / "images", "--out", at.folder)
    return answer, contents(at.folder) if answer.code == 0 else None


@dataclass(frozen=True)
class Kind:
    """A kind of file: the fixture that holds it, its name there, and how it is used."""

    fixture: str
    pattern: str
    uses: tuple[Use, ...]


MODEL = (predict, inspect, train)
STORE = (run_on_store, check)
KINDS = {
    "model, current": Kind("model", "current.json", MODEL),
    "model, version": Kind("model", "versions/0002/model.json", MODEL),
    "model, weights": Kind("model", "versions/0002/weights.safetensors", MODEL),
    "model, onnx": Kind("model", "versions/0002/model.onnx", MODEL),
    "model, old version": Kind("model", "versions/0001/model.json", (history, predict_old)),
    "model, image": Kind("model", "pictures/*/*.png", MODEL),
    "model, statistics": Kind("closed_form_model", "versions/0002/weights.safetensors", (inspect, learn)),
    "model, onnx of statistics": Kind("closed_form_model", "versions/0002/model.onnx", (predict,)),
    "model, features": Kind("frozen_model", "pictures/*/*-*.safetensors", MODEL),
    "stopped run, record": Kind("stopped_run", "record.json", (resume, show)),
    "stopped run, checksums": Kind("stopped_run", "checksums.json", (resume, show)),
    "stopped run, arrays": Kind("stopped_run", "arrays/task-01.safetensors", (resume,)),
    "stopped run, state": Kind("stopped_run", "checkpoint/state.json", (resume,)),
    "stopped run, tensors": Kind("stopped_run", "checkpoint/*.safetensors", (resume,)),
    "stopped run, log": Kind("stopped_run", "log.jsonl", (resume,)),
    "finished run, record": Kind("finished_run", "record.json", (show, show_tables, report, resume)),
    "finished run, arrays": Kind("finished_run", "arrays/*.safetensors", (show, show_tables, report)),
    "finished run, state": Kind("finished_run", "checkpoint/state.json", (resume,)),
    "store, JPEG shard": Kind("jpeg_store", "data-*.arrow", STORE),
    "store, PNG shard": Kind("png_store", "data-*.arrow", STORE),
    "store, index": Kind("jpeg_store", "index.arrow", STORE),
    "store, facts": Kind("jpeg_store", "store.json", (*STORE, prepare_again)),
    "store, settings": Kind("jpeg_store", "prepare.json", (*STORE, prepare_again)),
    "store, refused files": Kind("jpeg_store", "refused.csv", STORE),
}


def flips(seed: str, files: list[Path]) -> Iterator[tuple[Path, bytes]]:
    """Each file to flip a byte of, with its new content: another bit, any other byte, or in text another digit."""
    chance = random.Random(seed)
    for number in range(FLIPS):
        path = chance.choice(files)
        data = bytearray(path.read_bytes())
        place, change = chance.randrange(len(data)), 1 << chance.randrange(8)
        digits = [index for index, byte in enumerate(data) if chr(byte).isdigit()]
        if number % 3 == 1 and digits and path.suffix in TEXT:
            place, change = chance.choice(digits), 1  # 0 and 1, 2 and 3, ... 8 and 9
        elif number % 3 == 2:
            change = chance.randrange(1, 256)
        data[place] ^= change
        yield path, bytes(data)


def outcome(path: Path, root: Path, answer: Answer, same: bool) -> str:
    """Classify what a use of a damaged directory led to."""
    if answer.hangs:
        return "hang"
    if answer.crashed:
        return "traceback"
    lines = [line for line in (answer.out + answer.err).splitlines() if path.name in line]
    if answer.code == 0:
        told = any(word in line for line in lines for word in TOLD)
        return "harmless" if same else "refused" if told else "silent"
    named = any(name in answer.err for name in (path.name, str(root)))
    return "refused" if answer.refused and named else "unnamed"


def without(result: Any, path: Path) -> Any:
    """Return a result without the damaged file itself, which a use may leave as it is; what is read is compared."""
    return (
        {name: one for name, one in result.items() if name != str(path) or path.suffix == ".json"}
        if isinstance(result, dict)
        else result
    )


WORST = ("hang", "traceback", "silent", "unnamed", "refused", "harmless")


@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_byte_is_named_or_harmless(
    name: str, ssil: CommandLines, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    kind = KINDS[name]
    whole: Path = request.getfixturevalue(kind.fixture)

    def used(use: Use, path: Path | None, data: bytes) -> tuple[Answer, Any]:
        folder = fresh(whole, tmp_path / "attacked")
        if path:
            (folder / path).write_bytes(data)
        scratch = tmp_path / "scratch"
        fresh(tmp_path / "nothing", scratch)
        return use(Place(ssil, folder, scratch, request.getfixturevalue))

    (tmp_path / "nothing").mkdir()
    right = [used(use, None, b"") for use in kind.uses]
    assert [answer.code for answer, _ in right] == [0] * len(right), [answer.err for answer, _ in right]
    found, worst = Counter[str](), list[str]()
    for path, data in flips(f"{name} {SEED}", sorted(whole.glob(kind.pattern))):
        inner = path.relative_to(whole)
        seen = list[tuple[str, str]]()
        for use, (_, expected) in zip(kind.uses, right, strict=True):
            answer, result = used(use, inner, data)
            same = without(result, inner) == without(expected, inner)
            seen.append((outcome(inner, tmp_path, answer, same), f"{use.__name__}: {answer.last}"))
        what, why = min(seen, key=lambda one: WORST.index(one[0]))
        found[what] += 1
        worst.append(f"{what}, {inner}: {why}")
    log(f"byte flips, {name}", found)
    bad = [line for line in worst if not line.startswith(("refused", "harmless"))]
    assert not bad, "\n".join(bad)
