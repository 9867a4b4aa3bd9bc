"""Odd values of numbers, texts, paths and names, for command lines."""

from attacked import BACKBONE

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
    "closed",
    "lite0",
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
    "slda",
    "ncm",
    "fecam",
    "ranpac",
    "ncm,slda",
    "ft,slda",
    "er_ace",
    "lwf",
    "joint",
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
OPTIONS += ["shrinkage=0.1", "shrinkage=nan", "shrinkage=0", "power=-1", "width=0", "width=1e9", "penalty=inf"]
WEIGHTS = ["efficientnet_lite0", "efficientnet", "hf:", "hf:x", "somebody/something", *INPUTS]
FLAG = [None]
"""A flag that takes no value."""
