"""Values and tools that all rooms share: class table, samples, settings, randomness, errors, files, plug-ins.

It imports no other room. `settings.py`, `errors.py`, `files.py` and `plugins.py` don't import torch, so that commands
start quickly.
Start with `classes.py` (the class table with its task blocks) and `randomness.py` (every draw keyed by its position).
"""

__version__ = "0.2.0"
