"""A model that was damaged, or made by a stranger: what is wrong is named, nothing runs, nothing outside is touched."""

import json
import os
import pickle
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from ssil.classifier.exported_model import load_predictor
from ssil.classifier.model_directory import ModelDirectory
from ssil.classifier.model_files import read_checked_json, write_checked_json
from ssil.classifier.prediction import Classifier
from ssil.classifier.update import update
from ssil.core.errors import UserError
from ssil.core.files import checksum
from ssil.nn.pretrained import Pretrained
from tiny_classifiers import labelled_images, settings

TRUSTED = (settings().backbone,)
VERSION = "versions/0002/model.json"
KINDS = {
    "current": "current.json",
    "model": VERSION,
    "weights": "versions/0002/weights.safetensors",
    "onnx": "versions/0002/model.onnx",
    "picture": "pictures/cat/*.png",
    "features": "pictures/cat/*-*.safetensors",
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has every kind of file: the backbone is frozen, so features lie beside the images."""
    first = update(None, settings(epochs=1), labelled_images(["ant", "bee"])).classifier.snapshot.network.backbone
    init = Pretrained("mine", {f"backbone.{name}": value for name, value in first.state_dict().items()})
    own = settings(freeze=True, method="icarl", epochs=1, later_epochs=1)
    one = update(None, own, labelled_images(["ant", "bee"]), init=init).classifier
    directory = ModelDirectory(tmp_path_factory.mktemp("model") / "mine", TRUSTED)
    with directory.locked():
        directory.publish(one, [{}])
        directory.publish(update(one, own, labelled_images(["cat", "dog"])).classifier, [{}])
    return directory.folder


@pytest.fixture
def model(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to play with; the working directory is elsewhere, for code that should not run to leave a file in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Path(shutil.copytree(published, tmp_path / "model"))


def opened(folder: Path) -> Classifier:
    """All of it, every file read."""
    classifier = ModelDirectory(folder, TRUSTED).load().classifier
    for group in (*classifier.exemplars, *classifier.holdout):
        for image in group:
            image.read()
            assert image.features
            image.features()
    predictor = load_predictor(folder)
    assert [*predictor.predict(["black"], np.zeros((1, 8, 8, 1), np.uint8), 1)]
    return classifier


def file(model: Path, kind: str) -> Path:
    return sorted(model.glob(KINDS[kind]))[0]


def test_all_kinds_of_files_are_tested_here(model: Path) -> None:
    known = {path for pattern in KINDS.values() for path in model.glob(pattern.replace("cat", "*").replace("2", "?"))}
    files = {path for path in model.rglob("*") if path.is_file()}
    assert files - known == {model / "lock"}
    assert opened(model).classes.seen == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [0.0, 0.3, 0.7, 1.0])
def test_a_flipped_byte_is_found_and_named(model: Path, kind: str, part: float) -> None:
    path = file(model, kind)
    data = bytearray(path.read_bytes())
    data[round(part * (len(data) - 2))] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=f"{path.name}.*(damaged|can't be read)"):
        opened(model)


class Mine:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.write_text, (Path("hostile"), "was here")


HOSTILE = {
    "pickle": pickle.dumps(Mine()),
    "empty": b"",
    "list": b"[1, 2]",
    "deep list": b"[" * 100_000,
    "deep": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep, with a checksum": b'{"checksum": "", "a":' + b"[" * 900 + b"]" * 900 + b"}",
    "header": (1 << 62).to_bytes(8, "little") + b"{}",
    "large header": (1 << 27).to_bytes(8, "little") + b"{}",
    "number": b'{"checksum": 3}',
    "no text": b'{"checksum": "", "a": "\\ud800"}',
    "long number": b'{"checksum": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", HOSTILE)
def test_a_strangers_file_runs_no_code(model: Path, kind: str, content: str) -> None:
    path = file(model, kind)
    path.write_bytes(HOSTILE[content])
    with pytest.raises(UserError, match=path.name):
        opened(model)
    assert not any(Path.cwd().iterdir())


@pytest.mark.parametrize("kind", ["current", "model", "onnx", "picture", "features"])
def test_a_gigantic_file_is_not_read(model: Path, kind: str) -> None:
    os.truncate(file(model, kind), 1 << 40)
    with pytest.raises(UserError, match="too large"):
        opened(model)


@pytest.mark.parametrize("kind", [*KINDS, "lock", "album", "part", "pipe"])
def test_links_and_pipes_are_refused(model: Path, kind: str, tmp_path: Path) -> None:
    others = {"lock": "lock", "album": "pictures/eel", "part": "versions/.0003.part", "pipe": "pictures/cat/pipe"}
    path = model / others[kind] if kind in others else file(model, kind)
    outside = tmp_path / "outside"
    if path.is_file():
        path.replace(outside)
    else:
        outside.mkdir()
    os.mkfifo(path) if kind == "pipe" else path.symlink_to(outside)
    before = outside.read_bytes() if outside.is_file() else [*outside.iterdir()]
    directory = ModelDirectory(model, TRUSTED)
    with pytest.raises(UserError, match=f"{path.name} is neither a file nor a folder"):
        directory.load()
    with pytest.raises(UserError, match="neither a file nor a folder"), directory.locked():
        pass
    assert before == (outside.read_bytes() if outside.is_file() else [*outside.iterdir()])


def forge(model: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A file that is as it should be, but for what it says."""
    said = read_checked_json(model / VERSION)
    change(said)
    write_checked_json(model / VERSION, said)


def forge_weights(model: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = file(model, "weights")
    tensors = safetensors.torch.load(path.read_bytes())
    change(tensors)
    path.write_bytes(safetensors.torch.save(tensors))
    forge(model, lambda said: said.update(weights=checksum(path.read_bytes())))


HEAD, MEANS = "network/head.weight", "scorer.main/means"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda tensors: tensors[HEAD].view(-1)[3].fill_(torch.nan), f"{HEAD} in .* no numbers"),
        (lambda tensors: tensors[MEANS].view(-1)[0].fill_(-torch.inf), f"{MEANS} in .* no numbers"),
        (lambda tensors: tensors.update({HEAD: tensors[HEAD][1:]}), "size mismatch"),
        (lambda tensors: tensors.update({HEAD: tensors[HEAD].T.contiguous()}), "size mismatch"),
        (lambda tensors: tensors.update({MEANS: tensors[MEANS][1:]}), "3 scores for 4 classes"),
        (lambda tensors: tensors.update({MEANS: tensors[MEANS][:, 1:].clone()}), "is not what it should be"),
        (lambda tensors: tensors.pop(HEAD), "is not what it should be"),
        (lambda tensors: tensors.pop(MEANS), "is not what it should be"),
        (lambda tensors: tensors.clear(), "is not what it should be"),
    ],
)
def test_weights_that_cant_be_are_refused(
    model: Path, change: Callable[[dict[str, torch.Tensor]], object], reason: str
) -> None:
    forge_weights(model, change)
    with pytest.raises(UserError, match=reason) as caught:
        opened(model)
    assert "\n" not in str(caught.value)


