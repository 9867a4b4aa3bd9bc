"""The routes of photos over HTTP: added, moved, shown; what is no photo or no name is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from served import Served, form, served
from ssil.studio.staging import Staging
from tiny_classifiers import png


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studio") / "new"


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Served]:
    with served(str(model), "--no-browser", command="studio") as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx2.Client]:
    with server.client() as opened:
        yield opened


def digest(model: Path, name: str) -> str:
    return Staging(model).by_class()[name][0].digest


def test_added_moved_removed_restored(client: httpx2.Client, model: Path) -> None:
    files = [*form("ant"), ("images", ("../evil.png", b"bad")), ("images", ("x.svg", b"<svg/>"))]
    answer = client.post("/photos", params={"class": "ant"}, files=files).json()
    assert answer["added"] == 1
    assert [one["name"] for one in answer["refused"]] == ["../evil.png", "x.svg"]
    own = digest(model, "ant")
    assert "bee" in client.post(f"/photos/{own}/move", data={"class": "bee"}).text
    assert digest(model, "bee") == own
    assert "No photos yet" in client.post(f"/photos/{own}/remove").text
    assert "bee" in client.post(f"/photos/{own}/restore").text
    assert client.post(f"/photos/{own}/remove").status_code == 200


def test_a_thumbnail_is_made_anew(client: httpx2.Client, model: Path) -> None:
    """What a stranger has put behind the pixels is not sent."""
    data = png("ant", 5) + b"<script>alert(1)</script>"
    client.post("/photos", params={"class": "ant"}, files={"images": ("a.png", data)})
    answer = client.get(f"/image/{digest(model, 'ant')}")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.content[:2] == b"\xff\xd8"
    assert b"script" not in answer.content


@pytest.mark.parametrize(
    "path", ["/image/x", "/image/..%2f..%2fetc", f"/image/{'0' * 32}", "/updates/9", "/updates/9/events"]
)
def test_what_is_not_there(client: httpx2.Client, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("name", ["", "a" * 61, "a\x00b"])
def test_names_that_cannot_be_used(client: httpx2.Client, name: str) -> None:
    answer = client.post("/photos", params={"class": name}, files=form("ant"))
    assert answer.status_code == 422
    assert "can't be a name" in answer.json()["detail"]


def test_pages_of_a_model_that_is_not_there_yet(client: httpx2.Client) -> None:
    for path in ("/", "/try", "/history", "/help"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "<h1>" in answer.text
    assert client.post("/try", files=form("ant")).text.count("nothing has been learnt yet") == 1
    assert client.get("/classes").status_code == 503
    assert client.get("/export/model.onnx").status_code == 404


def test_class_names_are_escaped(client: httpx2.Client, model: Path) -> None:
    name = "<script>alert(1)</script>"
    client.post("/photos", params={"class": name}, files={"images": ("a.png", png("ant", 9))})
    page = client.get("/").text
    assert name not in page
    assert "&lt;script&gt;" in page
    client.post(f"/photos/{digest(model, name)}/remove")


def test_a_thousand_photos_by_eight_clients(server: Served, model: Path) -> None:
    """Each is added once, and a request that is repeated adds nothing."""

    def add(start: int) -> int:
        with server.client() as client:
            files = [("images", (f"{copy}.png", png("hen", copy))) for copy in range(start, start + 50)]
            answers = [client.post("/photos", params={"class": "hen"}, files=files).json() for _ in range(2)]
        return int(answers[0]["added"])

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(0, 1000, 50))) == 1000
    assert len(Staging(model).by_class()["hen"]) == 1000


def test_other_sites_add_nothing(client: httpx2.Client, model: Path) -> None:
    before = len([*Staging(model)])
    for path in (
        "/photos?class=ant",
        "/learn",
        f"/photos/{'0' * 32}/remove",
        "/history/1/current",
        "/updates/1/cancel",
    ):
        assert client.post(path, files=form("bee"), headers={"origin": "http://evil.example"}).status_code == 403
    assert len([*Staging(model)]) == before


def test_a_phone_in_the_same_network(tmp_path: Path) -> None:
    """With a token of the user's, other devices reach the studio by an address, not by a name that is not known."""
    token = "a-token-of-my-own"
    arguments = (str(tmp_path / "new"), "--no-browser", "--host", "0.0.0.0", "--name", "desk.local")
    with served(*arguments, command="studio", SSIL_TOKEN=token) as running, running.client() as client:
        assert running.address.startswith("http://127.0.0.1:")
        for host, status in (("192.168.1.7:8080", 200), ("desk.local:8080", 200), ("evil.example", 421)):
            assert client.get("/", headers={"host": host}).status_code == status
