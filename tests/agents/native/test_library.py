"""The library is the one of these sources; where it is missing or broken, a sentence says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import pytest

from cycletime.agents.native import library
from cycletime.agents.native.library import native_library
from cycletime.errors import InputError, MachineError, NoNativeError
from hatch_build import FOLDER, digest

pytestmark = pytest.mark.usefixtures("native_kernel")

ROOT = Path(__file__).parents[3]
anew = native_library.__wrapped__
"""Without what is known already."""


def test_it_was_built_from_the_sources_that_are_here() -> None:
    build, instructions = native_library().build, native_library().instructions
    assert build.startswith(digest(ROOT / FOLDER) + " by GCC "), "build it anew: pip install --no-build-isolation ."
    assert str(native_library()) == f"{build} for {instructions}"


def test_a_library_that_is_not_here_is_told_with_how_to_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "FILE", tmp_path / "ppo.so")
    sentence = "which is not part of this installation: where JAX, hatchling and g++ are, 'pip install"
    with pytest.raises(NoNativeError, match=re.escape(sentence)) as caught:
        anew()
    assert isinstance(caught.value, InputError), "who asked for it is told"
    assert isinstance(caught.value, MachineError), "and the run can go on elsewhere"


def test_a_broken_library_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FILE", tmp_path / "ppo.so")
    library.FILE.write_text("no machine code")
    with pytest.raises(NoNativeError, match="which cannot be loaded"):
        anew()


def test_a_library_for_another_jax_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise RuntimeError("FFI version 9.9 is not supported\nat some place")

    monkeypatch.setattr(jax.ffi, "register_ffi_target", refuse)
    sentence = f"JAX {jax.__version__} cannot call PPO's kernel (FFI version 9.9 is not supported): where JAX"
    with pytest.raises(NoNativeError, match=re.escape(sentence)):
        anew()
