"""No room on the disk, here by the limit of a file's size that the system sets a process: nothing is lost."""

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from simplejpeg import encode_jpeg

from served import Served, served, two_versions
from ssil.classifier.versions import VersionedDirectory
from ssil.studio.learning_jobs import LearningJobs
from ssil.studio.staging import Staging
from tiny_classifiers import png, settings

ROOM, SECONDS = 4096, 120
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux changes the limits of another process")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return two_versions(tmp_path / "model").folder


@pytest.fixture
def server(model: Path) -> Iterator[Served]:
    with served(str(model), "--no-browser", "--trust", settings().backbone, command="studio") as running:
        yield running


def limit(server: Served, size: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, hard))


def learnt(server: Served, model: Path) -> str:
    """Learn by the button; return the heading and the notice of the page at the end."""
    end, jobs = time.monotonic() + SECONDS, LearningJobs(model)
    with server.client() as client:
        assert client.post("/learn").status_code == 303
        while jobs.running():
            assert time.monotonic() < end
            time.sleep(0.05)
        return client.get(f"/updates/{jobs.all()[-1].number}").text


def test_no_room(server: Served, model: Path) -> None:
    large = encode_jpeg(np.random.default_rng(0).integers(256, size=(96, 96, 3), dtype=np.uint8), 90)
    assert len(large) > ROOM
    files = [("images", (f"{copy}.png", png("fly", copy))) for copy in range(6)] + [("images", ("large.jpg", large))]
    limit(server, ROOM)
    with server.client() as client:
        answer = client.post("/photos", params={"class": "fly"}, files=files).json()
        assert answer["added"] == 6
        (refused,) = answer["refused"]
        assert refused["name"] == "large.jpg"
        assert refused["reason"].startswith("disk: the image can't be kept (File too large); make room")
        page = learnt(server, model)
        assert "Not learnt" in page
        assert "can&#39;t be written (File too large); make room" in page
        assert VersionedDirectory(model).current() == 1
        assert len([*Staging(model)]) == 6
        limit(server, resource.RLIM_INFINITY)
        assert client.post("/photos", params={"class": "fly"}, files=files).json()["added"] == 7
    assert "Learnt: version 3" in learnt(server, model)
    assert [*Staging(model)] == []


def test_no_room_to_begin_an_update(server: Served, model: Path) -> None:
    """Not even its folder's table can be written."""
    with server.client() as client:
        client.post("/photos", params={"class": "fly"}, files=[("images", ("a.png", png("fly", 1)))])
        limit(server, 10)
        answer = client.post("/learn", headers={"accept": "text/html"})
        assert answer.status_code == 507
        assert "disk: something could not be written or read (File too large)" in answer.text
        assert client.post("/learn").json()["detail"].startswith("disk: ")
        limit(server, resource.RLIM_INFINITY)
    assert len([*Staging(model)]) == 1
