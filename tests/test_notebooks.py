"""The notebooks run, and show what they print."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"


def _runner() -> Any:  # noqa: ANN401 - a module
    spec = spec_from_file_location("run_notebook", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.ipynb")), ids=lambda file: file.stem)
def test_a_notebook_prints_what_it_shows(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)  # as Jupyter does
    runner = _runner()
    notebook = json.loads(file.read_text(encoding="utf-8"))
    for cell, printed in zip(runner.code_cells(notebook), runner.run(notebook), strict=True):
        shown = "".join("".join(output["text"]) for output in cell["outputs"])
        if runner.VARIES in cell["metadata"].get("tags", ()):
            printed, shown = (re.sub(r"-?[\d.]+", "#", text) for text in (printed, shown))
        assert re.sub(" +", " ", printed) == re.sub(" +", " ", shown), "".join(cell["source"])


def test_notebooks_open_in_colab_with_an_install() -> None:
    for file in FOLDER.glob("*.ipynb"):
        text = file.read_text(encoding="utf-8")
        assert f"colab.research.google.com/github/cycletime/cycletime/blob/main/examples/notebooks/{file.name}" in text
        assert "%pip install" in text
