"""`cycletime tune` as people type it: the table, the sentences, the file, and what it refuses before it computes."""

import json
import re
import shlex
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, nan
from pathlib import Path
from typing import Any

import pytest
import tyro

from cycletime.agents import SACAgent
from cycletime.cli.tune import Tune
from cycletime.errors import InputError
from cycletime.studies import executors, hardware_estimates
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.tuning_spec import read_tuning
from cycletime.training.spec import RunSpec
from cycletime.training.toml_files import read_tuned
from tests.studies.small import finished, specs_of

FILE = """
name = "toy"
task = "reacher"
algorithm = "sac"
dt = "16ms"
seeds = 2
fresh_seeds = 3
env_steps = 2000
[tuned]
discount = [0.5, 0.851, 0.99]
"""
MACHINE = {"cycletime": "1", "jax": "2", "jaxlib": "3", "device": "toy", "processor": "none", "python": "4"}


@dataclass
class Toy:
    """Workers that are done at once: best with a discount of 0.851, and a little worse with fresh seeds."""

    workers: int = 2
    interrupted: bool = False
    astray: int | None = None
    gone: list[str] = field(default_factory=list)

    def find_workers(self, study: Path) -> Iterable[str]:
        return ()

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        if self.interrupted:
            signal.raise_signal(signal.SIGTERM)
        else:
            folder = StudyFolder.open(study)
            left = [spec for spec in specs_of(folder) if spec.name not in folder.store]
            scores = [nan if (score := self.score(spec)) is None else score for spec in left]
            folder.store.add([finished(*each, machine=MACHINE) for each in zip(left, scores, strict=True)])
        self.gone = [f"{command}-0"]
        return self.gone

    def score(self, spec: Any) -> float | None:  # noqa: ANN401 - what the executor gives
        assert isinstance(spec, RunSpec)
        assert isinstance(spec.agent, SACAgent)
        return None if spec.seed == self.astray else -abs(spec.agent.discount - 0.851) - spec.seed / 1000

    def poll(self, wait_s: float) -> Mapping[str, str]:
        gone, self.gone = self.gone, []
        return dict.fromkeys(gone, "")

    def stop(self, study: Path) -> None:
        pass

    def close(self, wait_s: float) -> None:
        pass


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(executors, "LocalExecutor", Toy)
    Path("tuning.toml").write_text(FILE)
    return Path("tuning.toml")


def tune(words: str) -> int:
    return tyro.cli(Tune, args=shlex.split(words)).run()


def test_it_prints_the_ranking_and_writes_the_winner(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(f"{file} --out out") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["place", "discount", "mean", "return", "s.e.", "n"],
        ["1", "0.851", "-0.0005", "0.0005", "2"],
        ["2", "0.99", "-0.1395", "0.0005", "2"],
        ["3", "0.5", "-0.3515", "0.0005", "2"],
    ]
    assert lines[5:] == [
        "The winner has a discount horizon of 0.0992 s.",
        "The winner is better than 2 of 2 other trials; for 0 that is not decided by the data.",
        "With fresh seeds (seeds 1000 to 1002) the winner has a mean return of -1.001 (-1.002 to -1, standard error, "
        "n = 3).",
        "That is 1 lower than in tuning: the best of many looks better than it is.",
        "",
        "Written to out/tuned.toml",
    ]
    assert read_tuned("out/tuned.toml").of("sac").values == {"discount": 0.851, "minibatch": 256}
    ranking = json.loads(Path("out/ranking.json").read_text())
    assert [(each["place"], each["values"]["discount"], each["n"]) for each in ranking] == [
        (1, 0.851, 2),
        (2, 0.99, 2),
        (3, 0.5, 2),
    ]


def test_the_same_command_again_writes_the_same_file(file: Path) -> None:
    Path("elsewhere").mkdir()
    command = f"{file} --out out --write elsewhere/tuned.toml --fresh-seeds 1"
    assert tune(command) == 0
    before = Path("elsewhere/tuned.toml").read_bytes()
    assert b'ranking = "../out/ranking.json"' in before
    assert tune(command) == 0
    assert Path("elsewhere/tuned.toml").read_bytes() == before
    assert not Path("out/tuned.toml").exists()


