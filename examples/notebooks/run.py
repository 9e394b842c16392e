"""Run the cells of notebooks in order, and keep what they print: python examples/notebooks/run.py FILE ...

Lines that begin with % are for notebooks alone and do nothing.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

VARIES = "numbers-vary"
"""The tag of cells whose numbers depend on the machine."""


def run(notebook: dict[str, Any]) -> list[str]:
    """What each code cell prints, with the value of its last expression."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse(re.sub(r"^( *)%.*", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE))
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(tree, "<cell>", "exec"), names)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
                    if value is not None:
                        print(repr(value))
            printed.append(out.getvalue())
    return printed


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def main(*files: str) -> None:
    for file in files:
        notebook = json.loads(Path(file).read_text(encoding="utf-8"))
        for count, (cell, text) in enumerate(zip(code_cells(notebook), run(notebook), strict=True), start=1):
            output = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
            cell |= {"execution_count": count, "outputs": [output] if text else []}
        Path(file).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
