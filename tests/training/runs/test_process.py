"""Signals while a run goes on: the first asks, the second ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from cycletime.training.process import stopping, stopping_at_once


@pytest.fixture(autouse=True)
def _hangups_are_heard() -> Iterator[None]:
    """Also where the tests were started by nohup, which has them ignore SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_asks_and_the_second_ends_at_once(
    number: signal.Signals, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with stopping() as stopper:
        assert (stopper(), stopper.status) == (False, 0)
        signal.raise_signal(number)
        assert (stopper(), stopper.status) == (True, status)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
    assert capfd.readouterr().err.count("Stopping at the next good moment") == 1


def test_a_terminal_that_goes_asks_however_often_it_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    """The system and the shell both send SIGHUP."""
    with stopping() as stopper:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert (stopper(), stopper.status) == (True, 129)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    assert capfd.readouterr().err.count("Stopping at the next good moment") == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_robot_is_stopped_at_once_and_no_further_signal_disturbs_that(number: signal.Signals, status: int) -> None:
    before = signal.getsignal(signal.SIGINT)
    with stopping_at_once() as stopper:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(number)
        assert stopper.status == status
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_that_was_to_be_ignored_is_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stopping() as stopper:
            signal.raise_signal(signal.SIGINT)
            assert not stopper()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_but_it_stops_an_arm(number: signal.Signals) -> None:
    """Nobody may be beside it where it was started by nohup, or in a script's background."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with stopping_at_once() as stopper:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
            assert stopper.status == 128 + number
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_handlers_are_put_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ValueError, match="astray"), stopping():
        raise ValueError("astray")
    assert signal.getsignal(signal.SIGTERM) is before
