"""Runs on the engine native: as exact as those of any engine, and apart from theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.agents import PPOAgent
from cycletime.agents.native import library
from cycletime.agents.native.library import native_library
from cycletime.cli import main
from cycletime.tasks import DoublePendulum
from cycletime.training import native_engine
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.engine_registry import make_batch
from cycletime.training.learning_curve import Episodes
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.training.engines.scripted import train

pytestmark = pytest.mark.usefixtures("native_kernel")

SPEC = RunSpec(
    world=ClosedFormWorld("double-pendulum"),
    agent=PPOAgent(batch=40, minibatch=24, epochs=2, hidden=(8,)),
    dt="32ms",
    env_steps=5_000,
    seed=3,
    engine=EngineSpec("native"),
)


def test_a_run_that_is_stopped_and_resumed_gives_the_bytes_of_one_that_was_not(
    tmp_path: Path,
    after: Callable[[int], Callable[[], bool]],
    left_by: Callable[[RunFolder], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, stopped = (RunFolder.create(tmp_path / name, SPEC) for name in ("whole", "stopped"))
    assert train(whole) == "finished"
    assert whole.result()["machine"]["native"] == str(native_library())
    assert [train(stopped, stop=after(count)) for count in (3, 2, 4)] == ["stopped"] * 3
    assert train(stopped) == "finished"
    assert left_by(stopped) == left_by(whole)
    assert stopped.result()["resumed"] == "resumed, identical"
    # With another library it would not be.
    elsewhere = RunFolder.create(tmp_path / "elsewhere", SPEC)
    train(elsewhere, stop=after(3))
    other = replace(native_library(), build="another")
    monkeypatch.setattr(library, "native_library", lambda: other)
    train(elsewhere)
    assert elsewhere.result()["remarks"] == [f"native library {native_library()} then, {other} now"]


def test_its_runs_have_an_identity_of_their_own() -> None:
    assert SPEC.identity != replace(SPEC, engine=EngineSpec()).identity
    assert RunSpec.from_json(SPEC.as_json()) == SPEC


@pytest.fixture
def _nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(library, "FILE", tmp_path / "ppo.so")
    native_library.cache_clear()
    yield
    native_library.cache_clear()


@pytest.mark.usefixtures("_nothing_built")
def test_without_the_library_a_sentence_says_how_to_have_it_and_all_else_is_as_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "train --task reacher --dt 16ms --env-steps 2000 --engine native --out"
    assert main([*words.split(), str(tmp_path / "runs")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("cycletime: The engine native needs PPO's kernel as a library, which is not part of")
    assert not (tmp_path / "runs").exists()
    assert native_engine.NativeEngine().refusal(SPEC) is None, (
        "whether a run can be planned does not depend on the machine"
    )
    make_batch([replace(SPEC, engine=EngineSpec())])


@pytest.mark.slow
def test_it_learns_as_well_as_the_compiled_engine_does() -> None:
    """Sixteen seeds each: the means are no further apart than three standard errors of their difference."""
    agent = PPOAgent(batch=500, minibatch=25)
    returns = []
    for each in (agent, native_engine.NativeEngine().agent(replace(SPEC, agent=agent))):
        loop = CompiledLoop(task=DoublePendulum(), agent=each, dt="16ms", env_steps=150_000)
        runs = [Episodes.joined(chunk.episodes[0] for chunk in loop.run([seed])) for seed in range(16)]
        returns.append([run.binned(150_000).mean() for run in runs])
    one, other = np.array(returns)
    assert abs(one.mean() - other.mean()) < 3 * np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 16)
    early = [run.returns[:20].mean() for run in runs]
    assert other.mean() > np.mean(early), "it learns at all"
