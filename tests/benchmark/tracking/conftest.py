import json
from pathlib import Path

import pytest

from ssil.benchmark.record import Record, migrate


@pytest.fixture
def whole() -> Record:
    """Three tasks of two epochs and an evaluation each: nine steps."""
    return Record(**migrate(json.loads((Path(__file__).parents[2] / "golden" / "record-v1.json").read_text())))
