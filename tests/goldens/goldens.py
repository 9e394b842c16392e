"""What a command or a training gave when it was recorded, and whether it still gives it.

The goldens are the files below `data`. They go through the command line and the names of `cycletime` alone, since all
that lies below may move. With $CYCLETIME_RECORD_GOLDENS set, `holds` writes instead of comparing (`record.py`).
"""

import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
FOLDERS = DATA / "folders"
"""Studies and runs as version 0.2.0 wrote them. Nothing records them again."""
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
RECORD = "CYCLETIME_RECORD_GOLDENS"


def recording() -> bool:
    """Whether goldens are written."""
    return bool(os.environ.get(RECORD))


def holds(name: str, found: str) -> None:
    """Compare a text with the golden of a name, or record it."""
    file = DATA / name
    found = found.rstrip("\n") + "\n"
    if recording():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(found, encoding="utf-8")
        return
    assert file.exists(), f"There is no golden {name}: './check goldens --record' writes it."
    expected = file.read_text(encoding="utf-8")
    differs = difflib.unified_diff(expected.splitlines(), found.splitlines(), "golden", "now", n=1, lineterm="")
    assert found == expected, f"{name} is not what it was:\n" + "\n".join(list(differs)[:80])


def holds_json(name: str, found: Mapping[str, Any]) -> None:
    """Compare what can be written as JSON."""
    holds(name, json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False))


_VOLATILE = (
    (r"\b0\.\d+\.\d+(\+[0-9a-f]{7,}(-dirty)?)", "<version>"),
    (r"\bcycletime 0\.\d+\.\d+\b", "cycletime <version>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?", "<time>"),
    (r"(\d episodes?\)|so far|done|left|failed), [\d.]+ (s|min|h)\b", r"\1, <time>"),
    (r"worst difference from the JAX policy: [\d.e-]+", "worst difference from the JAX policy: <tiny>"),
    (r"\([\d,]+ bytes\)", "(<n> bytes)"),
    (r"pack\.zip, [\d.]+ MiB", "pack.zip, <n> MiB"),
    (r"^.*: \d+%.*\n", ""),  # progress
    (r"^\d+ of \d+ runs?, .*\n", ""),
)


def steady(text: str, folder: Path | None = None, also: Iterable[tuple[str, str]] = ()) -> str:
    """A text without what differs from day to day and from machine to machine."""
    if folder is not None:
        text = text.replace(str(folder.resolve()), "<here>").replace(str(folder), "<here>")
    text = text.replace(str(ROOT), "<project>")
    for pattern, word in (*_VOLATILE, *also):
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def digest(content: str | bytes) -> str:
    """Enough of a hash to tell two texts apart."""
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:32]