def test_options_choose_sampler_and_trials(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(f"{file} --out out --sampler random --trials 12 --sampler-seed 3") == 0
    assert "and 2 more, in ranking.json" in capsys.readouterr().out
    assert len(json.loads(Path("out/ranking.json").read_text())) == 12
    noted = Path("out/trials/study.json").read_text()
    assert tune(f"{file} --out out --sampler random --trials 4 --sampler-seed 3") == 0
    assert Path("out/trials/study.json").read_text() == noted, "fewer trials forget none that were noted"


def test_horizons_are_tuned_and_those_at_the_edge_are_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("plain.toml").write_text(FILE.partition("[tuned]")[0])
    assert tune("plain.toml --horizons --out out") == 0
    told = capsys.readouterr().out
    assert "The winner has a discount horizon of 0.1 s.\n" in told
    assert "Its discount horizon is the shortest that was tried, and a shorter one may be better." in told
    assert read_tuned("out/tuned.toml").of("sac").values["discount"] == pytest.approx(exp(-0.16))
    assert len(json.loads(Path("out/ranking.json").read_text())) == 7


def test_horizons_of_a_file_are_tried_whether_or_not_the_option_asks_for_horizons(file: Path) -> None:
    Path("own.toml").write_text(f"{FILE.partition('[tuned]')[0]}[horizons]\ndiscount = ['0.1s', '0.2s']\n")
    tried = []
    for option in ("", "--horizons"):
        assert tune(f"own.toml {option} --out out{option}") == 0
        ranking = json.loads(Path(f"out{option}/ranking.json").read_text())
        tried.append(sorted(trial["values"]["discount"] for trial in ranking))
    assert tried == [pytest.approx([exp(-0.16), exp(-0.08)])] * 2


def test_trials_that_tie_are_told(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Toy, "score", lambda self, spec: -float(spec.seed))
    assert tune(f"{file} --out out") == 0
    assert "2 other trials have exactly the winner's scores, as where what was tried changes" in capsys.readouterr().out


def test_on_a_gpu_one_worker_trains_as_many_trials_together_as_fit(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hired = []

    def hire(workers: int, gpus: tuple[str, ...]) -> Toy:
        hired.append((workers, gpus))
        return Toy(workers)

    monkeypatch.setattr(executors, "LocalExecutor", hire)
    monkeypatch.setattr(hardware_estimates, "check_start", lambda *_: None)  # there is no GPU here
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    file.write_text(f'device = "gpu"\nengine = "compiled"\n{FILE}')
    for fresh_seeds in (3, 4):  # the second time by what the folder says
        assert tune(f"{file} --out out --fresh-seeds {fresh_seeds}") == 0
        studies = [StudyFolder.open(Path("out") / part).study for part in ("trials", "fresh")]
        assert [(study.device, study.width) for study in studies] == [("gpu", 6), ("gpu", 3)]
    assert hired == [(1, ()), (1, ())]


def test_a_signal_stops_it_with_the_signal_s_status(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(executors, "LocalExecutor", lambda: Toy(interrupted=True))
    assert tune(f"{file} --out out") == 128 + signal.SIGTERM
    assert "Stopped. The same command goes on." in capfd.readouterr().err
    assert not Path("out/tuned.toml").exists()


@pytest.mark.parametrize(
    ("seed", "line"),
    [
        (1002, "the winner has a mean return of -1 (-1.001 to -1, standard error, n = 2, 1 failed)."),
        (1000, "With fresh seeds (seed 1000) the winner has no mean: 1 of 1 runs diverged or ended no episode."),
    ],
)
def test_fresh_runs_that_went_astray_are_told(
    seed: int, line: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(executors, "LocalExecutor", lambda: Toy(astray=seed))
    assert tune(f"{file} --out out --fresh-seeds {seed - 999}") == 1
    assert line in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--out out --workers 0", r"^workers is 0: it must be at least 1\.$"),
        ("--out out --executor abacus", r"^'abacus' is not an executor: give local, ray or slurm\.$"),
        ("--out out --write no/tuned.toml", r"^--write is no/tuned\.toml: there is no folder no\.$"),
        ("--out out --write tuning.toml", r"^tuning\.toml exists already, and not from this tuning: give another"),
        ("--out out --write .", r"^\. exists already, and not from this tuning: give another name with --write\.$"),
        ("--out out --fresh-seeds 0", r"^fresh_seeds is 0: it must be a whole number of at least 1\.$"),
        ("--out out --sampler best", r"^'best' is not a sampler: give one of grid, tpe, random, cmaes\.$"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_computed(words: str, says: str, file: Path) -> None:
    with pytest.raises(InputError, match=says):
        tune(f"{file} {words}")
    assert not Path("out").exists()
    assert file.read_text() == FILE


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tuning.toml"
    with pytest.raises(InputError, match=r"^There is no file \S*tuning\.toml\.$"):
        read_tuning(file)
    file.write_text("name = ")
    with pytest.raises(InputError, match=r"tuning\.toml is not a TOML file: "):
        read_tuning(file)
    file.write_text('name = "toy"\n')
    with pytest.raises(InputError, match=r"tuning\.toml: 'algorithm' is missing"):
        read_tuning(file)


@pytest.mark.parametrize(
    ("text", "algorithm", "sentence"),
    [
        ("[tuned.ppo]\ndt = '8ms'", "sac", " has values of ppo, and none of sac."),
        ("[tuned.ppo]\nbatch = 9", "ppo", ": dt is missing: say at which cycle time *"),
        ("[tuned]\ndt = '8ms'\nsize = 9", "sac", ": 'size' is not a tuned value: sac has discount, *"),
        (
            "[tuned]\ndt = '8ms'\ndiscount = [0.5, 0.9]",
            "sac",
            " has [0.5, 0.9] as discount, as what 'cycletime tune' reads: give the file that it writes*",
        ),
        ("[tuned]\ndt = '8ms'\ndiscount = 1.5", "ppo", ": discount is 1.5: *"),
        ("[tuned]\ndt = 'fast'", "ppo", ": 'fast' is not a time span: *"),
        ("[tuned]\ndt = '8ms'", "dqn", "'dqn' is not an algorithm: give one of actor-critic, ppo, sac."),
        ("[tuned]", "ppo", " has no tuned values: give them in a table such as [tuned.ppo]."),
        ("tuned = 3", "ppo", ": tuned is 3, and should be a table."),
        ("[tuned]\nppo = 3", "ppo", ": tuned.ppo is 3, and should be a table."),
        ("tuned", "ppo", " is not a TOML file: *"),
    ],
)
def test_a_tuned_file_that_is_none_is_refused(text: str, algorithm: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(text)
    start = "" if sentence.startswith("'") else re.escape(str(file))
    with pytest.raises(InputError, match=f"^{start}{re.escape(sentence)}$".replace(r"\*", ".*")):
        read_tuned(file).of(algorithm)


def test_a_tuned_file_by_hand_may_leave_out_the_algorithm(tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text("[tuned]\ndt = 0.04\nbatch = 400\nminibatch = 10\n[set]\nhidden = [32, 32]\n")
    read = read_tuned(file).of("ppo")
    assert (str(read.dt), read.values, read.others) == ("40ms", {"batch": 400, "minibatch": 10}, {"hidden": (32, 32)})
