"""A study on a disk that is too small for it, and later is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cycletime.studies.study_folder import StudyFolder
from tests.studies.small import bits_of, names_of

STUDY = """\
name = "full"
task = "reacher"
algorithm = "actor-critic"
dts = ["32ms"]
seeds = 12
env_steps = 40_000
[set]
hidden = [64, 64]
"""
SCENE = """\
set -eu
mount -t tmpfs -o size=200k none disk
for attempt in 1 2 3 4; do
    status=0
    "$@" --out disk/study 2> full-$attempt || status=$?
    echo $status >> statuses
done
mount -o remount,size=20m disk
"$@" --out disk/study
cp -r disk/study study
"""
"""In a name space of its own, whose mounts end with it; no other rights are needed for that."""


@pytest.mark.slow
def test_a_study_on_a_full_disk_says_so_and_with_room_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "disk").mkdir()
    command = [sys.executable, "-m", "cycletime", "study", "run", "study.toml", "--workers", "2"]
    environment = {**os.environ, "CYCLETIME_CACHE": str(tmp_path / "programs")}
    for words in (
        [*command, "--out", "whole"],
        ["unshare", "--map-root-user", "--mount", "bash", "-c", SCENE, "scene", *command],
    ):
        ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "statuses").read_text().split() == ["1"] * 4
    for attempt in range(1, 5):
        (said,) = [line for line in (tmp_path / f"full-{attempt}").read_text().splitlines() if "full;" in line]
        assert said.startswith("cycletime: ")
        assert said.endswith(
            " cannot be written: the disk is full; make room and resume, what was saved before is untouched."
        )
        assert "Traceback" not in (tmp_path / f"full-{attempt}").read_text()
    whole, study = (StudyFolder.open(tmp_path / name) for name in ("whole", "study"))
    assert set(study.states(names_of(study)).values()) == {"done"}
    assert bits_of(study) == bits_of(whole)
    assert len(bits_of(study)) == 12
    assert not list(study.runs.iterdir()), "nothing is noted"
