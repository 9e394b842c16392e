"""Options and values that no command understands, as people type them: one sentence, and what would be right."""

import sys
from dataclasses import is_dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import tyro
from tyro.conf import FlagCreatePairsOff

from cycletime.cli import _commands, main
from cycletime.cli.usage_errors import check_words

REACHER = "train --task reacher --dt 16ms --env-steps 9"
CARRY = "--from 40ms --to 120ms"


class Terminal(StringIO):
    """Standard output for which tyro draws in colours, and lines beyond ASCII."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            f"transfer ppo {CARRY} --gamma 0.99",
            "--gamma is --discount here; or give --from-library stable-baselines3 gamma=0.99.",
        ),
        (
            f"transfer ppo {CARRY} --n-steps=400",
            "--n-steps is --batch here; or give --from-library stable-baselines3 n_steps=400.",
        ),
        (
            f"transfer sac {CARRY} --batch_size 256",
            "--batch_size is --minibatch here; or give --from-library stable-baselines3 batch_size=256.",
        ),
        (
            f"transfer sac {CARRY} --tau --json",
            "--tau is --target-smoothing here; or give --from-library stable-baselines3 tau=....",
        ),
        (
            f"transfer ppo {CARRY} --discounting 0.9",
            "--discounting is --discount here; or give --from-library brax discounting=0.9.",
        ),
        (
            "transfer ppo --form 40ms --to 120ms",
            "There is no option --form in 'cycletime transfer ppo'; did you mean --from or --for?",
        ),
        ("latency --dt 16ms", "There is no option --dt in 'cycletime latency'; did you mean --dts?"),
        (f"{REACHER} --gamma 0.9", "--gamma is --discount here."),
        (f"{REACHER} --algorithm sac --tau=0.1", "--tau is --set target_smoothing=0.1 here."),
        (f"{REACHER} --hidden 32,32", "--hidden is --set hidden=32,32 here."),
        (f"{REACHER} -z", "There is no option -z: 'cycletime train --help' shows what it takes."),
        ("study run a b --x", "There is no option --x: 'cycletime study run --help' shows what it takes."),
        (f"transfer ppo {CARRY} --batch 400.5", "--batch: '400.5' is not a whole number such as 2000 or 1e6."),
        ("train --task reacher --dt 1s --env-steps lots", "--env-steps: 'lots' is not a whole number such as 2000 or"),
        ("watch a --speed fast", "--speed: 'fast' is not a number such as 0.99."),
        ("robot fault freeze --port x", "--port: 'x' is not a whole number such as 2000 or 1e6."),
        ("plot a --x hours", "--x is 'hours': give one of 'env-steps', 'seconds'."),
        ("experiment report papers", "INVESTIGATION is 'papers': give one of 'paper', 'horizons', or your own as"),
        ("experiment list no_module:MINE", "'no_module:MINE' needs a module that cannot be imported: No module named"),
        (
            "experiment list json:loads",
            "'json:loads' is of type function: json should have an Investigation of the name 'loads'.",
        ),
        ("experiment list", "INVESTIGATION is missing: 'cycletime experiment list --help' shows what it takes."),
        ("transfer ppo --from 40ms", "--to is missing: 'cycletime transfer ppo --help' shows what it takes."),
        ("study run", "FILE and --out are missing: 'cycletime study run --help' shows what it takes."),
        ("transfer ppo --to 4ms --from", "--from has no value: 'cycletime transfer ppo --help' shows what it takes."),
        (
            f"transfer ppo {CARRY} more",
            "Unexpected argument 'more': 'cycletime transfer ppo --help' shows what it takes.",
        ),
        (
            "transfer ppo n_steps=256 --from 40ms --to 10ms --from-library sb3",
            "Unexpected argument 'n_steps=256': a library's words belong after --from-library LIBRARY.",
        ),
        ("transfer ppo --from 40ms --to 10 ms", "Unexpected argument 'ms': write '10ms' as one word."),
        (f"transfer ppo {CARRY} --to 8ms", "--to is given twice; leave one out."),
        (
            f"transfer sac {CARRY} --also warm-up --also learning-rate",
            "--also is given twice: give all its values at once, --also warm-up learning-rate.",
        ),
        ("transfer", "'cycletime transfer' needs a command first, or a file, before its options: give one of ppo,"),
        (
            "transfer --from 40ms ppo.yml",
            "'cycletime transfer' needs a command first, or a file, before its options: give one of",
        ),
        ("gpu", "'cycletime gpu' needs a command first: give one of check."),
        ("", "'cycletime' needs a command first: give one of transfer, explain, train, resume,"),
    ],
)
@pytest.mark.parametrize(("columns", "stdout"), [("40", Terminal), ("200", StringIO)])
def test_what_is_not_understood_is_refused_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
    stdout: type[StringIO],
    words: str,
    says: str,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)  # tyro breaks its lines there
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", stdout())
    assert main(words.split()) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"cycletime: {says}")
    assert told.removesuffix("\n").isprintable()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (f"transfer ppo {CARRY} --json=1", "--json takes no value, and was given '1': leave that out."),
        ("robot check --host a --ports 1 2", "--ports has 2 of 3 values: 'cycletime robot check"),
        (
            "robot check --host a --ports 1 2 --host b",
            "--ports has 2 of 3 values: 'cycletime robot check",
        ),
        ("study export study -- a.csv b.csv", "Unexpected argument 'b.csv': 'cycletime study export --help' shows"),
        ("gpu check now", "Unexpected argument 'now': 'cycletime gpu check --help' shows what it takes."),
        ("evaluate --dt", "--dt has no value: 'cycletime evaluate --help' shows what it takes."),
    ],
)
def test_words_that_are_too_many_or_too_few(capsys: pytest.CaptureFixture[str], words: str, says: str) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"cycletime: {says}")


def understood(words: str) -> object:
    """What tyro makes of words that were found to be right."""
    commands = _commands(words.split())
    check_words(words.split(), commands)
    read: Any = tyro.extras.subcommand_cli_from_dict(
        commands, prog="cycletime", args=words.split(), config=(FlagCreatePairsOff,)
    )
    while is_dataclass(chosen := getattr(read, "command", None)):
        read = chosen
    return read


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("transfer sac --from 40ms --to 20ms --target-entropy -6", "target_entropy", -6.0),
        ("transfer sac --from 1s --to 2s --also warm-up clip --json", "also", ("warm-up", "clip")),
        ("transfer ppo --from=40ms --to 20ms --num_envs=4", "n_envs", 4),
        ("study pack -o pack.zip --", "files", ()),
        ("study export study -- -odd.csv", "file", Path("-odd.csv")),
        ("study pack a.toml b.toml -o pack.zip", "output", Path("pack.zip")),
        ("robot simulate --ports 0 0 0 0", "ports", ("0", "0", "0", "0")),
        ("robot fault protective stop", "words", ("protective", "stop")),
        ("plot", "folders", ()),
    ],
)
def test_words_that_tyro_takes_are_not_refused(words: str, field: str, value: object) -> None:
    assert getattr(understood(words), field) == value
