"""Command lines of every command with odd values, from a seeded generator."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from attacked import BACKBONE, TRUST
from odd_values import BACKBONES, FLAG, INPUTS, METHODS, NUMBERS, OPTIONS, OUTPUTS, SMALL, TEXTS, WEIGHTS

EPOCH_SCALE = "--epoch-scale"
"""Is given in place of epochs."""


@dataclass(frozen=True)
class Grammar:
    """A command: what is always given, and from what the rest is drawn."""

    positions: tuple[list[str], ...] = ()
    """The values of each positional argument, the usual first."""
    usual: dict[str, str | None] = field(default_factory=dict)
    """Options that are given unless they are drawn."""
    options: dict[str, list[str] | list[None]] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    command: str = ""
    """The command, where the grammar has another name."""
    trains: frozenset[str] = frozenset()
    """Options without which nothing is trained, so that epochs are refused."""

    def usual_beside(self, drawn: Iterable[str]) -> dict[str, str | None]:
        """Return the usual options that go with those that are drawn."""
        epochs = EPOCH_SCALE not in drawn and not (self.trains and self.trains.isdisjoint(drawn))
        return {name: value for name, value in self.usual.items() if epochs or not name.endswith("epochs")}


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
MODELS = ["model", "closed"] * 20 + ["modle", *INPUTS]
RUN: dict[str, str | None] = {
    "--dataset": "data.npz",
    "--tasks": "2",
    "--epochs": "1",
    "--backbone": BACKBONE,
    "--batch": "8",
    "--threads": "1",
}

LEARN: dict[str, list[str] | list[None]] = {
    "--method": METHODS,
    "--option": OPTIONS,
    "--memory": NUMBERS,
    "--memory-mb": NUMBERS,
    "--exemplars": ["keep", "reservoir", "recent", "x", ""],
    "--backbone": BACKBONES,
    "--image-size": NUMBERS,
    "--grey": FLAG,
    "--no-flip": FLAG,
    "--init": WEIGHTS,
    "--freeze": FLAG,
    "--views": ["1", "2", "3", "x", ""],
    "--tune": ["last", "all", "x", ""],
    "--scratch": FLAG,
    "--unknown-loss": NUMBERS,
    "--minutes": ["nan", "-1", "0", "", "x", "-inf", "1e-3"],
    **dict.fromkeys(("--epochs", "--later-epochs"), SMALL),
    "--batch": NUMBERS,
    "--lr": NUMBERS,
    "--seed": NUMBERS,
    **dict.fromkeys(("--max-drop", "--max-class-drop"), NUMBERS),
    "--test": INPUTS,
    "--html": OUTPUTS,
    "--json": FLAG,
}
SHORT: dict[str, str | None] = {"--epochs": "1", "--later-epochs": "1"}
TRAINS = frozenset({"--method", "--backbone", "--init", "--tune", "--scratch"})
PAPER: dict[str, list[str] | list[None]] = {
    "--data": ["glyphs", "omniglot-scaled", "imagenet", *INPUTS],
    "--seeds": NUMBERS,
    "--profile": ["paper", "official", "quick", ""],
    EPOCH_SCALE: NUMBERS,
    "--equal-images": FLAG,
    "--jobs": ["nan", "-1", "0", "2", "x", ""],
    "--threads": SMALL,
    "--out": OUTPUTS,
    "--data-root": INPUTS,
    "--read-only": FLAG,
}
"""The options of `paper` and `claims`; both are only asked what they would run."""

GRAMMARS: dict[str, Grammar] = {
    "run": Grammar(
        (["settings.toml"] * 40 + INPUTS,),
        usual=RUN | {"--device": "cpu"},
        options={
            "--dataset": [*INPUTS, "glyhps", "digits"],
            "--train-per-class": NUMBERS,
            "--imbalance": NUMBERS,
            "--image-size": NUMBERS,
            "--augment": ["crop", "shift", "none", "", "x"],
            "--stream": ["blurry:10", "returning:x", "repeating:101", "x", "", "table.csv:1", *INPUTS],
            "--stream-name": TEXTS,
            "--brightness": NUMBERS,
            "--validate": NUMBERS,
            "--scenario": ["0", "61", "-1", "x", "", "1e39", "9" * 5_000],
            "--protocol": ["x", "", "cifar100-b0", "cifar100-b0-10", "cifar100-b50-10", "9" * 5_000],
            "--tasks": NUMBERS,
            "--task-sizes": [*NUMBERS, "3,3", "6", "-1,7", "0,6", "3,3,", "nan,3"],
            "--large-base": FLAG,
            "--class-order": [*NUMBERS, *INPUTS, "numpy:1993", "numpy:", "numpy:-1", "numpy:" + "9" * 5_000],
            "--memory": NUMBERS,
            "--memory-per-class": NUMBERS,
            "--memory-mb": NUMBERS,
            "--selection": ["herding", "x", ""],
            "--name": TEXTS,
            "--method": METHODS,
            "--profile": ["quick", "official", "x", ""],
            "--option": OPTIONS,
            "--branch": METHODS,
            "--backbone": BACKBONES,
            "--norm": ["group", "x"],
            "--init": WEIGHTS,
            "--freeze": FLAG,
            EPOCH_SCALE: ["nan", "inf", "-1", "0", "0.01", "1e-9", "1e-400", "1001", "1e39", "", "x", "0.01,"],
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
            "--optimizer": ["sgd", "adamw", "SGD", "x", ""],
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
    "learn": Grammar((["model", "new", *OUTPUTS, "modle"], first("photos", INPUTS)), SHORT, LEARN, TRUSTED),
    "learn, new": Grammar((["new"] * 20 + OUTPUTS, first("photos", INPUTS)), SHORT, LEARN, TRUSTED, "learn", TRAINS),
    "learn, closed form": Grammar(
        (["closed"] * 10 + ["lite0"] * 10, first("photos", INPUTS)), {}, LEARN, TRUSTED, "learn"
    ),
    "predict": Grammar(
        (first("model", INPUTS), first("photos", [*INPUTS, "image.png"])),
        options={
            "--top": NUMBERS,
            "--unknown": NUMBERS,
            "--version": NUMBERS,
            "--threads": SMALL,
            "--json": FLAG,
            "--csv": FLAG,
        },
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
    "exam": Grammar((first("model", INPUTS), first("photos", INPUTS)), options={"--none": FLAG, "--json": FLAG}),
    "rollback": Grammar((MODELS, ["1"] * 20 + NUMBERS), always=TRUSTED),
    "rename": Grammar((MODELS, ["ant"] * 20 + TEXTS, ["wasp", "bee", *TEXTS]), always=TRUSTED),
    "forget": Grammar((MODELS, ["ant"] * 10 + TEXTS), always=TRUSTED),
    "accept": Grammar((MODELS,), options={"--json": FLAG}, always=TRUSTED),
    "discard": Grammar((MODELS,)),
    "prune": Grammar((first("model", INPUTS),), options={"--keep": NUMBERS}),
    "export": Grammar(
        (MODELS, first("new.onnx", OUTPUTS)), options={"--version": NUMBERS, "--int8": FLAG}, always=TRUSTED
    ),
    "show": Grammar((first("run", INPUTS),), options={"--metrics": FLAG, "--json": FLAG}),
    "report": Grammar(
        (first("run", INPUTS),),
        options={
            "--out": OUTPUTS,
            "--columns": [*TEXTS, "last_top1", ","],
            "--figures": [*TEXTS, "png", "svg,x"],
            "--baseline": [*TEXTS, "ssil"],
        },
    ),
    "diff": Grammar((first("run", INPUTS), first("stopped", INPUTS)), options={"--json": FLAG}),
    "verify": Grammar((first("model", INPUTS),), options={"--repair": FLAG, "--json": FLAG}, always=TRUSTED),
    "cache": Grammar(options={"--json": FLAG}),
    "cache clear": Grammar((["validation", "other", "", *TEXTS],), options={"--older-than": NUMBERS, "--json": FLAG}),
    "grid": Grammar(
        (first("grid.toml", INPUTS),),
        usual={"--dry-run": None},
        options={
            "--out": OUTPUTS,
            "--jobs": ["nan", "-1", "0", "1", "", "x"],
            "--threads": SMALL,
            EPOCH_SCALE: NUMBERS,
            "--on": ["x", "", "Ray"],
            "--address": TEXTS,
            "--cpus": NUMBERS,
            "--gpus": NUMBERS,
            "--retries": NUMBERS,
            "--part": ["1/2", "0/2", "3/2", "1/0", "/", "x", "", "-1/2", "1/" + "9" * 5_000, "nan/2"],
        },
    ),
    "paper": Grammar(
        (["table1", "fig6", "table1", "table9", "", "x", "a" * 300, "caf\udce9"],),
        usual={"--dry-run": None},
        options={
            **PAPER,
            "--dataset": ["imagenet", "landmark-v2-1k", "landmark-v2-10k", "x", ""],
            "--scale": ["paper", "small", "x"],
            "--only": ["*-t10-*", "[", "*", "x", *TEXTS],
        },
    ),
    "claims": Grammar(
        usual={"--dry-run": None},
        options={**PAPER, "--claims": [*NUMBERS, "1-22", "3-2", "0", "23", "1-", "-1"], "--quick": FLAG},
    ),
    "methods": Grammar((METHODS,), options={"--json": FLAG}),
    "datasets": Grammar(options={"--json": FLAG}),
    "scenarios": Grammar(options={"--json": FLAG}),
    "completion": Grammar((["bash", "zsh", "fish", *TEXTS],)),
    "doctor": Grammar(usual={"--no-self-test": None}, options={"--json": FLAG}),
    "serve": Grammar(
        (first("model", INPUTS),),
        usual={"--port": "70000"},  # which is refused: otherwise it would serve
        options={
            "--port": ["nan", "-1", "65536", "1e400", "x", "", "9" * 5_000],
            "--host": ["256.1.1.1", "0.0.0.0", "::", "localhost", *TEXTS],
            "--name": TEXTS,
            "--max-images": NUMBERS,
            "--max-megabytes": NUMBERS,
            "--threads": SMALL,
        },
        always=TRUSTED,
    ),
    "studio": Grammar(
        (first("model", INPUTS),),
        usual={"--port": "70000", "--no-browser": None},  # the port is refused: otherwise it would serve
        options={
            "--port": ["nan", "-1", "65536", "1e400", "x", "", "9" * 5_000],
            "--host": ["256.1.1.1", "0.0.0.0", "::", "localhost", *TEXTS],
            "--name": TEXTS,
            "--max-drop": NUMBERS,
        },
        always=TRUSTED,
    ),
    "weights": Grammar((["efficientnet_lite0", *TEXTS],), options={"--json": FLAG}),
    "demo": Grammar(options={"--out": ["notes.txt", "notes.txt/x", "a" * 300, "x/" * 3_000]}),
    "protocols": Grammar(options={"--json": FLAG}),
    "check": Grammar(
        (["ncm", *(name for name in METHODS if ":" in name or name in ("", "sil", "SSIL", "ft,ft", "a" * 300))],),
        options={"--option": OPTIONS, "--json": FLAG},
    ),
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
        odd_ones = {name: chance.choice(grammar.options[name]) for name in drawn}
        given = {**grammar.usual_beside(drawn), **odd_ones}
        if not grammar.options or chance.random() < 0.4:
            positions = [chance.choice(values) for values in grammar.positions]
        else:
            positions = [values[0] for values in grammar.positions]
        words = [*positions, *grammar.always]
        for name, value in given.items():
            words += [name] if value is None else [name, value]
        if chance.random() < 0.05:
            words.append(chance.choice(["--nonsense", "-x", "--", "--help", "extra"]))
        yield [*(grammar.command or command).split(), *words]
