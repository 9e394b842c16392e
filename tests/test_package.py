"""The package: light imports, a typed marker, one version, and no floor division on times."""

import ast
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cycletime"


@pytest.mark.parametrize("module", ["cycletime", "cycletime.rules", "cycletime.rules.libraries", "cycletime.cli"])
def test_importing_it_loads_neither_jax_nor_numpy_nor_torch(module: str) -> None:
    heavy = ("jax", "numpy", "torch", "gymnasium", "yaml", "typeguard")
    program = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_package_is_typed_and_has_one_version() -> None:
    assert files("cycletime").joinpath("py.typed").is_file()
    assert version("cycletime").count(".") == 2


def test_nowhere_is_a_time_floor_divided() -> None:
    """Floats get it wrong (0.12 // 0.04 is 2.0), so '//' is for counts: each use is listed here and looked at."""
    counts_only = {
        "agents/ppo.py": 3,  # samples and mini-batches
        "engines/cuda/layout.py": 1,  # bytes in words
        "engines/cuda/random_words.py": 1,  # bits
        "duration.py": 1,  # 10**places // denominator, both whole
        "loops/compiled.py": 2,  # learning periods in a chunk, by their agent steps and by their random numbers
        "loops/rollout.py": 1,  # cycles of whole environment steps in an episode, rounded up
        "loops/stepped.py": 2,  # rows of agent steps
        "loops/stepped_calls.py": 3,  # learning periods and copies
        "loops/stepped_learner.py": 1,  # rows in a learning period
        "rules/libraries/ppo_words.py": 4,  # samples, environments, mini-batches
        "rules/zoo/rewriting.py": 1,  # columns of text
    }
    found = {
        str(path.relative_to(SOURCE)): uses
        for path in SOURCE.rglob("*.py")
        if (uses := sum(isinstance(node, ast.FloorDiv) for node in ast.walk(ast.parse(path.read_text()))))
    }
    assert found == counts_only
