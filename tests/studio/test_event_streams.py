"""The progress of an update as server-sent events: to a hundred readers at once, and from where a reader left off."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from served import Served, served
from studio_jobs import running_job

READERS = 100


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events") / "new"


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Served]:
    with served(str(model), "--no-browser", command="studio") as running:
        yield running


def read(server: Served, number: int, **headers: str) -> list[str]:
    """The ids and the last event of a stream."""
    with server.client() as client, client.stream("GET", f"/updates/{number}/events", headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in stream.iter_lines() if line.startswith(("id: ", "event: end"))]
    return [line.removeprefix("id: ") for line in lines]


def test_a_hundred_readers(server: Served, model: Path) -> None:
    with ThreadPoolExecutor(READERS) as pool, running_job(model, 1) as job:
        readers = [pool.submit(read, server, 1) for _ in range(READERS)]
        for step in range(1, 6):
            sleep(0.1)
            job.append("progress", stage="learning", done=step / 5)
        with server.client() as client:
            assert "Learning" in client.get("/updates/1").text
        (job.folder / "lock").unlink()  # as if the process had ended: nobody holds a lock that is not there
        found = [reader.result() for reader in readers]
    assert found == [["1", "2", "3", "4", "5", "6", "event: end"]] * READERS


def test_a_reader_goes_on_from_where_it_was(server: Served, model: Path) -> None:
    with running_job(model, 2) as job:
        job.append("progress", stage="learning", done=0.5)
    assert read(server, 2, **{"last-event-id": "1"}) == ["2", "event: end"]
    assert read(server, 2, **{"last-event-id": "rubbish"}) == ["1", "2", "event: end"]


def test_a_job_whose_process_was_killed_says_so(server: Served, model: Path) -> None:
    with running_job(model, 3):
        pass
    with server.client() as client:
        page = client.get("/updates/3").text
    assert "Stopped" in page
    assert "your photos are still here" in page


def test_an_update_is_cancelled_by_its_button(server: Served, model: Path) -> None:
    """And no other route answers in its place."""
    with running_job(model, 4) as job, server.client() as client:
        assert client.post("/updates/4/cancel").status_code == 303
        assert (job.folder / "cancel").exists()
        assert "there is none before this one" in client.post("/updates/4/take-back").text
        assert "holds no model" in client.post("/updates/4/decision/accept").text
        assert client.post("/updates/4/decision/other").status_code == 422
