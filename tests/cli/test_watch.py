"""`cycletime watch` as people type it: films, what it prints, and one sentence for wrong input."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from cycletime.agents import PPOAgent
from cycletime.cli import main
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ActionBounds, ClosedFormWorld, make_env
from tests.studies.small import names_of
from tests.training.runs.finished import save_checkpoint

AGENT = PPOAgent(hidden=(4,), noise_std=0.5)
NAMES = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")


def some_psi(observation_size: int, action_size: int) -> Any:  # noqa: ANN401
    random = np.random.default_rng(0)
    shapes = jax.eval_shape(lambda: AGENT.initialize(jax.random.key(0), observation_size, action_size))
    return jax.tree.map(lambda leaf: random.normal(scale=0.3, size=leaf.shape).astype(np.float32), shapes)


@pytest.fixture
def psi() -> Any:  # noqa: ANN401
    return some_psi(9, 1)


@pytest.fixture
def run(tmp_path: Path, psi: Any) -> Path:  # noqa: ANN401
    spec = RunSpec(world=ClosedFormWorld("double-pendulum"), agent=AGENT, dt="32ms", env_steps=1000, seed=0)
    folder = RunFolder.create(tmp_path / "runs", spec)
    save_checkpoint(folder, SavedPolicy.of(AGENT.policy(psi), ActionBounds.raw(1), spec, 500))
    return folder.path


def episode(psi: Any, seed: int) -> tuple[float, int]:  # noqa: ANN401
    """The return and the length of an episode that the agent itself plays."""
    spec = RunSpec(world=ClosedFormWorld("double-pendulum"), agent=AGENT, dt="32ms", env_steps=1000, seed=0)
    env = make_env(spec.world, spec.dt)
    observation, _ = env.reset(seed=seed)
    total, steps, ended = 0.0, 0, False
    while not ended:
        action = AGENT.act(psi, jnp.asarray(observation), jnp.zeros(1))
        observation, reward, terminated, truncated, _ = env.step(np.asarray(action))
        total, steps, ended = total + float(reward), steps + 1, terminated or truncated
    return total, steps


def told(printed: str) -> list[tuple[float, int]]:
    lines = re.findall(r"^episode \d+: return (\S+), (\d+) agent steps, \S+ s, terminated$", printed, re.MULTILINE)
    return [(float(total), int(steps)) for total, steps in lines]


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["watch", *map(str, words)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_a_film_shows_the_policy_s_own_episodes(
    run: Path,
    psi: Any,  # noqa: ANN401
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    film = tmp_path / "film.gif"
    assert main(["watch", str(run), "--to", str(film), "--episodes", "2", "--seed", "5"]) == 0
    printed = capsys.readouterr().out
    expected = [episode(psi, 5), episode(psi, 6)]
    for (total, steps), (expected_total, expected_steps) in zip(told(printed), expected, strict=True):
        assert steps == expected_steps
        assert total == pytest.approx(expected_total, abs=0.01)
    assert f"wrote {film} ({film.stat().st_size:,} bytes)" in printed
    with Image.open(film) as image:
        frames = image.n_frames  # type: ignore[attr-defined]
    assert frames == sum(steps + 1 for _, steps in expected)


def test_sampled_actions_differ_and_are_decided_by_the_seed(
    run: Path,
    psi: Any,  # noqa: ANN401
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["watch", str(run), "--to", str(tmp_path / "film.gif"), "--episodes", "1", "--speed", "8", "--sampled"]
    returns = []
    for seed in ("5", "5", "6"):
        assert main([*words, "--seed", seed]) == 0
        returns += told(capsys.readouterr().out)
    assert returns[0] == returns[1]
    assert returns[0][0] != pytest.approx(episode(psi, 5)[0], abs=0.01)
    assert returns[2][0] != pytest.approx(returns[0][0], abs=0.01)


def test_without_a_film_s_name_there_is_a_window(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert main(["watch", str(run), "--episodes", "1", "--speed", "20"]) == 0
    assert len(told(capsys.readouterr().out)) == 1
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert "give a film's name, such as --to film.gif" in refused(capsys, run)


def test_wrong_inputs_are_told_in_one_sentence(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film = tmp_path / "film.gif"
    assert "ends in .gif" in refused(capsys, run, "--to", tmp_path / "film.avi")
    assert "is not a run" in refused(capsys, tmp_path, "--to", film)
    assert "is not a folder" in refused(capsys, run, "--to", tmp_path / "none" / "film.gif")
    assert "episodes is 0" in refused(capsys, run, "--to", film, "--episodes", 0)
    assert "--seed is -1" in refused(capsys, run, "--to", film, "--seed", -1)
    assert "speed is 0.0" in refused(capsys, run, "--to", film, "--speed", 0)
    shutil.rmtree(run / "checkpoints")
    assert "a run writes its policy with its first checkpoint" in refused(capsys, run, "--to", film)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_policy_of_another_world_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder.open(run)
    other = SavedPolicy.of(AGENT.policy(some_psi(4, 2)), ActionBounds.raw(2), folder.spec, 500)
    save_checkpoint(folder, other)
    assert "(4, 2) numbers" in refused(capsys, run, "--to", tmp_path / "film.gif")


def test_missing_packages_are_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    drawing = "cycletime watch needs pygame, which is not installed: pip install 'cycletime[render]'.\n"
    assert drawing in refused(capsys, run, "--to", tmp_path / "film.gif")
    monkeypatch.delitem(sys.modules, "PIL.Image", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    missing = "needs Pillow, which is not installed: pip install 'cycletime[film]'."
    assert missing in refused(capsys, run, "--to", tmp_path / "film.gif")


def test_a_run_in_the_store_of_a_study(quick: StudyFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, film = quick.runs / names_of(quick)[0], tmp_path / "film.gif"
    assert main(["watch", str(path), "--to", str(film), "--episodes", "1", "--speed", "50"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("episode 1: return ")
    assert film.exists()
    assert not path.exists()
    assert "'nobody' is not a run of" in refused(capsys, quick.runs / "nobody", "--to", film)
