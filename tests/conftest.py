"""Property tests try the same examples each time, so that a failure is the change's and not the day's.

For fresh examples, and more: pytest --hypothesis-profile=default
"""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from importlib.metadata import PathDistribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings

# Shells start what runs in the background with SIGINT ignored, and all that it starts would ignore Ctrl-C as well.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("steady", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("steady")


SHARED = "CYCLETIME_SHARED_BY_TESTS"
"""The variable that names the folder of what is made once for all processes of a session of pytest."""


def pytest_configure(config: pytest.Config) -> None:
    """Let all processes of this session, workers of xdist too, keep their programs in one folder, and not the user's.

    With $CYCLETIME_CACHE set, programs stay there for the next session.
    """
    gc.disable()  # until all tests are read, which makes millions of objects and leaves no garbage
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = TemporaryDirectory(prefix="cycletime-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ[SHARED] = folder.name
        os.environ.setdefault("CYCLETIME_CACHE", str(Path(folder.name) / "programs"))


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but look no more through modules and tests, which stay."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """For what is made once for all processes of this session."""
    return Path(os.environ[SHARED])


@pytest.fixture(autouse=True)
def _from_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages name extras as an installation from an index does, wherever the one that is tested is from."""
    read = PathDistribution.read_text
    monkeypatch.setattr(
        PathDistribution, "read_text", lambda self, name: None if name == "direct_url.json" else read(self, name)
    )


@pytest.fixture(scope="module")
def compiled_quickly() -> Iterator[None]:
    """JAX's programs of a whole file and its processes with few optimisations: they take most of such tests' time.

    For what is held against formulas and toys; files about bits, precision or programs have them as users do.
    """
    import jax  # not every test needs it
    from jax._src import compiler

    # XLA takes half of its time for kernels that are made by MLIR, and a third of the rest for starting LLVM anew for
    # each part of a program; JAX has no setting for all programs.
    quick = {
        "xla_backend_optimization_level": 0,  # for programs with an own level, too
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
    }

    def quick_options(*args: Any, **options: Any) -> object:  # noqa: ANN401
        own = options.pop("env_options_overrides", None) or {}
        return usual(*args, **options, env_options_overrides={**own, **quick})

    usual: Callable[..., object] = compiler.get_compile_options
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "get_compile_options", quick_options)
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # for processes that are started
        jax.config.update("jax_disable_most_optimizations", True)  # type: ignore[no-untyped-call]
        _forget_programs()  # so that numbers do not depend on the files before
        yield
        jax.config.update("jax_disable_most_optimizations", False)  # type: ignore[no-untyped-call]
    _forget_programs()


def _forget_programs() -> None:
    """Those that JAX keeps, and those that we keep ourselves."""
    import jax

    from cycletime.training import algorithm_1

    jax.clear_caches()  # type: ignore[no-untyped-call]
    algorithm_1._initial_state_program.cache_clear()
    algorithm_1._initial_state_programs.clear()
