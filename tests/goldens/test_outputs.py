"""What commands print, and their exit status: good uses, and what people get wrong most."""

import json
import re
import shlex
import shutil
import signal
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.goldens.conftest import Say
from tests.goldens.goldens import DATA, digest, holds, holds_json
from tests.processes import started

PPO = "--from 16ms --to 4ms --batch 2000 --minibatch 50"
SMALL = "--batch 100 --minibatch 50 --set hidden=8 epochs=1"
FINISHED = "finished/reacher-ppo-16ms-seed0-9772da9db0"
STOPPED = "stopped-ppo/reacher-ppo-16ms-seed0-af97a6f81a"
ROBOT = "robot/cycletime-URReacher2-v0-ppo-40ms-seed0-a593a5a2dd"

QUICK = {
    "version": "--version",
    "transfer-ppo": f"transfer ppo {PPO}",
    "transfer-ppo-json": f"transfer ppo {PPO} --json",
    "transfer-ppo-horizons": f"transfer ppo {PPO} --rule horizons --also learning-rate clip",
    "transfer-ppo-for": f"transfer ppo {PPO} --for stable-baselines3 --num-envs 4",
    "transfer-ppo-own-rule": f"transfer ppo {PPO} --rule floor-6 --own-rules own-rules.toml",
    "transfer-ppo-from-library": "transfer ppo --from 16ms --to 32ms --from-library rllib lr=3e-4 gamma=0.99",
    "transfer-sac": "transfer sac --from 40ms --to 10ms --discount 0.98 --also target-smoothing updates-per-second",
    "transfer-sac-tuned": "transfer sac --tuned tuned.toml --to 32ms",
    "transfer-a2c": "transfer a2c --from 16ms --to 8ms",
    "transfer-tqc": "transfer tqc --from 16ms --to 8ms",
    "transfer-td3": "transfer td3 --from 16ms --to 8ms",
    "transfer-ddpg": "transfer ddpg --from 16ms --to 8ms",
    "transfer-zoo": "transfer ppo.yml --env ReacherBulletEnv-v0 --from 16ms --to 8ms --as yaml",
    "transfer-zoo-json": "transfer ppo.yml --env Pendulum-v1 --from 50ms --to 25ms --json",
    "study-plan": "study plan study.toml --no-calibration",
    "study-plan-half": "study plan study.toml --no-calibration --out study-half",
    "study-status": "study status study-finished",
    "study-status-half": "study status study-half --runs",
    "study-verify": "study verify study-finished",
    "study-verify-half": "study verify study-half",
    "study-retry": "study retry study-half",
    "study-export": "study export study-finished curves.csv --bins 4",
    "study-verify-packed": "study verify packed-results",
    "robot-replay": f"robot replay {ROBOT}",
    "gpu-check": "gpu check",
    "paper-table": "experiment table paper ppo-tuned",
    "paper-table-json": "experiment table paper sac-tuned --json",
    "report-nothing": "report nowhere",
    # What people get wrong most.
    "wrong-command": "trian --task reacher",
    "wrong-option": "train --task reacher --dt 16ms --env-step 1e5",
    "wrong-missing": "train --task reacher",
    "wrong-task": "train --task raecher --dt 16ms --env-steps 1e5",
    "wrong-unit": "train --task reacher --dt 16 --env-steps 1e5",
    "wrong-multiple": "train --task reacher --dt 5ms --env-steps 1e5",
    "wrong-budget": "train --task reacher --dt 16ms --env-steps 10",
    "wrong-discount": "train --task reacher --dt 16ms --env-steps 1e5 --discount 1.5",
    "wrong-field": "train --task reacher --dt 16ms --env-steps 1e5 --set hiden=8",
    "wrong-env": "train --env NoSuchEnv-v0 --dt 16ms --env-steps 1e5",
    "wrong-rule": "transfer ppo --from 16ms --to 4ms --rule dt-awre",
    "wrong-study-file": "study run nowhere.toml --out out",
    "wrong-study-key": "study plan wrong.toml",
    "wrong-folder": "resume finished",
    "wrong-study": "study status finished",
    "wrong-export": f"export {FINISHED} --to tflite",
    "wrong-run-taken": f"export {FINISHED} --to numpy --out exported/numpy",
    "wrong-algorithm": "latency --algorithm dqn",
    "wrong-robot": "robot run --dt 40ms --env-steps 300",
    "wrong-results": "experiment verdicts paper --results nowhere",
    "wrong-name": "experiment run paper ppo-basline",
    "wrong-stage": "experiment pack horizons serch -o pack.zip",
    "wrong-page": "experiment report horizons --out nowhere.md",
    "wrong-budget-of-advice": "advise --task reacher --tuned-at 16ms --out out",
    "wrong-tuning": "tune study.toml --out out",
}
NUMBERS = (
    (r"(return|tenth|average and|mean|deviation|median|from|to) -?[\d,]*\.\d+\b", r"\1 <x>"),
    (r'("(mean|standard_deviation|low|high|min|median|max)": |^    )-?[\d,]*\.\d+', r"\1<x>"),
)
"""What was computed, whose last digits differ from machine to machine."""
SLOW = {
    "train": f"train --task reacher --dt 16ms --env-steps 2000 {SMALL} --out runs --seeds 2",
    "train-carried": f"train --task reacher --dt 32ms --tuned-at 16ms --env-steps 4000 {SMALL} --out runs",
    "train-gymnasium": f"train --env Pendulum-v1 --env-dt 50ms --dt 50ms --env-steps 400 {SMALL} --out runs",
    "resume": f"resume {STOPPED}",
    "resume-finished": f"resume {FINISHED}",
    "evaluate": f"evaluate {FINISHED} --episodes 5",
    "evaluate-delayed": f"evaluate {FINISHED} --episodes 5 --dt 32ms --delay 20ms --sampled --json",
    "watch": f"watch {FINISHED} --to film.gif --episodes 1 --speed 20",
    "plot": f"plot {FINISHED} --metrics all --to curves.svg",
    "export-onnx": f"export {FINISHED} --to onnx",
    "export-numpy": f"export {FINISHED} --to numpy",
    "study-run": "study run study.toml --out study-half --workers 1",
    "study-run-done": "study run study.toml --out study-finished --workers 1",
    "study-pack": "study pack study.toml -o pack.zip",
    "tune-done": "tune tuning.toml --out tuning --write again.toml --workers 1",
    "robot-run": f"robot run --simulate --pace lockstep --dt 40ms --env-dt 40ms --env-steps 200 {SMALL}",
    "robot-resume": "robot resume robot-stopped/cycletime-URReacher2-v0-ppo-40ms-seed1-496d6516c5 --simulate"
    " --pace lockstep",
    "paper-list": "experiment list paper",
}
MACHINE_S_OWN = {"train", "train-carried", "train-gymnasium", "resume", "evaluate", "evaluate-delayed", "robot-run"} | {
    *("robot-resume", "watch")
}
"""Those that compute, so that their last digits are the machine's."""


