"""Many runs: which ones, which of them are done, and their doing."""

from ssil.grid.cells import Cell, finished
from ssil.grid.pool import Outcome, Watcher, carry_out
from ssil.grid.spec import read_spec

__all__ = ["Cell", "Outcome", "Watcher", "carry_out", "finished", "read_spec"]
