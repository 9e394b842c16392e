"""How measured numbers changed from version to version: python benchmarks/history.py [results/training-cpu.txt ...].

What a benchmark printed is committed in results/, so its history is git's. This reads every committed version of a file
and prints, for each line that has the same words in at least two of them, its first number in each. Compare numbers of
one machine only: each version's first lines say where it was measured.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?![\w.])")


def git(*words: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def numbers(text: str) -> dict[str, str]:
    """The first number of each line, by the line's words; lines whose words stand twice are left out."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        label, _, rest = line.strip().partition("  ")
        values = NUMBER.findall(rest)
        if values and label:
            found.setdefault(label, []).append(values[0])
    return {label: values[0] for label, values in found.items() if len(values) == 1}


def history(path: str) -> str:
    """One file's table: a row for each line, a column for each version, the oldest first."""
    commits = [line.split(" ", 1) for line in git("log", "--reverse", "--format=%h %cs", "--", path).splitlines()]
    versions = [(f"{date} {commit}", numbers(git("show", f"{commit}:{path}"))) for commit, date in commits]
    labels = dict.fromkeys(label for _, found in versions for label in found)
    rows = [(label, [found.get(label, "") for _, found in versions]) for label in labels]
    rows = [(label, values) for label, values in rows if sum(map(bool, values)) > 1]
    lines = [
        f"## {path}",
        "",
        "| line | " + " | ".join(name for name, _ in versions) + " |",
        "|---" * (len(versions) + 1) + "|",
    ]
    lines += [f"| {label} | " + " | ".join(values) + " |" for label, values in rows]
    return "\n".join([*lines, ""]) if rows else f"## {path}\n\nOne version, or no line that stands in two.\n"


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(git("ls-files", "results/*.txt").split()):
        print(history(name))
