"""What is asked of XLA, whatever its version."""

import jax
import pytest

from cycletime.loops import soon as soon_module
from cycletime.loops.soon import Options, soon


def compiled_with(options: Options) -> Options:
    """What was compiled with, as the program itself could tell."""
    jax.jit(lambda: 1, compiler_options=dict(options)).lower().compile()
    return options


def test_options_that_this_version_of_xla_has_are_asked_for() -> None:
    assert soon("cpu", compiled_with) == soon_module._FEW
    assert soon("gpu", compiled_with) == ()


def test_a_version_without_one_of_them_is_asked_once_and_then_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Options] = []
    other: Options = (*soon_module._FEW, ("xla_cpu_no_such_option", True))
    monkeypatch.setattr(soon_module, "_FEW", other)
    monkeypatch.setattr(soon_module, "_refusing", set())

    def compile_and_tell(options: Options) -> Options:
        asked.append(options)
        return compiled_with(options)

    assert [soon("cpu", compile_and_tell) for _ in range(2)] == [(), ()]
    assert asked == [other, (), ()]


def test_errors_of_the_program_itself_are_no_refusal() -> None:
    asked: list[Options] = []

    def fail(options: Options) -> None:
        asked.append(options)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no memory")

    with pytest.raises(jax.errors.JaxRuntimeError, match="no memory"):
        soon("cpu", fail)
    assert asked == [soon_module._FEW]
    assert soon("cpu", compiled_with) == soon_module._FEW
