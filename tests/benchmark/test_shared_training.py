"""Several methods on one training: `--method ft,il2m,scail`."""

import json
from pathlib import Path

import pytest

import tiny_runs
from followed_methods import IMAGES, SETTINGS
from ssil.benchmark.record import read_record
from ssil.benchmark.runner import run
from ssil.cli import main
from ssil.core.errors import UserError
from ssil.learning.registry import configure

FOLDERS = {"ft": ".", "il2m": "il2m", "scail": "scail"}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_runs.patterns(tmp_path_factory.mktemp("shared") / "patterns.npz", IMAGES)


@pytest.fixture(scope="module")
def together(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of an undisturbed run of all three."""
    out = tmp_path_factory.mktemp("together")
    run(tiny_runs.config(dataset, **SETTINGS, method="ft,il2m,scail", out=out))
    return out


def arrays(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "arrays").iterdir()}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_method_that_shares_a_training_leaves_what_it_leaves_alone(
    name: str, together: Path, dataset: Path, tmp_path: Path
) -> None:
    """But for times, and the list of methods that share it in the first one's settings."""
    alone = tiny_runs.timeless(run(tiny_runs.config(dataset, **SETTINGS, method=name, out=tmp_path)))
    riding = tiny_runs.timeless(read_record(together / FOLDERS[name]))
    sharing = riding["config"].pop("riders", None)
    assert riding == alone
    assert (sharing is not None) == (name == "ft")
    assert riding["config"]["method"] == name
    assert arrays(together / FOLDERS[name]) == arrays(tmp_path)


def test_the_scorers_differ(together: Path) -> None:
    scores = {name: read_record(together / folder).tasks[-1].score_old for name, folder in FOLDERS.items()}
    assert len(set(scores.values())) == 3


@pytest.mark.parametrize("steps", [3, 4])
def test_stopped_and_resumed_equals_undisturbed(steps: int, together: Path, dataset: Path, tmp_path: Path) -> None:
    config = tiny_runs.config(dataset, **SETTINGS, method="ft,il2m,scail", out=tmp_path)
    stops = 0
    while not ((tmp_path / "record.json").exists() and read_record(tmp_path).summary):
        try:
            run(config, tiny_runs.Stopper(steps))
        except KeyboardInterrupt:
            stops += 1
    assert stops >= 3
    for folder in FOLDERS.values():
        assert tiny_runs.timeless(read_record(tmp_path / folder)) == tiny_runs.timeless(read_record(together / folder))
        assert arrays(tmp_path / folder) == arrays(together / folder)
    mine, theirs = tiny_runs.tensors(tmp_path), tiny_runs.tensors(together)
    assert mine.keys() == theirs.keys()
    assert all(mine[key].equal(theirs[key]) for key in mine)


def test_the_command_line(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    how = ["--backbone", f"{tiny_runs.__file__}:backbone", "--threads", "1", "--device", "cpu", "--out", str(out)]
    what = ["--dataset", str(dataset), "--tasks", "2", "--epochs", "1", "--batch", "4"]
    assert main(["run", *what, *how, "--method", "ft,il2m,scail", "--option", "top_rewound=7"]) == 0
    assert {name: read_record(out / folder).label for name, folder in FOLDERS.items()} == {
        name: name for name in FOLDERS
    }
    assert read_record(out / "scail").config["options"] == {"top_rewound": 7, "ft_head": "keep"}
    assert read_record(out / "il2m").config["options"] == {"scores": "softmax", "ft_head": "keep"}


def test_an_option_of_the_training_reaches_all() -> None:
    configured = configure("il2m,ft,scail", options={"ft_head": "reset", "scores": "raw"})
    assert configured.options == {"scores": "raw", "ft_head": "reset"}
    options = {name: other.options for name, other in configured.sharing.items()}
    assert options == {"ft": {"ft_head": "reset"}, "scail": {"top_rewound": 10, "ft_head": "reset"}}
    assert list(configured.method.scorers) == ["main", "ft", "scail"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("ft,ssil", "ssil does not train as ft does, so they can't share a run; run each alone"),
        ("ft,il2m,icarl", "icarl does not train as ft does, so they can't share a run; run each alone"),
        ("ssil,ce", "ce does not train as ssil does, so they can't share a run; run each alone"),
        ("er,er", "'er' is named twice; name each method once"),
        ("ft,il2m,il2m", "'il2m' is named twice; name each method once"),
        ("ft,ft", "'ft' is named twice; name each method once"),
    ],
)
def test_methods_that_train_differently_are_refused(names: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^method: {message}$"):
        configure(names)


def test_an_unknown_option_is_refused_once() -> None:
    with pytest.raises(UserError, match=r"^options: ft,il2m has no option 'tau'; it has: ft_head, scores$"):
        configure("ft,il2m", options={"tau": 1})


def test_names_may_have_spaces_between_them() -> None:
    assert [*configure("ft, il2m").method.scorers] == ["main", "il2m"]


MINE = """
from functools import partial
from ssil.learning.method import Method
from ssil.methods.ft import ft

def mine(training):
    return ft(training)

def arrays(training):
    return ft(training)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_file.py"
    path.write_text(MINE)
    return path


def test_a_sharing_method_from_a_file_stays_in_the_runs_directory(file: Path, dataset: Path, tmp_path: Path) -> None:
    """Whatever its file's path; it is gone on with, its options or none, and its file's content is its own."""
    out = tmp_path / "out"
    config = tiny_runs.config(dataset, **SETTINGS, method=f"ft,{file}:mine", out=out)
    record = run(config)
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"my_file.py", "out"}
    riding = read_record(out / "mine")
    assert riding.config["method"] == f"{file}:mine"
    assert "method_sha256" in riding.config
    assert "method_sha256" not in record.config
    assert run(config).tasks == record.tasks
    with pytest.raises(UserError, match="holds a run with other settings"):
        run(tiny_runs.config(dataset, **SETTINGS, method="ft", out=out))


def test_a_sharing_method_may_not_be_called_as_a_part_of_the_run(file: Path) -> None:
    with pytest.raises(
        UserError, match=r"^method: another part of the run is called 'arrays'; give the method another"
    ):
        configure(f"ft,{file}:arrays")


def test_the_last_json_line_is_the_methods_own(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ["--backbone", f"{tiny_runs.__file__}:backbone", "--threads", "1", "--device", "cpu", "--json"]
    what = ["--dataset", str(dataset), "--tasks", "2", "--epochs", "1", "--batch", "4", "--out", str(tmp_path / "out")]
    assert main(["run", *what, *how, "--method", "icarl"]) == 0
    *_, cnn, own = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (cnn["scorer"], "scorer" in own) == ("cnn", False)
    summaries = [read_record(tmp_path / folder).summary for folder in ("out/cnn", "out")]
    assert [line["average_top1"] for line in (cnn, own)] == [s.average_top1 for s in summaries if s]


def test_show_shows_all_scorers(together: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(together), "--json"]) == 0
    runs = [json.loads(line)["run"] for line in capsys.readouterr().out.splitlines()]
    assert runs == [str(together / folder) for folder in (".", "il2m", "scail")]
