"""Compiled programs on disk."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

from cycletime.training.machine import keep_compiled_programs, kept_programs

PROGRAM = """
import jax
from cycletime.agents import ActorCriticAgent
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.machine import keep_compiled_programs
from cycletime.tasks import Reacher
keep_compiled_programs()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)  # however fast the machine is
loop = CompiledLoop(task=Reacher(), agent=ActorCriticAgent(hidden=()), dt="16ms", env_steps=2)
print([chunk.env_steps for chunk in loop.run([0])])
"""
QUICK = {
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
}
"""What is kept is looked at here, not what it computes."""


def test_a_program_is_compiled_once_on_a_machine(tmp_path: Path) -> None:
    """In processes of their own, since JAX sets its cache up once."""
    own = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    kept = []
    for _ in range(2):
        environment = {**own, **QUICK, "CYCLETIME_CACHE": str(tmp_path)}
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, env=environment)
        kept.append({path.name: path.read_bytes() for path in tmp_path.glob("jit_advance*-cache")})
    assert len(kept[0]) == 1
    assert kept[0] == kept[1]


@pytest.fixture
def no_cache() -> Iterator[None]:
    """JAX as it is where nobody has set a cache."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    set_config("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        set_config(name, value)


def set_config(name: str, value: Any) -> None:  # noqa: ANN401 - any setting of JAX
    jax.config.update(name, value)  # type: ignore[no-untyped-call]


def folder_with(wanted: Path | str, monkeypatch: pytest.MonkeyPatch) -> str | None:
    monkeypatch.setenv("CYCLETIME_CACHE", str(wanted))
    keep_compiled_programs()
    folder: str | None = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    return folder


@pytest.mark.usefixtures("no_cache")
def test_no_cache_where_none_is_wanted_or_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_with("", monkeypatch) is None
    (tmp_path / "file").write_text("in the way")
    assert folder_with(tmp_path / "file" / "folder", monkeypatch) is None
    assert folder_with(tmp_path / "programs", monkeypatch) == str(tmp_path / "programs")


@pytest.mark.usefixtures("no_cache")
def test_a_cache_that_the_user_set_up_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_config("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert folder_with(tmp_path / "ours", monkeypatch) == str(tmp_path / "own")
    assert not (tmp_path / "ours").exists()


@pytest.mark.usefixtures("no_cache")
def test_kept_programs_have_one_name_and_others_a_new_one_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names(folder: Path | str) -> list[str]:
        set_config("jax_compilation_cache_dir", None)
        monkeypatch.setenv("CYCLETIME_CACHE", str(folder))
        return [kept_programs(), kept_programs()]

    first, again = names(tmp_path / "kept"), names(tmp_path / "kept")
    assert len({*first, *again}) == 1
    assert len({*names(""), *names(tmp_path / "elsewhere"), first[0]}) == 4
