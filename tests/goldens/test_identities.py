"""What a run's folder is called, and the hash that tells it from all others: what finds finished runs again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cycletime
from tests.goldens.goldens import DATA, ROOT, digest, holds, holds_json, recording

PACKAGE = Path(str(cycletime.__file__)).parent
COMMITTED = {file.stem: file for file in sorted([*PACKAGE.rglob("*.toml"), *(ROOT / "examples").glob("*.toml")])}
"""By name, wherever they lie. Results may lie in the package, too, and are no studies."""
NAMES = DATA / "identities" / "committed-studies.json"
SPREAD = {file.stem: file for file in sorted((DATA / "studies").glob("*.toml"))}


def identities(file: Path) -> Iterator[str]:
    """A line for each run of a study's file: its name and its identity."""
    for _, spec in cycletime.Study.read(file).resolved().runs():
        yield f"{spec.name} {spec.identity}"


def test_committed_studies_plan_the_same_runs() -> None:
    studies = {name: file for name, file in COMMITTED.items() if file.parent.name != "results"}
    found = {}
    for name in studies if recording() else json.loads(NAMES.read_text()):  # others may come
        lines = list(identities(studies[name]))
        found[name] = {"runs": len(lines), "sha256": digest("\n".join(lines)), "first": lines[0], "last": lines[-1]}
    holds_json("identities/committed-studies.json", found)


@pytest.mark.parametrize("name", SPREAD)
def test_a_spread_of_specs_has_the_same_identities(name: str) -> None:
    holds(f"identities/{name}.txt", "\n".join(identities(SPREAD[name])))


ASKED: dict[str, dict[str, Any]] = {
    "ppo": {"task": "reacher", "dt": "16ms", "env_steps": 10_000},
    "ppo-carried": {"task": "reacher", "dt": "32ms", "tuned_at": "16ms", "env_steps": 10_000, "seeds": [3, 7]},
    "ppo-scaled": {"task": "double-pendulum", "dt": "8ms", "tuned_at": "16ms", "rule": "scaled", "env_steps": 10_000},
    "ppo-also": {
        "task": "acrobot",
        "dt": "20ms",
        "tuned_at": "40ms",
        "env_steps": 10_000,
        "values": {"batch": 400, "discount": 0.9},
        "rule": "dt-aware",
        "also": ["learning-rate", "clip"],
    },
    "ppo-other-env-dt": {"task": "pendulum", "env_dt": "1ms", "dt": "25Hz", "env_steps": 50_000},
    "ppo-fields": {
        "task": "cart-pole",
        "dt": "40ms",
        "env_steps": 10_000,
        "others": {"hidden": (32, 16), "learn_when": "episode_end", "noise_std": 0.5},
    },
    "sac": {"task": "reacher", "algorithm": "sac", "dt": "16ms", "env_steps": 10_000},
    "sac-carried": {
        "task": "mountain-car",
        "algorithm": "sac",
        "dt": "80ms",
        "tuned_at": "40ms",
        "rule": "horizons",
        "env_steps": 100_000,
    },
    "sac-also": {
        "task": "ur-reacher",
        "algorithm": "sac",
        "dt": "80ms",
        "tuned_at": "40ms",
        "env_steps": 10_000,
        "rule": "horizons",
        "also": ["replay-capacity", "target-smoothing"],
        "others": {"warmup_steps": 100},
    },
    "actor-critic": {"task": "pendulum", "algorithm": "actor-critic", "dt": "20ms", "env_steps": 10_000},
    "gymnasium": {"env": "Pendulum-v1", "env_dt": "50ms", "dt": "0.1", "env_steps": 1000},
    "mujoco": {"env": "InvertedPendulum-v5", "dt": "40ms", "env_steps": 2000, "algorithm": "sac"},
    "mujoco-retimed": {"env": "Hopper-v5", "env_dt": "4ms", "dt": "8ms", "env_steps": 2000},
    "wrapped": {"env": "cycletime/Reacher-v0", "dt": "16ms", "env_steps": 2000},
}


def test_runs_that_are_asked_for_have_the_same_identities(here: Path) -> None:
    found = {}
    for name, asked in ASKED.items():
        cycletime.train(out=here / name, progress=False, stop=lambda: True, **asked)
        specs = [json.loads(file.read_text()) for file in sorted((here / name).glob("*/spec.json"))]
        assert specs, name
        found[name] = {path.name: spec for path, spec in zip(sorted((here / name).iterdir()), specs, strict=True)}
    holds_json("identities/asked.json", found)
