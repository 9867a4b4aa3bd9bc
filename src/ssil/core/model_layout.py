"""The names of the files of a model directory and of a run directory that more than one room reads."""

CURRENT, MODEL, WEIGHTS, VALIDATED = "current.json", "model.json", "weights.safetensors", "validated.safetensors"
VERSIONS, CANDIDATE, EXAM, PAGE = "versions", "candidate", "exam.json", "update.html"
RECORD, CHECKPOINT, STATE = "record.json", "checkpoint", "state.json"


def version_folder(number: int) -> str:
    """Return the name of the folder of a version of a model.

    >>> version_folder(3)
    '0003'
    """
    return f"{number:04d}"
