"""Training views by a function of the user's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny_runs
from image_trees import write_images
from ssil.benchmark.run_setup import set_up
from ssil.benchmark.runner import run
from ssil.core.errors import UserError
from ssil.data.augmentation import OwnAugmentation, Transform
from ssil.data.data_settings import DataSettings
from ssil.data.load import load

FILE = """
import numpy as np

SEVEN = 7


def noise(image, random):
    image += random.integers(0, 20, image.shape, dtype=np.uint8)
    return image


def darker(image, random):
    return image // 2


def floats(image, random):
    return image / 2


def smaller(image, random):
    return image[1:]


def fails(image, random):
    raise ValueError("no")
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "views.py"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("data") / "patterns.npz", [5] * 4)


def transform_of(file: Path, name: str, dataset: Path) -> Transform:
    return load(DataSettings(dataset=str(dataset), augment=f"{file}:{name}")).transform


def test_the_function_takes_the_place_of_shifts_and_flips(file: Path, dataset: Path) -> None:
    transform = transform_of(file, "darker", dataset)
    pixels = torch.randint(256, (6, 8, 8, 1), dtype=torch.uint8)
    draws = transform.draw(6, torch.Generator().manual_seed(0))
    assert torch.equal(transform.train(pixels, draws), transform.test(pixels // 2))
    assert transform.pad == 0
    assert not transform.flip


def test_an_image_is_changed_alike_wherever_it_is(file: Path, dataset: Path) -> None:
    """In a part of the batch, as another process or an accumulated step has it; the given image is not changed."""
    transform = transform_of(file, "noise", dataset)
    pixels = torch.randint(200, (6, 8, 8, 1), dtype=torch.uint8)
    before = pixels.clone()
    draws = transform.draw(6, torch.Generator().manual_seed(0))
    whole = transform.train(pixels, draws)
    some = torch.tensor([5, 0, 3])
    assert torch.equal(transform.train(pixels[some], draws.take(some)), whole[some])
    assert torch.equal(pixels, before)
    again = transform.train(pixels, transform.draw(6, torch.Generator().manual_seed(0)))
    other = transform.train(pixels, transform.draw(6, torch.Generator().manual_seed(1)))
    assert torch.equal(again, whole)
    assert not torch.equal(other, whole)
    assert not torch.equal(whole[0] - transform.test(pixels)[0], whole[1] - transform.test(pixels)[1])


def test_without_a_function_the_draws_are_those_of_before() -> None:
    draws = Transform((0.5,), (0.5,), pad=1).draw(4, torch.Generator().manual_seed(0))
    assert draws.seeds is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("floats", r"augment: .*:floats gave float64 \(8, 8, 1\) in place of uint8 \(8, 8, 1\); return an image like"),
        ("smaller", r"augment: .*:smaller gave uint8 \(7, 8, 1\) in place of uint8 \(8, 8, 1\)"),
        ("fails", r"augment: .*:fails raised no; mend the function"),
    ],
)
def test_functions_that_give_something_else(file: Path, dataset: Path, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(tiny_runs.config(dataset, tasks=2, augment=f"{file}:{name}"))


@pytest.mark.parametrize(
    ("augment", "message"),
    [
        ("{file}:SEVEN", r"augment: .*:SEVEN is of type int; name a function"),
        ("{file}:nothing", r"has no 'nothing'"),
        ("none.py:views", r"'none.py': there is no such file"),
    ],
)
def test_names_of_no_function(file: Path, dataset: Path, augment: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        set_up(tiny_runs.config(dataset, tasks=2, augment=augment.format(file=file)))


def test_unknown_and_unfitting_names(dataset: Path) -> None:
    with pytest.raises(UserError, match=r"^augment: 'corp' is not known; did you mean 'crop'"):
        tiny_runs.config(dataset, augment="corp")
    with pytest.raises(UserError, match=r"augment: crop is not for .*, but for sets of image files"):
        set_up(tiny_runs.config(dataset, tasks=2, augment="crop"))


def test_a_run_resumes_and_notices_another_function(dataset: Path, tmp_path: Path) -> None:
    path = tmp_path / "views.py"
    path.write_text(FILE)
    settings: dict[str, Any] = {"tasks": 2, "memory": 6, "method": "ssil", "augment": f"{path}:noise"}
    whole = tiny_runs.resumed(dataset, tmp_path, 3, **settings)
    plain = run(tiny_runs.config(dataset, **settings | {"augment": None}))
    assert plain.tasks[0].loss != whole.tasks[0].loss
    path.write_text(FILE + "# changed\n")
    with pytest.raises(UserError, match=r"was begun with another content of the augment's file"):
        run(tiny_runs.config(dataset, **settings, out=tmp_path / "whole"))


def test_parts_of_a_batch_are_augmented_as_the_batch_is(file: Path, dataset: Path) -> None:
    """With group norm, accumulated parts of a batch give the losses of the whole batch, up to rounding."""
    settings: dict[str, Any] = {"tasks": 1, "norm": "group", "augment": f"{file}:noise", "precision": "64-true"}
    one, two = (run(tiny_runs.config(dataset, **settings, accumulate=count)) for count in (1, 2))
    assert one.tasks[0].loss["main"]["ce"] == pytest.approx(two.tasks[0].loss["main"]["ce"], rel=1e-9)


def test_image_files(file: Path, tmp_path: Path) -> None:
    """The function gets the whole image, at the size of the network."""
    write_images(tmp_path / "photos", *(f"{name}/{number}.png" for name in ("ant", "bee") for number in range(4)))
    found = load(DataSettings(dataset=str(tmp_path / "photos"), image_size=8, augment=f"{file}:darker"))
    assert not found.transform.crop
    pixels = found.train.images.fetch(torch.arange(2))
    draws = found.transform.draw(2, torch.Generator())
    assert torch.equal(found.transform.train(pixels, draws), found.transform.test(pixels // 2))


def test_the_function_sees_arrays_of_its_own() -> None:
    seen = list[np.ndarray]()

    def keep(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
        seen.append(image)
        image[:] = 0
        return image

    own = OwnAugmentation("keep", keep)
    pixels = torch.ones(2, 4, 4, 3, dtype=torch.uint8)
    assert own(pixels, torch.tensor([1, 2])).sum() == 0
    assert pixels.sum() == 96
    assert [one.shape for one in seen] == [(4, 4, 3)] * 2
