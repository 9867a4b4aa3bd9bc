"""The practitioner's side: an image classifier that is updated with new classes and kept in a model directory.

Start with `update.py` (one update, no disk) and `prediction.py` (the classifier as a value); `model_directory.py` loads
and publishes versions, `edits.py` changes them, `estimator.py` is the Python interface. May import `methods` and the
rooms below it, never `benchmark`. What `ssil predict` uses must not import torch (tests/cli/test_predict.py).
"""
