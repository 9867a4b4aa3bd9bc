"""`ssil serve` as a process: predictions, a version that changes under load, and what is refused."""

import json
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

import httpx2
import pytest

from served import FIRST, LATER, Served, form, served, two_versions
from ssil.classifier.model_directory import ModelDirectory
from tiny_classifiers import png

KILOBYTES, SECONDS = 1 << 10, 60


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelDirectory:
    return two_versions(tmp_path_factory.mktemp("model") / "birds")


@pytest.fixture(scope="module")
def server(model: ModelDirectory) -> Iterator[Served]:
    with served(str(model.folder), "--max-megabytes", "1", "--max-images", "4") as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx2.Client]:
    with server.client() as opened:
        yield opened


def version(client: httpx2.Client) -> int:
    return int(client.get("/health").json()["version"])


def wait_for_version(client: httpx2.Client, number: int) -> None:
    end = monotonic() + 60
    while version(client) != number:
        assert monotonic() < end
        sleep(0.05)


def test_the_same_answers_as_on_the_command_line(client: httpx2.Client, model: ModelDirectory, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.png" for name in FIRST]
    for name, path in zip(FIRST, paths, strict=True):
        path.write_bytes(png(name, 77))
    words = [sys.executable, "-m", "ssil", "predict", str(model.folder), *map(str, paths), "--top", "3", "--json"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    expected = [[list(one.values()) for one in json.loads(line)["classes"]] for line in printed.splitlines()]
    answer = client.post("/predict", params={"top": 3, "unknown": 0}, files=form(*FIRST)).json()
    assert [[list(one.values()) for one in image["classes"]] for image in answer["images"]] == expected
    assert [image["name"] for image in answer["images"]] == [path.name for path in paths]
    assert [image["classes"][0]["name"] for image in answer["images"]] == [*FIRST]


def test_classes_health_and_pages(client: httpx2.Client, server: Served) -> None:
    assert client.get("/classes").json() == {"version": 1, "classes": [*FIRST]}
    health = httpx2.get(f"{server.address}/health", timeout=SECONDS).json()
    assert health == {"status": "ok", "version": 1, "problem": None}
    page = client.get("/docs").text
    assert "POST /predict" in page
    assert "http://" not in page.replace(server.address, "")
    assert "https://" not in page
    assert client.get("/static/studio.css").headers["content-type"].startswith("text/css")


def test_unknown_by_a_probability(client: httpx2.Client) -> None:
    def unknown(threshold: float) -> bool:
        answer = client.post("/predict", params={"unknown": threshold}, files=form("ant")).json()
        return bool(answer["images"][0]["unknown"])

    assert (unknown(0), unknown(1)) == (False, True)


def test_metrics_count_images_and_answers(client: httpx2.Client) -> None:
    def numbers() -> dict[str, float]:
        lines = [line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[0] != "#"]
        return {name: float(value) for name, value in lines}

    before = numbers()
    client.post("/predict", files=[*form("ant"), ("images", ("bad.png", b"bad"))])
    client.get("/nothing/here")
    after = numbers()
    predicted, unreadable = 'ssil_images_total{result="predicted"}', 'ssil_images_total{result="unreadable"}'
    assert [after[name] - before.get(name, 0) for name in (predicted, unreadable)] == [1, 1]
    answered, other = (
        f'ssil_requests_total{{path="{p}",status="{s}"}}' for p, s in (("/predict", 200), ("other", 404))
    )
    assert after[answered] - before.get(answered, 0) == 1
    assert after[other] - before.get(other, 0) == 1
    assert after["ssil_model_version"] == 1


def test_one_bad_image_among_good_ones_is_named(client: httpx2.Client) -> None:
    files = [*form("ant"), ("images", ("bad.png", b"no image")), *form("bee")]
    images = client.post("/predict", files=files).json()["images"]
    assert [image["error"] for image in images] == [None, "not an image", None]
    assert [image["classes"][0]["name"] for image in images if image["classes"]] == ["ant", "bee"]


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims to have this size."""
    parts = [b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0), b"IDAT" + zlib.compress(b""), b"IEND"]
    chunks = [struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.svg", b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "not an image"),
        ("x.html", b"<script>alert(1)</script>", "not an image"),
        ("x.png", b"", "empty file"),
        ("x.png", png("ant", 1)[:60], "truncated|broken"),
        ("bomb.png", png_header(16_000, 16_000), "more than 89,478,485"),
        ("bomb.png", png_header(2**31 - 1, 1), "more than 89,478,485"),
        ("x.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
        ("../../etc/passwd", b"root:x:0:0", "not an image"),
    ],
)
def test_hostile_files_are_refused(client: httpx2.Client, name: str, data: bytes, said: str) -> None:
    answer = client.post("/predict", files={"images": (name, data)})
    assert answer.status_code == 422
    assert re.search(said, answer.json()["detail"])


def test_too_much_is_refused(client: httpx2.Client) -> None:
    large = client.post("/predict", files={"images": ("x.png", bytes(1025 * KILOBYTES))})
    assert large.status_code == 413
    many = client.post("/predict", files=form(*["ant"] * 5))
    assert many.status_code == 413
    assert "more than 4" in many.json()["detail"]
    assert client.post("/predict", files=form(*["ant"] * 4)).status_code == 200


def test_a_body_without_a_length_is_counted(server: Served) -> None:
    """The answer comes before the body has ended."""
    at = urlsplit(server.address)
    head = f"POST /predict HTTP/1.1\r\nHost: {at.netloc}\r\nAuthorization: Bearer {server.token}\r\n"
    head += "Content-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n"
    start = b'--x\r\nContent-Disposition: form-data; name="images"; filename="a.png"\r\n\r\n'
    with socket.create_connection((at.hostname, at.port), timeout=60) as connection:
        connection.sendall(head.encode() + b"%x\r\n%s\r\n" % (len(start), start))
        for _ in range(17):
            connection.sendall(b"10000\r\n" + bytes(1 << 16) + b"\r\n")
        assert b" 413 " in connection.recv(100)


@pytest.mark.parametrize(
    "kind",
    [{"json": {"images": "x"}}, {"data": {"images": "x"}}, {"content": b"x", "headers": {"content-type": "image/png"}}],
)
def test_bodies_that_are_no_forms_are_refused(client: httpx2.Client, kind: dict[str, object]) -> None:
    assert client.post("/predict", **kind).status_code == 415  # type: ignore[arg-type]


def test_forms_that_are_not_well_made_are_refused(client: httpx2.Client) -> None:
    kind = {"content-type": "multipart/form-data; boundary=x"}
    assert client.post("/predict", content=b"--x\r\nrubbish", headers=kind).status_code in {400, 422}
    assert client.post("/predict", content=b"--y", headers={"content-type": "multipart/form-data"}).status_code == 400
    assert client.post("/predict", files={"pictures": ("a.png", png("ant", 1))}).status_code == 422


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/static/../access.py", "/static/..%2f..%2faccess.py", "/%2e%2e/"]
)
def test_paths_lead_nowhere_else(server: Served, path: str) -> None:
    at = urlsplit(server.address)
    head = (
        f"GET {path} HTTP/1.1\r\nHost: {at.netloc}\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection((at.hostname, at.port), timeout=60) as connection:
        connection.sendall(head.encode())
        assert b" 404 " in connection.recv(100)


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"authorization": "Basic x"}, {"cookie": "ssil-1=x"}, {"cookie": "="}],
)
def test_no_token_no_answer(server: Served, headers: dict[str, str]) -> None:
    for path in (
        "/classes",
        "/metrics",
        "/docs",
        "/openapi.json",
        "/static/studio.css",
        "/enter",
        "/enter?token=wrong",
    ):
        assert httpx2.get(server.address + path, headers=headers, timeout=SECONDS).status_code == 401
        page = httpx2.get(server.address + path, headers={**headers, "accept": "text/html"}, timeout=SECONDS)
        assert page.status_code == 401
        assert "open the address that it has printed" in page.text
        assert server.token not in page.text
    answer = httpx2.post(f"{server.address}/predict", files=form("ant"), headers=headers, timeout=SECONDS)
    assert answer.status_code == 401


def test_the_token_becomes_a_strict_cookie(server: Served) -> None:
    with httpx2.Client(base_url=server.address, timeout=SECONDS) as browser:
        answer = browser.get(f"/enter?token={server.token}")
        assert answer.status_code == 303
        kept = answer.headers["set-cookie"].lower()
        assert "httponly" in kept
        assert "samesite=strict" in kept
        assert browser.get("/classes").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "192.168.1.7", ""])
def test_other_names_are_refused(client: httpx2.Client, host: str) -> None:
    """A page of a stranger whose name was made to lead here."""
    for path in ("/classes", "/health"):
        assert client.get(path, headers={"host": host}).status_code in {400, 421}


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_are_refused(client: httpx2.Client, headers: dict[str, str]) -> None:
    assert client.post("/predict", files=form("ant"), headers=headers).status_code == 403


def test_own_pages_are_not_refused(client: httpx2.Client, server: Served) -> None:
    headers = {"origin": server.address, "sec-fetch-site": "same-origin"}
    assert client.post("/predict", files=form("ant"), headers=headers).status_code == 200


def test_every_answer_has_the_headers(client: httpx2.Client, server: Served) -> None:
    unknown = httpx2.get(f"{server.address}/classes", timeout=SECONDS)
    for answer in (client.get("/classes"), client.get("/nothing"), unknown):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_another_version_under_load(model: ModelDirectory, tmp_path: Path) -> None:
    """Eight clients ask all the time; the version changes six times; every answer is right for the version it names."""
    expected = {1: {*FIRST}, 2: {*FIRST, *LATER}}
    done, seen, failed = threading.Event(), set[int](), list[object]()

    def ask(server: Served) -> int:
        count = 0
        with server.client() as client:
            while not done.is_set():
                answer = client.post("/predict", params={"top": 5}, files=form("ant", "bee"))
                found = answer.json() if answer.status_code == 200 else {}
                names = [{one["name"] for one in image["classes"]} for image in found.get("images", [])]
                first = [image["classes"][0]["name"] for image in found.get("images", [])]
                if names != [expected[found.get("version", 1)]] * 2 or first != ["ant", "bee"]:
                    failed.append(answer.text)
                seen.add(found.get("version", 0))
                count += 1
        return count

    with served(str(model.folder)) as server, ThreadPoolExecutor(8) as pool, server.client() as client:
        asked = [pool.submit(ask, server) for _ in range(8)]
        try:
            for number in (2, 1, 2, 1, 2, 1):
                model.point_to(number)
                wait_for_version(client, number)
        finally:
            done.set()
        counts = [one.result() for one in asked]
    assert not failed
    assert seen == {1, 2}
    assert min(counts) >= 1
    assert sum(counts) >= 6 * 8


def test_a_version_that_cannot_be_loaded_changes_nothing(model: ModelDirectory, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(model.folder, copy)
    directory = ModelDirectory(copy)
    (directory.version(2) / "model.onnx").write_bytes(b"damaged")
    with served(str(copy)) as server, server.client() as client:
        directory.point_to(2)
        end = monotonic() + 60
        while (health := client.get("/health").json())["status"] == "ok":
            assert monotonic() < end
            sleep(0.05)
        assert health["status"] == "stale"
        assert "checksum differs" in health["problem"]
        assert client.post("/predict", files=form("ant")).json()["version"] == 1
        directory.point_to(1)
        while client.get("/health").json()["status"] != "ok":
            assert monotonic() < end
            sleep(0.05)


def test_other_computers_need_a_token_of_the_users(model: ModelDirectory) -> None:
    token = "a-token-of-my-own"
    arguments = (str(model.folder), "--host", "0.0.0.0", "--name", "birds.example.org")
    with served(*arguments, SSIL_TOKEN=token) as server, server.client() as client:
        assert server.token == token
        for host, status in (("birds.example.org", 200), ("192.168.1.7:8000", 200), ("evil.example", 421)):
            assert client.get("/classes", headers={"host": host}).status_code == status


def test_torch_is_not_imported(model: ModelDirectory) -> None:
    code = (
        "import sys; from pathlib import Path; from ssil.studio.access import make_access; "
        "from ssil.studio.application import *; "
        f"prediction_server(ServerSettings(Path({str(model.folder)!r}), make_access('localhost', 1))); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_requests_made_from_the_schema(server: Served, tmp_path: Path) -> None:
    """The short form; docs/studio.md has the long one."""
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    words = [f"{Path(sys.executable).parent}/schemathesis", "run", f"{server.address}/openapi.json", "-n", "15"]
    words += ["-H", f"Authorization: Bearer {server.token}", "--phases", "coverage,fuzzing", "-c", checks]
    words += ["--generation-deterministic", "--no-color", "--request-timeout", "60"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d+ generated", done.stdout)
