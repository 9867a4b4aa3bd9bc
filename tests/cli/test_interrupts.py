"""Ctrl-C and SIGTERM."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ssil.cli.interrupts import Interrupts, explained_interrupt, what_a_run_keeps


def test_signals_wait_only_once_and_only_in_training() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        interrupts.training = True
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupt_is_explained_by_what_is_kept_at_that_moment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    explained = explained_interrupt(lambda: what_a_run_keeps(out))
    with pytest.raises(KeyboardInterrupt, match="the last checkpoint is kept in"), explained:
        _interrupt_after(out.mkdir)


def _interrupt_after(action: Callable[[], None]) -> None:
    action()
    raise KeyboardInterrupt
