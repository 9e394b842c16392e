"""The command line as a whole: help, version, misspelt commands, and garbage."""

import gc
import resource

import pytest

from cycletime import cli
from cycletime.cli import main, transfer


def test_garbage_is_looked_for_rarely_while_a_command_runs_and_then_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    before, during = gc.get_threshold(), []

    def fail(words: list[str]) -> int:
        during.append(gc.get_threshold()[0])
        raise RuntimeError(f"{words} failed")

    monkeypatch.setattr(cli, "_status_of", fail)
    with pytest.raises(RuntimeError, match="train"):
        main(["train"])
    assert during == [100_000]
    assert gc.get_threshold() == before


@pytest.mark.parametrize("words", ["transfer --help", "transfer ppo --help", "transfer sac --help"])
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], words: str) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(words.split())
    assert leaving.value.code == 0
    assert "usage: cycletime" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_the_help_has_every_command_in_its_group(capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert main([word]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "usage: cycletime COMMAND ..."
    assert [line for line in lines if line.endswith(":")] == ["everyday:", "hardware:", "research:"]
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(cli._COMMANDS)
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "tranfer ppo",
            "There is no command 'cycletime tranfer': give one of transfer, explain, train, resume",
        ),
        ("tranfer ppo", "; did you mean transfer?"),
        ("study rum", "There is no command 'cycletime study rum': give one of run, plan, status"),
        ("study rum", "; did you mean run?"),
        ("paper list", "experiment; it is 'cycletime experiment VERB paper'."),
        ("gpu chek", "There is no command 'cycletime gpu chek': give one of check; did you mean check?"),
        ("zzz", "latency, gpu, robot, experiment."),
    ],
)
def test_a_misspelt_command_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str], words: str, says: str
) -> None:
    assert main(words.split()) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("cycletime 0.")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 4000000000000 bytes."),
        ImportError("libjax_common.so: failed to map segment from shared object"),  # by `ulimit -v`
    ],
)
def test_too_little_memory_is_told_in_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(command: transfer.TransferValues) -> int:
        raise error

    monkeypatch.setattr(transfer.TransferValues, "run", fail)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300_000_000, -1))
    words = ["transfer", "ppo", "--batch", "2000", "--from", "40ms", "--to", "20ms"]
    assert main(words) == 1
    told = capsys.readouterr()
    assert told.err == "cycletime: There is not enough memory for this: give it more, or ask for less at once.\n"
    assert told.out == ""
    monkeypatch.undo()
    if isinstance(error, ImportError):
        monkeypatch.setattr(transfer.TransferValues, "run", fail)
        with pytest.raises(ImportError):  # without a limit something else is wrong
            main(words)
