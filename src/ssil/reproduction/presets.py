"""Presets: data sets on which the paper's conditions are run (the paper's own, smaller ones, or a user's)."""

from collections.abc import Mapping
from dataclasses import field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from ssil.benchmark.config import override, read_toml
from ssil.benchmark.grid.cells import Cell
from ssil.benchmark.training_budget import TrainingBudget
from ssil.core.errors import UserError
from ssil.reproduction.equal_images import UNSTRETCHED, counted, equal_scale
from ssil.reproduction.paper_scenarios import Condition
from ssil.reproduction.rows import ROWS, row_settings

EQUAL = "-equal"
"""Ends the name of a preset with equal images."""
FOLDER = Path(str(files("ssil.reproduction"))) / "preset_files"


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Preset:
    """A data set with settings for all runs.

    `exemplars` are the three memory budgets in exemplars per class: after the last task if the memory is fixed, after
    each task if it grows. `rows` holds further settings of single rows.
    """

    name: str
    title: str
    classes: int
    exemplars: tuple[int, int, int]
    settings: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stands_for: str = ""
    """The data set of the paper that this one replaces, if it is not one of them."""
    images: int | None = None
    """Training images of a class, for budgets; by default the setting `train_per_class`."""
    equal_images: bool = False
    """Whether rivals of SS-IL train for so long that they see as many images as SS-IL does."""

    def with_data_root(self, data_root: Path | None) -> "Preset":
        """Return the preset with its data under `data_root`, if that is given."""
        return replace(self, settings={**self.settings, "data_root": str(data_root)}) if data_root else self

    def varied(
        self,
        profile: Literal["paper", "official"] | None = None,
        epoch_scale: float | None = None,
        equal_images: bool = False,
    ) -> "Preset":
        """Return the preset under another profile, with other epochs, or with equal images; its name tells which.

        Args:
            profile: The settings in the paper, or those of its authors' code.
            epoch_scale: The part of its own schedule for which every method trains.
            equal_images: Whether every method is to see as many images as SS-IL.
        """
        asked = {"profile": profile, "epoch_scale": epoch_scale}
        given = {name: value for name, value in asked.items() if value is not None}
        ends = f"-{profile}" * bool(profile), f"-x{epoch_scale:g}" if epoch_scale else "", EQUAL * equal_images
        return replace(
            self,
            name=self.name + "".join(ends),
            settings=override(self.settings, given),
            stands_for=self.stands_for or self.name,
            equal_images=equal_images,
        )

    def column(self, condition: Condition) -> str:
        """Return the name of the condition's folder, which `--only` selects."""
        return condition.name(self.exemplars[condition.level])

    def describe(self, condition: Condition) -> str:
        """Return a condition as a column's heading."""
        memory = self.exemplars[condition.level]
        budget = f"{memory} a class" if condition.growing else f"{memory * self.classes:,} in all"
        return f"T = {condition.tasks}{', large base' if condition.large_base else ''}, {budget}"

    def cell(self, condition: Condition, row: str, seed: int) -> Cell:
        """Return the run of a row under a condition; with equal images, SS-IL's is that without."""
        name = self.name.removesuffix(EQUAL) if self.equal_images and row in UNSTRETCHED else self.name
        return Cell(f"{name}/{self.column(condition)}", row, seed, self._row_settings(condition, row))

    def _row_settings(self, condition: Condition, row: str) -> dict[str, Any]:
        settings = override(self.settings, self._stream(condition))
        own = override(settings, row_settings(row, self.settings.get("batch", 128), self.rows))
        if not self.equal_images or row in UNSTRETCHED:
            return own
        wanted = self.budget(condition, "ssil").images
        return override(own, {"epoch_scale": equal_scale(own, self.images_by_class, wanted)})

    def budget(self, condition: Condition, row: str, **changes: Any) -> TrainingBudget:
        """Return what the training of a row costs under a condition, with `changes` to its settings."""
        return counted(override(self._row_settings(condition, row), changes), self.images_by_class)

    @property
    def images_by_class(self) -> tuple[int, ...]:
        """The training images of each class, as far as budgets know them: all classes have the same number."""
        if not self.known_images:
            raise UserError(f"data: the preset {self.name} does not state `images`, its training images of a class")
        return (self.known_images,) * self.classes

    @property
    def known_images(self) -> int:
        """The training images of a class; 0 if they are not known."""
        return self.images or int(self.settings.get("train_per_class", 0))

    def _stream(self, condition: Condition) -> dict[str, Any]:
        per_class = self.exemplars[condition.level]
        memory = {"memory_per_class": per_class} if condition.growing else {"memory": per_class * self.classes}
        base = {"large_base": True} if condition.large_base else {}
        return {"tasks": condition.tasks, **base, **memory}


def find_preset(name: str) -> Preset:
    """Return a preset of the package by its name, or a user's own by the path of its TOML file.

    With `like`, the name of a preset of the package, a file states only what differs from that preset.
    """
    path = _preset_file(name)
    raw = read_toml(path)
    if like := raw.pop("like", None):
        raw = {**read_toml(_preset_file(str(like))), **raw}
    try:
        low, middle, high = raw.pop("exemplars")
        preset = Preset(name=path.stem, exemplars=(low, middle, high), **raw)
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"data: {path} needs title, classes, exemplars (three numbers per class), a table [settings], "
            "and perhaps [rows.NAME] tables"
        ) from None
    if unknown := sorted({*preset.rows} - {*ROWS}):
        raise UserError(f"data: {path} has settings for a row {unknown[0]!r}; there are {', '.join(ROWS)}")
    return preset


def _preset_file(name: str) -> Path:
    """Return the file of a preset; raise UserError if there is none."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.toml")))
        raise UserError(f"data: {name!r} is not known; there are {known}, or give a file such as mine.toml")
    return path
