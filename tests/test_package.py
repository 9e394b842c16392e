"""The package: light imports, a typed marker, one version everywhere, short files, and no floor division on times."""

import ast
import pkgutil
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

import cycletime

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cycletime"


@pytest.mark.parametrize("module", ["cycletime", "cycletime.rules", "cycletime.libraries", "cycletime.cli"])
def test_importing_it_loads_neither_jax_nor_numpy_nor_torch(module: str) -> None:
    heavy = ("jax", "numpy", "torch", "gymnasium", "yaml", "typeguard")
    program = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_package_is_typed() -> None:
    assert files("cycletime").joinpath("py.typed").is_file()


def test_the_changelog_and_the_citation_are_of_this_version() -> None:
    newest = re.search(r"^## (\d\S*) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert newest is not None
    assert newest.groups() == (cycletime.__version__, str(cited["date-released"]))
    assert cited["version"] == cycletime.__version__


def test_the_front_door_has_what_it_says() -> None:
    said = set(vars(cycletime)["__all__"])
    assert {"CycleTime", "Duration", "InputError", "PPO", "SAC", "cycle_steps", "rules"} <= said
    assert {*said, "__version__"} <= set(dir(cycletime))
    assert all(getattr(cycletime, name) is not None for name in said)
    assert cycletime.PPO is cycletime.rules.PPO


def test_files_that_the_guides_name_are_there() -> None:
    guides = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
    named = {
        (guide.name, path)
        for guide in guides
        for path in re.findall(r"`((?:src|tests|requirements|\w+)/[\w./]*)`", guide.read_text())
    }
    assert len(named) > 20
    assert {
        each for each in named if not any((base / each[1]).exists() for base in (ROOT, SOURCE, SOURCE / "robots/ur"))
    } == set()


def test_no_file_is_longer_than_600_lines() -> None:
    written = [path for part in ("src", "tests", "benchmarks", "docs") for path in (ROOT / part).rglob("*")]
    code = [path for path in written if path.suffix in {".py", ".cu", ".cuh", ".js", ".css"}]
    assert len(code) > 300
    assert {str(path): lines for path in code if (lines := path.read_text().count("\n")) > 600} == {}


def test_nowhere_is_a_time_floor_divided() -> None:
    """Floats get it wrong (0.12 // 0.04 is 2.0), so '//' is for counts: each use is listed here and looked at."""
    counts_only = {
        "agents/agent.py": 1,  # agent steps in rows of several environments
        "agents/checks.py": 2,  # rows of agent steps, and what so many environments divide
        "agents/ppo.py": 4,  # samples and mini-batches
        "cli/train.py": 1,  # updates of several environments
        "cuda/device.py": 2,  # bytes in words
        "cuda/layout.py": 1,  # bytes in words
        "cuda/run_batch.py": 1,  # environment steps in cycles, rounded up
        "cuda/sac.py": 11,  # outputs in means and log sigmas; bytes in words, lanes in rows, warps in quarters
        "duration.py": 1,  # 10**places // denominator, both whole
        "reports/drawing.py": 1,  # bins between markers
        "experiments/running.py": 1,  # a share of environment steps in millionths, rounded up
        "libraries/on_policy.py": 7,  # samples, environments, mini-batches
        "libraries/configuration.py": 1,  # samples of each environment
        "libraries/yaml_edit.py": 1,  # columns of text
        "studies/study_folder.py": 1,  # half of some runs
        "tasks/ur_reacher.py": 1,  # packages within whole environment steps, by the exact ratio of their times
        "trainers/brax.py": 1,  # agent steps in updates
        "training/algorithm_1.py": 8,  # rows in a block, blocks, cycles and episodes; rows and updates of environments
        "training/compiled_engine.py": 1,  # lanes in the bytes of a GPU
        "training/compiled_loop.py": 5,  # periods, and random numbers, in a chunk; rows of so many numbers or copies
        "training/learning_curve.py": 1,  # learnings in windows of them
        "training/run_store.py": 1,  # bytes
        "training/stepped_agent.py": 3,  # learning periods, copies, and rows in a learning period
        "training/latency.py": 1,  # rows of agent steps
        "training/stepped_loop.py": 1,  # rows of agent steps
    }
    found = {
        str(path.relative_to(SOURCE)): uses
        for path in SOURCE.rglob("*.py")
        if (uses := sum(isinstance(node, ast.FloorDiv) for node in ast.walk(ast.parse(path.read_text()))))
    }
    assert found == counts_only


def test_what_the_api_pages_show_has_a_docstring() -> None:
    names = [
        name for page in (ROOT / "docs/api").glob("*.md") for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)
    ]
    assert len(names) > 30
    assert [name for name in names if not getattr(pkgutil.resolve_name(name), "__doc__", None)] == []
