"""A grid's file becomes cells, or one line that says what is wrong with it."""

from pathlib import Path

import pytest

from ssil.benchmark.grid.cells import read_grid
from ssil.core.errors import UserError

SPEC = """
seeds = [0, 1]
settings = "base.toml"
[scenarios.fixed]
memory = 50
[scenarios.growing]
memory_per_class = 5
[methods.ssil]
options = { batches = "mixed" }
[methods.chain]
method = "ft,il2m"
scenarios = ["growing"]
seeds = [0, 7]
epochs = 4
"""


def spec(folder: Path, text: str = SPEC) -> Path:
    (folder / "base.toml").write_text('dataset = "digits"\ntasks = 5\nepochs = 2\nmilestones = [1]\nmemory = 20\n')
    (folder / "grid.toml").write_text(text)
    return folder / "grid.toml"


def test_cells_are_methods_by_scenarios_by_seeds(tmp_path: Path) -> None:
    assert [str(cell.folder) for cell in read_grid(spec(tmp_path))] == [
        "fixed/ssil-0",
        "growing/ssil-0",
        "growing/chain-0",
        "fixed/ssil-1",
        "growing/ssil-1",
        "growing/chain-7",
    ]


def test_a_method_stands_over_its_scenario_which_stands_over_the_settings(tmp_path: Path) -> None:
    cells = {str(cell.folder): cell.settings for cell in read_grid(spec(tmp_path))}
    base = {"dataset": "digits", "tasks": 5}
    assert cells["fixed/ssil-1"] == base | {
        "epochs": 2,
        "milestones": [1],
        "stream_name": "fixed",
        "memory": 50,
        "method": "ssil",
        "options": {"batches": "mixed"},
    }
    assert cells["growing/chain-7"] == base | {
        "epochs": 4,
        "milestones": (2,),
        "stream_name": "growing",
        "memory_per_class": 5,
        "method": "ft,il2m",
    }


def test_a_row_of_another_name_than_its_method_names_its_runs(tmp_path: Path) -> None:
    text = 'settings = { dataset = "digits" }\n[methods.mine]\nmethod = "ft"\n[methods.er]\n'
    mine, er = read_grid(spec(tmp_path, text))
    assert (mine.config.name, mine.config.method) == ("mine", "ft")
    assert er.config.name is None


def test_a_cell_is_a_command(tmp_path: Path) -> None:
    cell = read_grid(spec(tmp_path))[-1]
    words = " ".join(cell.command(Path("runs")))
    assert words.startswith("ssil run --dataset digits --tasks 5 --epochs 4 --milestones 2")
    assert "--stream-name growing --memory-per-class 5" in words
    assert words.endswith("--method ft,il2m --seed 7 --out runs/growing/chain-7")


def test_without_scenarios_runs_lie_beside_each_other(tmp_path: Path) -> None:
    cells = read_grid(spec(tmp_path, 'settings = { dataset = "digits" }\n[methods.ft]\n'))
    assert [str(cell.folder) for cell in cells] == ["ft-0"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("seeds = [0]\n", "methods: .* names none; add tables"),
        ("[method.ssil]\n", "method: no such part of a grid .*; did you mean 'methods'"),
        ("[methods]\nssil = 1\n", "methods: .* needs a table for each"),
        ("[methods.sil]\n", "sil-0: method: unknown name 'sil', did you mean 'ssil'"),
        ("[methods.ssil]\ntask = 5\n", "ssil-0: task: no such setting; did you mean 'tasks'"),
        ("[methods.ssil]\noptions = { tau = 2 }\n", "ssil-0: options: ssil has no option 'tau'"),
        (
            "[methods.ssil]\nscenarios = ['fix']\n[scenarios.fixed]\n",
            "methods.ssil: .* has no scenario 'fix'; it has: fixed",
        ),
        ("seeds = 3\n[methods.ssil]\n", r"seeds: 3 in .* is not a list of numbers, such as \[0, 1, 2\]"),
        ("[methods.ssil]\nseeds = 1\n", "seeds: 1 in .* is not a list"),
        ("settings = 5\n[methods.ssil]\n", "settings: 5 in .* is neither a table nor a file's path"),
        ('settings = {epochs = "ten"}\n[methods.ssil]\nepochs = "ten"\n', "ssil-0: epochs: 'ten' does not fit"),
        ('settings = "none.toml"\n[methods.ssil]\n', r"none\.toml can't be read"),
    ],
)
def test_a_bad_file_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        read_grid(spec(tmp_path, text))