def bomb(side: int) -> bytes:
    """A few bytes that say they are an image of this size."""
    chunks = (b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0), b"IDAT")
    packed = [struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one)) for one in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


@pytest.mark.parametrize(
    ("data", "reason"),
    [(bomb(16_000), "more"), (bomb(60_000), "more"), (b"x", "not an im")],
    ids=["large", "larger", "none"],
)
def test_a_file_that_is_no_image_is_named(model: Path, data: bytes, reason: str) -> None:
    path = file(model, "picture")

    def swap(said: dict[str, Any]) -> None:
        for group in said["exemplars"] + said["quiz"]:
            for one in group:
                one.update(sha256=checksum(data) if one["file"].endswith(path.name) else one["sha256"])

    path.write_bytes(data)
    forge(model, swap)
    with pytest.raises(UserError, match=rf"{path.name} can't be read \(.*{reason}"):
        opened(model)


def test_a_strangers_method_is_not_loaded(model: Path) -> None:
    Path("mine.py").write_text('open("hostile", "w")\n')
    forge(model, lambda said: said["settings"].update(method="mine.py:mine"))
    with pytest.raises(UserError, match=r"method: .*names code of its own, mine\.py:mine; if you trust it"):
        opened(model)
    with pytest.raises(UserError, match=r"backbone: .*names code of its own"):
        ModelDirectory(model).load(1)
    assert not Path("hostile").exists()


@pytest.mark.parametrize("place", ["/etc/passwd", "pictures/../../secret", VERSION])
def test_images_outside_of_their_folder_are_refused(model: Path, place: str) -> None:
    nothing = {"sha256": "0" * 32, "name": "", "origin": ""}
    forge(model, lambda said: said.update(quiz=[[{"file": place, **nothing}]]))
    with pytest.raises(UserError, match="is none of its images"):
        opened(model)


PICTURE = {"file": "pictures/cat/x.png", "sha256": "0" * 32, "name": "x", "origin": ""}


@pytest.mark.parametrize(
    "change",
    [
        {"classes": {"names": ["a"], "bounds": [0, 1]}},
        {"classes": {"names": [1, 2, 3, 4], "bounds": [0, 2, 4]}},
        {"classes": {"names": ["a", "b", "c", "d"], "bounds": [0, 2, float("inf")]}},
        {"classes": None},
        {"settings": {"epochs": "many"}},
        {"settings": []},
        {"weights": ["x"]},
        {"quiz": "none"},
        {"quiz": [[], [], []]},
        {"quiz": [[PICTURE | {"sha256": "/" * 32}], [], [], []]},
        {"quiz": [[PICTURE | {"name": 3}], [], [], []]},
        {"quiz": [[PICTURE | {"features": "../" * 9}], [], [], []]},
        {"history": 3},
        {"history": [3]},
    ],
)
def test_an_invalid_model_json_is_refused(model: Path, change: dict[str, Any]) -> None:
    path = model / VERSION
    said = read_checked_json(path) | change
    body = json.dumps(said, sort_keys=True, ensure_ascii=False)
    path.write_text(json.dumps(said | {"checksum": checksum(body.encode())}))
    with pytest.raises(UserError):
        opened(model)
    assert ModelDirectory(model, TRUSTED).load(1)


@pytest.mark.parametrize("version", [None, "two", 1e308 * 10, [2], -1, 99])
def test_a_current_version_that_cant_be_is_refused(model: Path, version: object) -> None:
    said = {"format": 1, "version": version}
    body = json.dumps(said, sort_keys=True)
    (model / "current.json").write_text(json.dumps(said | {"checksum": checksum(body.encode())}))
    with pytest.raises(UserError, match=r"current\.json is not what it should be|is not kept"):
        opened(model)
