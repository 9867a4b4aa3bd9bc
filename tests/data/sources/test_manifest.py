import os
from pathlib import Path

import pyarrow
import pytest
from pyarrow import csv, parquet

from image_trees import grey, held_out, listed, write_images
from ssil.core.errors import UserError
from ssil.data.sources.manifest import manifest


def table(path: Path, *lines: str, header: str = "path,label,split") -> Path:
    path.write_text("\n".join((header, *lines)) + "\n")
    return path


def test_csv(tmp_path: Path) -> None:
    write_images(tmp_path, "a/1.png", "2.png", "3.png", "4.png")
    lines = ("a/1.png,10,train", "2.png,9,train", "3.png,9,validation", "4.png,10,Test")
    image_index = manifest(table(tmp_path / "mine.csv", *lines))
    assert image_index.name == "mine"
    assert listed(image_index) == {"9": ["2.png", "3.png"], "10": ["a/1.png", "4.png"]}
    assert held_out(image_index) == {"3.png", "4.png"}
    assert [grey(image_index, index) for index in range(4)] == [1, 0, 2, 3]


def test_without_a_split_the_test_part_is_open(tmp_path: Path) -> None:
    image_index = manifest(table(tmp_path / "mine.csv", "cat,1.png,x", "dog,2.png,y", header="label,path,other"))
    assert listed(image_index) == {"cat": ["1.png"], "dog": ["2.png"]}
    assert image_index.is_test is None
    assert (image_index.preprocessing.size, image_index.preprocessing.augment) == (64, "auto")


def test_spreadsheets_write_byte_order_marks_and_quotes(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes('\ufeffpath,label\r\n"a, b.png","Zürich, HB"\r\n\r\n'.encode())
    assert listed(manifest(tmp_path / "mine.csv")) == {"Zürich, HB": ["a, b.png"]}


def test_paths_may_be_relative_to_a_root_or_absolute(tmp_path: Path) -> None:
    write_images(tmp_path, "photos/1.png", "else/2.png")
    path = table(tmp_path / "mine.csv", "1.png,a", f"{tmp_path / 'else' / '2.png'},b", header="path,label")
    image_index = manifest(path, tmp_path / "photos")
    assert [grey(image_index, index) for index in range(2)] == [0, 1]


def test_parquet(tmp_path: Path) -> None:
    columns = {"path": ["1.png", "2.png", "3.png"], "label": [10, 9, 9], "split": ["train", "train", "val"]}
    categories = pyarrow.array(columns["split"]).dictionary_encode()
    folder = tmp_path / "year=2020"  # no partition, whatever it is called
    folder.mkdir()
    parquet.write_table(pyarrow.table(columns | {"split": categories, "more": [1, 2, 3]}), folder / "mine.parquet")
    image_index = manifest(folder / "mine.parquet")
    assert listed(image_index) == {"9": ["2.png", "3.png"], "10": ["1.png"]}
    assert held_out(image_index) == {"3.png"}


def test_empty_values_of_parquet(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"path": ["1.png", "2.png"], "label": ["a", None]}), tmp_path / "mine.parquet")
    with pytest.raises(UserError, match="row 2 has no label"):
        manifest(tmp_path / "mine.parquet")


def test_a_file_may_be_listed_by_its_whole_path(tmp_path: Path) -> None:
    path = table(tmp_path / "mine.csv", "1.png,a", f"{tmp_path / '1.png'},b", header="path,label")
    with pytest.raises(UserError, match="rows 1 and 2 list the same file"):
        manifest(path)


def test_names_are_shown_in_place_of_labels_in_order_of_appearance(tmp_path: Path) -> None:
    lines = ("Zürich HB,30,1.png", "Old Mill,4,2.png", "Zürich HB,30,3.png", "Old Mill,5,4.png")
    image_index = manifest(table(tmp_path / "mine.csv", *lines, header="name,label,path"))
    assert listed(image_index) == {
        "Zürich HB": ["1.png", "3.png"],
        "Old Mill (4)": ["2.png"],
        "Old Mill (5)": ["4.png"],
    }
    assert image_index.keys == ("30", "4", "5")
    assert image_index.is_test is None


@pytest.mark.parametrize("name", ["mine.CSV", "mine.Parquet"])
def test_suffixes_are_known_in_any_case(tmp_path: Path, name: str) -> None:
    columns = pyarrow.table({"path": ["1.png"], "label": ["a"]})
    (parquet.write_table if name.endswith("t") else csv.write_csv)(columns, tmp_path / name)
    assert listed(manifest(tmp_path / name)) == {"a": ["1.png"]}


@pytest.mark.parametrize(
    ("header", "lines", "error"),
    [
        ("file,label", ["1.png,a"], "has no column path: its columns are file, label"),
        ("file,class", ["1.png,a"], "has no column path nor label: its columns are file, class"),
        ("path,label", [], "lists no files"),
        ("path,label", ["1.png,a", "2.png"], "row 2 has no label"),
        ("path,label", [",a"], "row 1 has no path"),
        ("path,label,split", ["1.png,a,train", "2.png,a,dev"], "split 'dev' in row 2 is none of train, test, val"),
        ("path,label,split", ["1.png,a,"], "row 1 has no split"),
        ("path,label,split", ["1.png,a,train"], "the split of no row is test"),
        ("path,label,split", ["1.png,a,train", "1.png,a,test"], "rows 1 and 2 list the same file, 1.png; remove one"),
        ("path,label", ["1.png,a", "2.png,a", "1.png,b"], "rows 1 and 3 list the same file, 1.png"),
        ("path,label", ["x/1.png,a", "x//.././x/1.png,a"], "rows 1 and 2 list the same file"),
        ("path,label,name", ["1.png,a,"], "row 1 has no name"),
        (
            "path,label,name",
            ["1.png,a,Ant", "2.png,b,Bee", "3.png,a,Asp"],
            r"label 'a' has two names, 'Ant' \(row 1\) and 'Asp' \(row 3\); give it one",
        ),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, header: str, lines: list[str], error: str) -> None:
    with pytest.raises(UserError, match=error) as raised:
        manifest(table(tmp_path / "mine.csv", *lines, header=header))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("mine.csv", b"", "has no column path nor label: it is empty"),
        ("mine.csv", b"path,label\n\xff\xfe,a\n", "can't be read: 'utf-8' codec"),
        ("mine.parquet", b"", "can't be read: "),
        ("mine.parquet", b"path,label\n" * 9, "can't be read: "),
        ("mine.tsv", b"path\tlabel\n", "such a one ends in .csv or .parquet"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, content: bytes, error: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=error):
        manifest(tmp_path / name)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        manifest(tmp_path / "mine.csv")


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "table.csv")
    with pytest.raises(UserError, match=r"table\.csv can't be read"):
        manifest(tmp_path / "table.csv")
