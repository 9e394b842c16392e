"""What is asked of XLA, whatever its version."""

import jax
import pytest

from cycletime.training import random_numbers as soon_module
from cycletime.training.random_numbers import CompilerOptions, fast_compile


def compiled_with(options: CompilerOptions) -> CompilerOptions:
    """What was compiled with, as the program itself could tell."""
    jax.jit(lambda: 1, compiler_options=dict(options)).lower().compile()
    return options


def test_options_that_this_version_of_xla_has_are_asked_for() -> None:
    assert fast_compile("cpu", compiled_with) == soon_module._FAST_OPTIONS
    assert fast_compile("gpu", compiled_with) == ()


def test_a_version_without_one_of_them_is_asked_once_and_then_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[CompilerOptions] = []
    other: CompilerOptions = (*soon_module._FAST_OPTIONS, ("xla_cpu_no_such_option", True))
    monkeypatch.setattr(soon_module, "_FAST_OPTIONS", other)
    monkeypatch.setattr(soon_module, "_unsupported", set())

    def compile_and_tell(options: CompilerOptions) -> CompilerOptions:
        asked.append(options)
        return compiled_with(options)

    assert [fast_compile("cpu", compile_and_tell) for _ in range(2)] == [(), ()]
    assert asked == [other, (), ()]


def test_errors_of_the_program_itself_are_no_refusal() -> None:
    asked: list[CompilerOptions] = []

    def fail(options: CompilerOptions) -> None:
        asked.append(options)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no memory")

    with pytest.raises(jax.errors.JaxRuntimeError, match="no memory"):
        fast_compile("cpu", fail)
    assert asked == [soon_module._FAST_OPTIONS]
    assert fast_compile("cpu", compiled_with) == soon_module._FAST_OPTIONS
