"""Command lines of every command with odd values, from a seeded generator."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from attacked import BACKBONE, TRUST

NUMBERS = [
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1",
    "2",
    "1e39",
    "1e400",
    "1e-400",
    "-0.0",
    "0.5",
    "1.5",
    "٣",
    "0x10",
    "1_0",
]
NUMBERS += ["", " ", "true", "1,2", ",", "1,,2", "[1]", "--", str(2**31), str(2**63), str(10**30), "9" * 5_000]
SMALL = ["nan", "inf", "-inf", "-1", "0", "1", "-0.0", "0.5", "1.5", "٣", "", " ", "true", "1,2", "x", "1e400"]
"""For what would take long, or start many processes or threads, if it were large."""
TEXTS = [
    "",
    " ",
    "-",
    "x",
    "caf\udce9",
    "\x1b[31mred",
    "[/b]",
    "=1+1",
    "a\nb",
    "a" * 300,
    "x/" * 3_000,
    "%s",
    "{}",
    "~",
]
PATHS = [
    "",
    ".",
    "missing",
    "notes.txt",
    "notes.txt/x",
    "empty",
    "caf\udce9",
    "a" * 300,
    "x/" * 3_000,
    "new",
    "\x1b",
    "-",
]
PLACES = [
    "photos",
    "store",
    "run",
    "stopped",
    "model",
    "data.npz",
    "table.csv",
    "settings.toml",
    "grid.toml",
    "image.png",
]
INPUTS = [*PATHS, *PLACES]
OUTPUTS = [
    "",
    "missing/new",
    "notes.txt",
    "notes.txt/x",
    "empty",
    "a" * 300,
    "x/" * 3_000,
    "photos",
    "model",
    "run",
    "store",
]
OUTPUTS += ["new", "caf\udce9", "image.png", "-"]
METHODS = [
    "ssil",
    "ft",
    "icarl",
    "bic",
    "ft,il2m",
    "sil",
    "",
    "ft,ft",
    "ft,icarl",
    "my.py:x",
    "notes.txt:x",
    "a" * 300,
    "SSIL",
]
BACKBONES = [
    "resnet8",
    "resnet",
    "identity",
    "",
    "my.py:x",
    "notes.txt:x",
    "my.py:",
    ":x",
    "resnet8:",
    "a" * 300,
    BACKBONE,
]
OPTIONS = [
    "temperature=3",
    "temperature=nan",
    "temperature=-1",
    "temperature=0",
    "x=1",
    "=",
    "temperature",
    "temperature=",
]
OPTIONS += ["temperature=1e39", "temperature=[", "batches=mixed", "distil=none", "temperature=" + "9" * 5_000]
FLAG = [None]
"""A flag that takes no value."""


@dataclass(frozen=True)
class Grammar:
    """A command: what is always given, and from what the rest is drawn."""

    positions: tuple[list[str], ...] = ()
    """The values of each positional argument, the usual first."""
    usual: dict[str, str] = field(default_factory=dict)
    """Options that are given unless they are drawn."""
    options: dict[str, list[str] | list[None]] = field(default_factory=dict)
    always: tuple[str, ...] = ()


def first(usual: str, others: list[str]) -> list[str]:
    return [usual, *others]


CHOICE: dict[str, list[str] | list[None]] = {
    "--data-root": [*INPUTS],
    "--classes": NUMBERS,
    "--class-list": INPUTS,
    "--min-per-class": NUMBERS,
    "--max-per-class": NUMBERS,
    "--test-per-class": NUMBERS,
    "--split-seed": NUMBERS,
    "--threads": SMALL,
    "--json": FLAG,
}
TRUSTED = tuple(map(str, TRUST))
RUN = {
    "--dataset": "data.npz",
    "--tasks": "2",
    "--epochs": "1",
    "--backbone": BACKBONE,
    "--batch": "8",
    "--threads": "1",
}

GRAMMARS: dict[str, Grammar] = {
    "run": Grammar(
        usual=RUN | {"--device": "cpu"},
        options={
            "--dataset": [*INPUTS, "glyhps", "digits"],
            "--train-per-class": NUMBERS,
            "--imbalance": NUMBERS,
            "--image-size": NUMBERS,
            "--augment": ["crop", "shift", "none", "", "x"],
            "--brightness": NUMBERS,
            "--validate": NUMBERS,
            "--scenario": ["0", "61", "-1", "x", "", "1e39", "9" * 5_000],
            "--protocol": ["x", "", "cifar100-b0", "9" * 5_000],
            "--tasks": NUMBERS,
            "--task-sizes": [*NUMBERS, "3,3", "6", "-1,7", "0,6", "3,3,", "nan,3"],
            "--large-base": FLAG,
            "--class-order": [*NUMBERS, *INPUTS, "numpy:1993", "numpy:", "numpy:-1", "numpy:" + "9" * 5_000],
            "--memory": NUMBERS,
            "--memory-per-class": NUMBERS,
            "--selection": ["herding", "x", ""],
            "--method": METHODS,
            "--profile": ["quick", "official", "x", ""],
            "--option": OPTIONS,
            "--branch": METHODS,
            "--backbone": BACKBONES,
            "--norm": ["group", "x"],
            "--init": INPUTS,
            "--freeze": FLAG,
            "--epochs": SMALL,
            "--later-epochs": SMALL,
            "--lr": NUMBERS,
            "--milestones": NUMBERS,
            "--decay": NUMBERS,
            "--lr-by-task": FLAG,
            "--batch": NUMBERS,
            "--momentum": NUMBERS,
            "--weight-decay": NUMBERS,
            "--new-head-init": ["zero", "x"],
            "--later-milestones": NUMBERS,
            "--later-weight-decay": NUMBERS,
            "--seed": NUMBERS,
            "--precision": ["64-true", "bf16-mixed", "16-mixed", "tf32-true", "x"],
            "--out": OUTPUTS,
            "--strict": FLAG,
            "--in-memory": FLAG,
            "--hold-exemplars": ["bytes", "decoded", "x"],
            "--devices": ["nan", "-1", "0", "", "1.5", "x"],
            "--nodes": ["nan", "-1", "0", "", "1.5", "x"],
            "--accumulate": NUMBERS,
            "--checkpoint-every": [*SMALL, "0s", "-1s", "nans", "infmin", "1e39min", "min", "5 min", "9" * 5_000],
            "--track": ["tensorboard", "x", ""],
            **{name: values for name, values in CHOICE.items() if name not in ("--threads",)},
            "--threads": SMALL,
        },
    ),
    "learn": Grammar(
        positions=(["model", "new", *OUTPUTS, "modle"], first("photos", INPUTS)),
        usual={"--epochs": "1", "--later-epochs": "1"},
        options={
            "--method": METHODS,
            "--option": OPTIONS,
            "--memory": NUMBERS,
            "--memory-mb": NUMBERS,
            "--backbone": BACKBONES,
            "--image-size": NUMBERS,
            "--grey": FLAG,
            "--no-flip": FLAG,
            "--init": INPUTS,
            "--freeze": FLAG,
            "--tune": ["last", "all", "x", ""],
            "--scratch": FLAG,
            "--unknown-loss": NUMBERS,
            "--minutes": ["nan", "-1", "0", "", "x", "-inf", "1e-3"],
            "--epochs": SMALL,
            "--later-epochs": SMALL,
            "--batch": NUMBERS,
            "--lr": NUMBERS,
            "--seed": NUMBERS,
            "--max-drop": NUMBERS,
            "--max-class-drop": NUMBERS,
            "--html": OUTPUTS,
            "--json": FLAG,
        },
        always=TRUSTED,
    ),
    "predict": Grammar(
        (first("model", INPUTS), first("photos", [*INPUTS, "image.png"])),
        options={"--top": NUMBERS, "--unknown": NUMBERS, "--version": NUMBERS, "--json": FLAG, "--csv": FLAG},
        always=TRUSTED,
    ),
    "test": Grammar(
        (first("model", INPUTS), first("photos", INPUTS)),
        options={"--version": NUMBERS, "--html": OUTPUTS, "--json": FLAG},
        always=TRUSTED,
    ),
    "inspect": Grammar(
        (first("model", INPUTS),),
        options={"--version": NUMBERS, "--html": OUTPUTS, "--json": FLAG},
        always=TRUSTED,
    ),
    "history": Grammar((first("model", INPUTS),), options={"--json": FLAG}),
    "rollback": Grammar((first("model", INPUTS), NUMBERS), always=TRUSTED),
    "rename": Grammar((["model", "modle", *INPUTS], ["ant", *TEXTS], ["wasp", "bee", *TEXTS]), always=TRUSTED),
    "forget": Grammar((["model", "modle", *INPUTS], ["ant", *TEXTS]), always=TRUSTED),
    "prune": Grammar((first("model", INPUTS),), options={"--keep": NUMBERS}),
    "export": Grammar(
        (first("model", INPUTS), OUTPUTS), options={"--version": NUMBERS, "--int8": FLAG}, always=TRUSTED
    ),
    "show": Grammar((first("run", INPUTS),), options={"--metrics": FLAG, "--json": FLAG}),
    "report": Grammar((first("run", INPUTS),), options={"--out": OUTPUTS}),
    "diff": Grammar((first("run", INPUTS), first("stopped", INPUTS)), options={"--json": FLAG}),
    "verify": Grammar((first("model", INPUTS),), options={"--repair": FLAG, "--json": FLAG}, always=TRUSTED),
    "cache": Grammar(options={"--json": FLAG}),
    "cache clear": Grammar((["validation", "other", "", *TEXTS],), options={"--older-than": NUMBERS, "--json": FLAG}),
    "grid": Grammar(
        (first("grid.toml", INPUTS),),
        usual={"--dry-run": ""},
        options={
            "--out": OUTPUTS,
            "--jobs": ["nan", "-1", "0", "1", "", "x"],
            "--part": ["1/2", "0/2", "3/2", "1/0", "/", "x", "", "-1/2", "1/" + "9" * 5_000, "nan/2"],
        },
    ),
    "paper": Grammar((["table9", "", "x", "a" * 300, "caf\udce9"],), options={"--jobs": ["nan", "x", ""]}),
    "claims": Grammar(((["x", "", "caf\udce9"]),), options={"--jobs": ["nan", "x", ""]}),
    "methods": Grammar((METHODS,), options={"--json": FLAG}),
    "datasets": Grammar(options={"--json": FLAG}),
    "scenarios": Grammar(options={"--json": FLAG}),
    "protocols": Grammar(options={"--json": FLAG}),
    "check": Grammar(([name for name in METHODS if name not in ("ssil", "ft", "icarl", "bic")],)),
    "data show": Grammar((first("photos", INPUTS),), options={**CHOICE, "--sheet": OUTPUTS}),
    "data check": Grammar((first("photos", INPUTS),), options=CHOICE),
    "data list": Grammar((first("photos", INPUTS),), {"--out": "new.csv"}, {**CHOICE, "--out": OUTPUTS}),
    "data prepare": Grammar(
        (first("photos", INPUTS),),
        {"--out": "new"},
        {**CHOICE, "--out": OUTPUTS, "--short-side": NUMBERS, "--quality": NUMBERS, "--strict": FLAG},
    ),
    "data export": Grammar((first("photos", INPUTS),), {"--out": "new"}, {"--out": OUTPUTS, "--data-root": INPUTS}),
}


def lines(command: str, count: int, seed: str = "0") -> Iterator[list[str]]:
    """Draw command lines of a command: usual ones in which one to three things are odd."""
    grammar, chance = GRAMMARS[command], random.Random(f"{command} {seed}")
    for _ in range(count):
        odd = chance.choice([1, 1, 1, 2, 3])
        drawn = chance.sample([*grammar.options], min(odd, len(grammar.options)))
        given: dict[str, str | None] = {
            **grammar.usual,
            **{name: chance.choice(grammar.options[name]) for name in drawn},
        }
        if not grammar.options or chance.random() < 0.4:
            positions = [chance.choice(values) for values in grammar.positions]
        else:
            positions = [values[0] for values in grammar.positions]
        words = [*positions, *grammar.always]
        for name, value in given.items():
            words += [name] if value is None or name == "--dry-run" else [name, value]
        if chance.random() < 0.05:
            words.append(chance.choice(["--nonsense", "-x", "--", "--help", "extra"]))
        yield [*command.split(), *words]
