"""How much of the package a command loads: a reader of one command need not know the others' rooms."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from cycletime.cli import main
status = main()
loaded = [name for name in sys.modules if name.split(".")[0] == "cycletime"]
print(status, len(loaded), sum(name.startswith("cycletime.cuda") for name in loaded), file=sys.stderr)
"""
STUDY = """
name = "small"
task = "reacher"
algorithm = "ppo"
dts = ["16ms", "32ms"]
seeds = 2
env_steps = 2000
[tuned]
dt = "16ms"
batch = 200
minibatch = 50
"""


def loaded(folder: Path, *words: str) -> tuple[int, int]:
    """The number of our modules that a command loads, and of those of cuda."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    status, modules, cuda = ran.stderr.splitlines()[-1].split()
    assert status in {"0", "None"}, ran.stderr
    return int(modules), int(cuda)


@pytest.mark.slow
def test_training_and_studies_on_a_cpu_load_what_they_need(tmp_path: Path) -> None:
    values = ["--env-steps", "2000", "--batch", "200", "--minibatch", "50"]
    modules, cuda = loaded(tmp_path, "train", "--task", "reacher", "--dt", "16ms", *values, "--out", "run")
    assert modules <= 90
    assert cuda == 0
    (tmp_path / "small.toml").write_text(STUDY)
    modules, cuda = loaded(tmp_path, "study", "run", "small.toml", "--out", "small")
    assert modules <= 110
    assert cuda == 0
    modules, cuda = loaded(tmp_path, "report", "small")
    assert modules <= 130
    assert cuda == 0


def test_transfer_loads_rules_and_libraries_alone(tmp_path: Path) -> None:
    dts = ("--from", "40ms", "--to", "10ms")
    assert loaded(tmp_path, "transfer", "ppo", *dts, "--batch", "400", "--minibatch", "10") <= (25, 0)
    (tmp_path / "zoo.yml").write_text("Pendulum-v1:\n  n_timesteps: 100000\n  n_steps: 512\n  batch_size: 64\n")
    assert loaded(tmp_path, "transfer", "zoo.yml", "--env", "Pendulum-v1", "--algorithm", "ppo", *dts) <= (33, 0)
