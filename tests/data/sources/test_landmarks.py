from pathlib import Path

import pytest

from image_trees import encoded, held_out, listed, write_image
from ssil.core.errors import UserError
from ssil.data.image_index import ImageIndex
from ssil.data.sources.landmarks import PLACES, landmarks, title

SIZES = {7: 4, 12: 9, 30: 6, 100: 6, 101: 6, 200: 2}


def identifier(landmark: int, number: int) -> str:
    """16 hexadecimal digits; those of landmark 7 look like numbers."""
    return f"{landmark * 31 + number:016}" if landmark == 7 else f"{landmark * 7919 + number * 104729:016x}"[::-1]


def lay(base: Path, backwards: bool = False) -> None:
    rows = [
        f'{identifier(landmark, number)},"http://upload.example.org/{landmark}, {number}.jpg",{landmark}'
        for landmark, size in SIZES.items()
        for number in range(size)
    ]
    (base / "train").mkdir(parents=True)
    (base / "train.csv").write_text("\n".join(("id,url,landmark_id", *(rows[::-1] if backwards else rows), "")))


def few(root: Path, seed: int = 0, most: int | None = None) -> ImageIndex:
    return landmarks(root, classes=3, test_per_class=2, seed=seed, max_per_class=most)


@pytest.mark.parametrize("place", PLACES)
def test_the_largest_classes(tmp_path: Path, place: str) -> None:
    lay(tmp_path / place)
    image_index = few(tmp_path)
    assert image_index.classes == ("12", "30", "100")  # 101 has as many as 100
    assert [len(files) for files in listed(image_index).values()] == [9, 6, 6]
    assert image_index.labels[image_index.is_test].tolist() == [0, 0, 1, 1, 2, 2]
    assert len(set(image_index.source.names)) == len(image_index)
    assert image_index.name == "landmark-v2-3"


def test_files_are_found_by_their_first_three_digits(tmp_path: Path) -> None:
    lay(tmp_path)
    image_index = landmarks(tmp_path, 5, 1, seed=0)
    name = identifier(7, 2)
    path = f"train/{name[0]}/{name[1]}/{name[2]}/{name}.jpg"
    assert path in listed(image_index)["7"]
    write_image(tmp_path / path, 9)
    assert image_index.source.read(image_index.source.names.index(path)) == encoded(".jpg", 9)


def test_the_look_leaves_pixels_as_they_are(tmp_path: Path) -> None:
    lay(tmp_path)
    look = few(tmp_path).preprocessing
    assert (look.size, look.augment, look.flip) == (224, "crop", True)
    assert (look.mean, look.std) == ((0.0,) * 3, (1.0,) * 3)


def test_the_test_part_is_drawn_by_the_seed_whatever_the_order_of_the_rows(tmp_path: Path) -> None:
    lay(tmp_path / "one")
    lay(tmp_path / "two", backwards=True)
    assert few(tmp_path / "one").source.names == few(tmp_path / "two").source.names
    assert held_out(few(tmp_path / "one")) != held_out(few(tmp_path / "one", seed=1))


def test_fewer_training_images_leave_the_test_part_alone(tmp_path: Path) -> None:
    lay(tmp_path)
    every, some = few(tmp_path), few(tmp_path, most=3)
    assert held_out(every) == held_out(some)
    assert [len(files) for files in listed(some).values()] == [5, 5, 5]
    assert set(some.source.names) < set(every.source.names)


def test_repeated_rows_count_once(tmp_path: Path) -> None:
    lay(tmp_path / "one")
    lay(tmp_path / "two")
    path = tmp_path / "two" / "train.csv"
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join((header, *rows, *rows[:4] * 9, *rows[13:])))
    one, two = few(tmp_path / "one"), few(tmp_path / "two")
    assert one.source.names == two.source.names
    assert held_out(one) == held_out(two)


def test_an_image_of_two_landmarks_is_refused(tmp_path: Path) -> None:
    lay(tmp_path)
    with (tmp_path / "train.csv").open("a") as file:
        file.write(f"{identifier(12, 0)},,30\n")
    with pytest.raises(UserError, match=f"has several landmarks for image {identifier(12, 0)}; get it again"):
        few(tmp_path)


@pytest.mark.parametrize(
    ("classes", "tests", "least", "error"),
    [
        (6, 2, None, "classes: 6 is too many, 5 landmarks have 3 or more images"),
        (5, 2, 5, "classes: 5 is too many, 4 landmarks have 5 or more images"),
    ],
)
def test_numbers_that_are_refused(tmp_path: Path, classes: int, tests: int, least: int | None, error: str) -> None:
    lay(tmp_path)
    with pytest.raises(UserError, match=error):
        landmarks(tmp_path, classes, tests, seed=0, min_per_class=least)


def test_names_of_categories(tmp_path: Path) -> None:
    lay(tmp_path)
    wiki = "http://commons.wikimedia.org/wiki/Category:"
    lines = (f"12,{wiki}Haus_Bichler", f'30,"{wiki}Happy,_CA"', f"100,{wiki}Haus_bichler")
    (tmp_path / "train_label_to_category.csv").write_text("\n".join(("landmark_id,category", *lines)))
    image_index = few(tmp_path)
    assert image_index.classes == ("Haus Bichler (12)", "Happy, CA", "Haus bichler (100)")
    assert image_index.keys == ("12", "30", "100")


@pytest.mark.parametrize("content", ["id,name\n12,x\n", "landmark_id,category\n12\n"])
def test_categories_that_are_refused(tmp_path: Path, content: str) -> None:
    lay(tmp_path)
    (tmp_path / "train_label_to_category.csv").write_text(content)
    with pytest.raises(UserError, match="is no table of landmark_id,category"):
        few(tmp_path)


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("https://commons.wikimedia.org/wiki/Category:Z%C3%BCrich_HB", "Zürich HB"),
        ("https://commons.wikimedia.org/wiki/Category:AC/DC_Lane", "AC/DC Lane"),
        ("https://example.org/wiki/Old_Mill", "Old Mill"),
        ("Old_Mill", "Old Mill"),
    ],
)
def test_titles(category: str, name: str) -> None:
    assert title(category) == name


@pytest.mark.parametrize("content", ["", "id,url\na,b\n", "id,url,landmark_id\na,b,c\n"])
def test_tables_that_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train.csv").write_text(content)
    with pytest.raises(UserError, match=r"train.csv is no table of id,url,landmark_id") as raised:
        few(tmp_path)
    assert "\n" not in str(raised.value)


def test_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"put train.csv and train/ into a folder .* in .*--data-root or \$SSIL_DATA"):
        few(tmp_path)