@pytest.fixture
def given(folders: Path) -> Path:
    """All that the commands name."""
    shutil.copy(DATA / "ppo.yml", folders)
    shutil.copy(DATA / "studies" / "own-rules.toml", folders)
    (folders / "wrong.toml").write_text((folders / "study.toml").read_text().replace("seeds", "sedes"))
    return folders


@pytest.mark.parametrize("name", QUICK)
def test_a_command_says_what_it_said(say: Say, given: Path, name: str) -> None:
    holds(f"outputs/{name}.txt", say(*shlex.split(QUICK[name])).told(given))


@pytest.mark.goldens
@pytest.mark.parametrize("name", SLOW)
def test_a_command_that_computes_says_what_it_said(say: Say, given: Path, name: str) -> None:
    also = NUMBERS if name in MACHINE_S_OWN else ()
    holds(f"outputs/{name}.txt", say(*shlex.split(SLOW[name])).told(given, *also))


def shape(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """The keys of JSON, and what kind of values they have."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


@pytest.mark.goldens
def test_latency_tells_the_same_of_times_that_are_the_machine_s_own(say: Say) -> None:
    said = say(*shlex.split("latency --batch 100 --hidden 8 --dts 100ms 200ms --measure-for 10ms --json"))
    assert said.status == 0, said.err
    holds_json("outputs/latency.json", shape(json.loads(said.out)))


@pytest.mark.goldens
def test_advice_has_the_same_parts(say: Say, here: Path) -> None:
    words = "advise --task reacher --tuned-at 16ms --batch 100 --minibatch 50 --dts 32ms --env-steps 2000 --workers 1"
    budget = "--simulated-hours 0.012 --first-seeds 2 --simulation --set hidden=8 epochs=1 --out advice --json"
    said = say(*shlex.split(f"{words} {budget}"))
    assert said.status == 0, said.err
    files = sorted(file.name for file in (here / "advice").iterdir())
    holds_json("outputs/advise.json", {"printed": shape(json.loads(said.out)), "files": files})


@pytest.mark.goldens
def test_a_simulated_controller_is_asked_and_told_the_same(say: Say, here: Path) -> None:
    words = [sys.executable, "-m", "cycletime", "robot", "simulate", "--profile", "e", "--pace", "lockstep"]
    with started([*words, "--ports", "0", "0", "0", "0"]) as process:
        assert process.stdout is not None
        where = process.stdout.readline()
        *ports, admin = re.findall(r"(?:rtde|realtime|dashboard|admin) (\d+)", where)
        parts = [re.sub(r"\d{4,5}\b", "<port>", where)]
        for words in (
            ["check", "--host", "127.0.0.1", "--ports", *ports],
            ["fault", "--port", admin, "protective", "stop"],
            ["check", "--host", "127.0.0.1", "--ports", *ports],
            ["fault", "--port", admin, "protectiv", "stop"],
        ):
            told = say("robot", *words).told(here)
            parts.append(re.sub(rf"\b({'|'.join([*ports, admin])})\b", "<port>", told))
        parts.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        parts.append(process.stdout.readline())
        assert process.wait() == 0
    holds("outputs/robot-simulate.txt", "\n".join(parts))


@pytest.mark.goldens
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("paper", "experiment pack paper --all --out out"),
        (
            "paper-small",
            "experiment pack paper ppo-baseline sac-baseline --device cpu --scale 0.01 --seeds 2 --out out",
        ),
        *(
            (f"horizons-{algorithm}-{stage}", f"experiment pack horizons {'sac-' * (algorithm == 'sac')}{stage}")
            for algorithm in ("ppo", "sac")
            for stage in ("tuning", "search", "trial-tuning", "trial")
        ),
    ],
)
def test_packs_have_the_same_studies(say: Say, here: Path, name: str, words: str) -> None:
    said = say(*words.split(), "-o", "pack.zip")
    found: dict[str, Any] = {"status": said.status, "stderr": said.err}
    if said.status == 0:
        with zipfile.ZipFile(here / "pack.zip") as packed:
            texts = [packed.read(each) for each in packed.namelist() if each.endswith(".json")]
        (told,) = [data["studies"] for data in map(json.loads, texts) if isinstance(data, dict) and "studies" in data]
        found["studies"] = {each["folder"]: digest(json.dumps(each, sort_keys=True)) for each in told}
    holds_json(f"packs/{name}.json", found)
