from pathlib import Path

import pytest

from ssil.benchmark.config import RunConfig
from ssil.benchmark.stream_table import read_stream_table
from ssil.core.errors import UserError


def table(folder: Path, text: str) -> Path:
    path = folder / "stream.csv"
    path.write_text(text)
    return path


def test_a_table_of_paths(tmp_path: Path) -> None:
    """Other columns are ignored, rows without a task left out; an image may come in several tasks."""
    found = read_stream_table(table(tmp_path, "path,label,task\na/1.png,a,1\nb/1.png,b,\na/1.png,a, 2\nc.png,c,2\n"))
    assert found.pairs(["c.png", "a/1.png", "b/1.png"], 3).tolist() == [[1, 1], [1, 2], [0, 2]]


def test_a_table_of_indices(tmp_path: Path) -> None:
    found = read_stream_table(table(tmp_path, "task,index\n2,0\n1,3\n"))
    assert found.pairs(None, 4).tolist() == [[0, 2], [3, 1]]


def test_a_table_that_has_changed_is_read_again(tmp_path: Path) -> None:
    assert read_stream_table(table(tmp_path, "index,task\n0,1\n")).tasks == (1,)
    assert read_stream_table(table(tmp_path, "index,task\n0,2\n")).tasks == (2,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column path nor index: it is empty"),
        ("image,task\n1,1\n", "no column path nor index: its columns are image, task"),
        ("path,index,task\na,1,1\n", "both a column path and a column index"),
        ("index\n1\n", "has no column task: its columns are index"),
        ("index,task\n", "gives no image a task"),
        ("index,task\n1,\n", "gives no image a task"),
        ("index,task\n1,1\n2,0\n", "row 2: task '0' is no number; tasks are counted from 1"),
        ("index,task\n1,one\n", "row 1: task 'one' is no number"),
        ("index,task\n1,1234567890123\n", "row 1: task '1234567890123' is no number"),
        ("index,task\n1,²\n", "row 1: task '²' is no number"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        read_stream_table(table(tmp_path, text))
    assert str(raised.value).startswith("stream: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        ("index,task\n4,1\n", None, "row 1: '4' is no training image; give numbers from 0 to 3"),
        ("index,task\n-1,1\n", None, "row 1: '-1' is no training image"),
        ("index,task\n,1\n", None, "row 1: '' is no training image"),
        ("path,task\na.png,1\n", None, "has paths, and this data set's images have none; give a column index"),
        ("path,task\ncat/l.png,1\n", ["cat/1.png"], "'cat/l.png' is no training image; did you mean 'cat/1.png'?"),
    ],
)
def test_rows_that_name_no_training_image(tmp_path: Path, text: str, names: list[str] | None, message: str) -> None:
    found = read_stream_table(table(tmp_path, text))
    with pytest.raises(UserError, match=r"^stream: ") as raised:
        found.pairs(names, 4)
    assert message in str(raised.value)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "bytes.csv", tmp_path / "none.csv", tmp_path):
        with pytest.raises(UserError, match=r"^stream: .* can't be read"):
            read_stream_table(path)


def test_a_table_decides_the_number_of_tasks(tmp_path: Path) -> None:
    path = str(table(tmp_path, "index,task\n0,1\n1,2\n2,3\n"))
    assert RunConfig(stream=path).increments == 3
    assert RunConfig(stream=path, tasks=3).increments == 3
    with pytest.raises(UserError, match=r"tasks: 4 are asked for, and .* has 3; leave out --tasks"):
        _ = RunConfig(stream=path, tasks=4).increments
