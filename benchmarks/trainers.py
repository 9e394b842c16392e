"""What a study costs beside its trainer: CPU seconds of Stable-Baselines3's PPO as a script, and as a study's run.

python benchmarks/trainers.py    # with cycletime[stable-baselines3]; fails above 3 %
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

AGENT_STEPS, RUNS = 100_000, 2
MOST_OVERHEAD = 0.03
SCRIPT = """
import sys
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from cycletime.tasks import CycleTime
from cycletime.tasks.retime import retime
env = make_vec_env(lambda: CycleTime(retime("Pendulum-v1", "50ms"), "50ms"), seed=int(sys.argv[1]))
PPO("MlpPolicy", env, seed=int(sys.argv[1]), device="cpu").learn(int(sys.argv[2]))
"""
STUDY = f"""
name = "overhead"
trainer = "stable-baselines3"
env = "Pendulum-v1"
env_dt = "50ms"
algorithm = "ppo"
dt = "50ms"
seeds = {RUNS}
env_steps = {AGENT_STEPS}
"""


def main() -> int:
    """Print the ratio; status 1 where it is too large."""
    with tempfile.TemporaryDirectory() as folder:
        script, study, out = (Path(folder) / name for name in ("script.py", "study.toml", "out"))
        script.write_text(SCRIPT)
        study.write_text(STUDY)
        loop = f"for seed in $(seq 0 {RUNS - 1}); do '{sys.executable}' '{script}' $seed {AGENT_STEPS} || exit 1; done"
        run = [sys.executable, "-m", "cycletime", "study", "run", str(study), "--out", str(out), "--workers", "1"]
        # Side by side, so that whatever else the machine does slows both.
        both = [
            subprocess.Popen(words, env={**os.environ, "OMP_NUM_THREADS": "1"}) for words in (["sh", "-c", loop], run)
        ]
        ends = [os.wait4(process.pid, 0) for process in both]
    bare_s, study_s = (used.ru_utime + used.ru_stime for _, _, used in ends)
    overhead = study_s / bare_s - 1
    print(
        f"{RUNS} runs of {AGENT_STEPS:,} agent steps: {bare_s:.1f} CPU s as scripts, {study_s:.1f} as a study", end=""
    )
    print(f", {overhead:+.1%} (at most {MOST_OVERHEAD:.0%})")
    return int(overhead > MOST_OVERHEAD or any(status for _, status, _ in ends))


if __name__ == "__main__":
    sys.exit(main())
