# mypy: disable-error-code="import-not-found"
"""Film what policies of the trial do: python -m benchmarks.robots.film Go1JoystickFlatTerrain 8 --arms kept dt-aware.

Of each arm the run with the median score whose policy was kept, told to walk straight ahead at 1 m/s from the same
start, with the noise of its training, and acting by its mean: OUT/TASK-8ms-ARM.gif, and OUT/films.json, which says
whose they are. It needs Playground with the robots' models, Pillow, and on a machine without a screen MUJOCO_GL=osmesa.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.robots.environments import load_environment
from benchmarks.robots.judge import Judgement
from benchmarks.robots.merge import RESULTS
from benchmarks.robots.rows import read_rows
from benchmarks.robots.shims import install_device_put_replicated, install_stand_ins
from benchmarks.robots.trial import HERE, read_trial
from cycletime.policies.films import write_gif

COMMAND = (1.0, 0.0, 0.0)
"""m/s ahead, m/s to the left, rad/s to the left."""
FILM_S, SHOT_S = 3, Fraction(1, 12)
WIDTH, HEIGHT = 224, 152
SEED = 3
OUT = HERE.parent.parent / "docs" / "figures" / "robots"


def policy_file(row: dict[str, Any], results: Path = RESULTS) -> Path:
    """Where a run's policy is kept."""
    return results / "policies" / f"{row['key'].replace('/', '_')}.npz"


def median_run(judgement: Judgement, task: str, dt_ms: float, arm: str, results: Path = RESULTS) -> dict[str, Any]:
    """Of an arm's runs with a policy the one with the median score; the lower one of two."""
    runs = [run for run in judgement.runs(task, dt_ms, arm).values() if policy_file(run, results).exists()]
    if not runs:
        raise FileNotFoundError(f"No run of {arm} on {task} at {dt_ms:g} ms has a policy in {results / 'policies'}.")
    return sorted(runs, key=lambda run: float(run["score"]))[(len(runs) - 1) // 2]


def mean_action(arrays: dict[str, NDArray[Any]], observation: NDArray[Any]) -> NDArray[Any]:
    """The mean action of a policy of brax's PPO: normalised, layers with swish, and the tanh of the first half."""
    x = (observation - arrays["mean['state']"]) / arrays["std['state']"]
    layers = sorted(name for name in arrays if name.endswith("['kernel']"))
    for number, name in enumerate(layers, 1):
        x = x @ arrays[name] + arrays[name.replace("kernel", "bias")]
        if number < len(layers):
            x = x / (1 + np.exp(-x))
    return np.asarray(np.tanh(x[: x.size // 2]))


def states(env: Any, arrays: dict[str, NDArray[Any]], shot_steps: int) -> Iterator[Any]:  # noqa: ANN401
    """The physics' state at each shot, until the film or the episode ends."""
    import jax
    import jax.numpy as jnp

    def commanded(state: Any) -> Any:  # noqa: ANN401
        never = jnp.array(2**30, state.info["steps_until_next_cmd"].dtype)
        return state.replace(info={**state.info, "command": jnp.array(COMMAND), "steps_until_next_cmd": never})

    step = jax.jit(lambda state, action: commanded(env.step(state, action)))
    state = jax.jit(lambda key: commanded(env.reset(key)))(jax.random.key(SEED))
    for number in range(round(FILM_S / env.dt)):
        if number % shot_steps == 0:
            yield state.data
        state = step(state, mean_action(arrays, np.asarray(state.obs["state"], np.float64)))
        if state.done:
            return


def film(env: Any, arrays: dict[str, NDArray[Any]], file: Path) -> float:  # noqa: ANN401
    """Write the film; how many seconds it has."""
    import mujoco

    model, cycle_s = env.mj_model, Fraction(str(round(env.dt, 6)))
    shot_steps = max(1, round(SHOT_S / cycle_s))
    camera = mujoco.MjvCamera()
    camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, 1
    camera.distance, camera.elevation, camera.azimuth = 1.25, -20, 110
    data, shots = mujoco.MjData(model), 0
    # An even light without shadows: each shade more makes a GIF larger.
    model.light_active[:] = 0
    model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.4, 0.6
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_HAZE] = False
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False

        def moments() -> Iterator[int]:
            nonlocal shots
            for shots, state in enumerate(states(env, arrays, shot_steps)):
                data.qpos[:], data.qvel[:] = state.qpos, state.qvel
                mujoco.mj_forward(model, data)
                yield shots

        def draw() -> NDArray[np.uint8]:
            renderer.update_scene(data, camera)
            return np.asarray(renderer.render(), np.uint8)

        write_gif(file, moments(), draw, shot_steps * cycle_s)
    return float((shots + 1) * shot_steps * cycle_s)


def main(words: Sequence[str] | None = None) -> int:
    """Film the arms' median runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("task")
    parser.add_argument("dt_ms", type=float, help="the cycle time in milliseconds")
    parser.add_argument("--arms", nargs="+", default=["kept", "horizons"])
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(words)
    judgement = Judgement(read_trial(), read_rows([RESULTS / "rows.jsonl"]))
    if asked.task not in judgement.trial.tasks:
        parser.error(f"{asked.task!r} is no task of the trial: give one of {', '.join(judgement.trial.tasks)}")
    try:
        runs = {arm: median_run(judgement, asked.task, asked.dt_ms, arm) for arm in asked.arms}
    except FileNotFoundError as error:
        parser.error(str(error))
    install_stand_ins()
    install_device_put_replicated()
    env = load_environment(judgement.trial.tasks[asked.task], asked.dt_ms)
    asked.out.mkdir(parents=True, exist_ok=True)
    about = []
    for arm, run in runs.items():
        file = asked.out / f"{asked.task}-{asked.dt_ms:g}ms-{arm}.gif"
        with np.load(policy_file(run)) as stored:
            arrays = {name: stored[name].astype(np.float64) for name in stored.files}
        seconds = film(env, arrays, file)
        seeds = sorted(judgement.runs(asked.task, asked.dt_ms, arm))
        about.append({"file": file.name, "run": run["key"], "score": run["score"], "seeds": seeds, "seconds": seconds})
        print(f"{file}: {run['key']}, {seconds:g} s")
    (asked.out / "films.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
