"""The build: a library where there is a compiler, a pure package where there is none, and never a failure."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hatch_build
from hatch_build import FOLDER, LIBRARY, SOURCES, BuildError, NativeKernel, build, commands, digest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with an old library."""
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    for name in SOURCES:
        (folder / name).write_bytes((ROOT / FOLDER / name).read_bytes())
    (folder / LIBRARY).write_text("old")
    return tmp_path


def compiler(folder: Path, code: str) -> str:
    """A program that takes a compiler's words."""
    file = folder / "g++"
    file.write_text(f"#!{sys.executable}\nimport pathlib, sys\n{code}\n")
    file.chmod(0o755)
    return str(file)


def hooked(tree: Path) -> tuple[dict[str, Any], list[str]]:
    """What the hook changes about a wheel, and says."""
    said: list[str] = []
    app: Any = SimpleNamespace(display_warning=said.append)
    hook = NativeKernel(str(tree), {}, SimpleNamespace(), SimpleNamespace(), str(tree), "wheel", app)  # type: ignore[arg-type]
    data: dict[str, Any] = {}
    hook.initialize("standard", data)
    return data, said


def test_what_the_compiler_makes_is_left_beside_the_sources(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiler(tree, "pathlib.Path(sys.argv[sys.argv.index('-o') + 1]).write_text('new')")
    monkeypatch.setattr("shutil.which", lambda _: made)
    data, said = hooked(tree)
    assert (tree / FOLDER / LIBRARY).read_text() == "new"
    assert data["pure_python"] is False
    assert data["tag"].startswith("py3-none-")
    assert not said


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("compiler", "The engine native is left out: there is no g++."),
        ("headers", "The engine native is left out: JAX's headers are not in the environment that builds."),
        ("sense", "The engine native is left out: g++ says ppo_handler.cpp:1: what is this?"),
    ],
)
def test_without_what_it_needs_the_package_is_pure_and_an_old_library_goes(
    missing: str, sentence: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compiler(tree, "sys.exit('ppo_handler.cpp:1: what is this?\\nand more')")
    monkeypatch.setattr("shutil.which", lambda _: None if missing == "compiler" else made)
    if missing == "headers":
        monkeypatch.setattr(hatch_build, "find_spec", lambda _: None)
    assert hooked(tree) == ({}, [sentence])
    assert not (tree / FOLDER / LIBRARY).exists()


def test_a_compiler_that_says_nothing_is_told_as_well(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: compiler(tree, "sys.exit(1)"))
    with pytest.raises(BuildError, match="g\\+\\+ says nothing"):
        build(tree / FOLDER)


@pytest.mark.parametrize(
    ("machine", "kernels"),
    [("x86_64", {"learn_baseline", "learn_avx2", "learn_avx512"}), ("aarch64", {"learn_baseline"})],
)
def test_there_is_a_kernel_for_each_instruction_set(
    machine: str, kernels: set[str], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    words = [word for command in commands("g++", tree, tree / FOLDER, tree / LIBRARY) for word in command]
    assert {word.removeprefix("-DLEARN=") for word in words if word.startswith("-DLEARN=")} == kernels
    assert not {"-ffast-math", "-Ofast", "-march=native"} & set(words), "a run's numbers follow from the sources"


def test_a_changed_source_has_another_digest(tree: Path) -> None:
    before = digest(tree / FOLDER)
    assert before == digest(ROOT / FOLDER)
    (tree / FOLDER / SOURCES[-1]).write_text("")
    assert digest(tree / FOLDER) != before
