"""Compiled programs on disk, seen in processes of their own since JAX sets its cache up once."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import jax
from cycletime.agents import ActorCriticAgent
from cycletime.loops import CompiledLoop
from cycletime.tasks import Reacher
loop = CompiledLoop(task=Reacher(), agent=ActorCriticAgent(hidden=(4,)), dt="16ms", env_steps=20)
chunks = list(loop.run([0]))
print(jax.config.jax_compilation_cache_dir, chunks[-1].env_steps)
"""


QUICK = {"XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
"""What is kept is looked at here, not what it computes."""


def run(environment: dict[str, str], setup: str = "") -> str:
    without = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    ran = subprocess.run(
        [sys.executable, "-c", setup + PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={**without, **QUICK, **environment},
    )
    return ran.stdout


def test_a_program_is_compiled_once_on_a_machine(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    told = run({"CYCLETIME_CACHE": str(folder)})
    assert str(folder) in told
    kept = {path.name: path.read_bytes() for path in folder.glob("jit_advance*-cache")}
    assert len(kept) == 1
    assert run({"CYCLETIME_CACHE": str(folder)}) == told
    assert {path.name: path.read_bytes() for path in folder.glob("jit_advance*-cache")} == kept


def test_no_cache_where_none_is_wanted_or_can_be(tmp_path: Path) -> None:
    assert "None (20,)" in run({"CYCLETIME_CACHE": ""})
    (tmp_path / "file").write_text("in the way")
    assert "None (20,)" in run({"CYCLETIME_CACHE": str(tmp_path / "file" / "folder")})


def test_a_cache_that_the_user_set_up_stays(tmp_path: Path) -> None:
    setup = f"import jax; jax.config.update('jax_compilation_cache_dir', {str(tmp_path / 'own')!r})\n"
    assert str(tmp_path / "own") in run({"CYCLETIME_CACHE": str(tmp_path / "ours")}, setup)
    assert not (tmp_path / "ours").exists()


NAME = "from cycletime.loops.compilation_cache import kept_programs as name; print(name(), name())"


def test_kept_programs_have_one_name_for_all_processes_and_others_a_new_one_each_time(tmp_path: Path) -> None:
    def names(folder: str) -> list[str]:
        words = [sys.executable, "-c", NAME]
        environment = {**os.environ, "CYCLETIME_CACHE": folder}
        return subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout.split()

    first, again = names(str(tmp_path / "kept")), names(str(tmp_path / "kept"))
    assert len({*first, *again}) == 1
    assert len({*names(""), first[0]}) == 3
