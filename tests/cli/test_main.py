"""The command line as a whole."""

import gc

import pytest

from cycletime import cli


def test_garbage_is_looked_for_rarely_while_a_command_runs_and_then_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    before, during = gc.get_threshold(), []

    def fail(words: list[str]) -> int:
        during.append(gc.get_threshold()[0])
        raise RuntimeError(f"{words} failed")

    monkeypatch.setattr(cli, "_status_of", fail)
    with pytest.raises(RuntimeError, match="train"):
        cli.main(["train"])
    assert during == [100_000]
    assert gc.get_threshold() == before
