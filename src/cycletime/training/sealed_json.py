"""JSON files, read within bounds and sealed with the hash of their content.

A file that was changed after it was written, by a person or by a disk, is known by its seal. Versions of cycletime up
to 0.2 sealed only checkpoints; in other files an unknown key shows that the seal itself was changed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from cycletime.errors import RunError

MOST_DIGITS = 40
"""Of a whole number."""
_SEAL = "sha256"


def sealed_text(data: Mapping[str, Any]) -> str:
    return json.dumps({**data, _SEAL: _hash(data)}, indent=1) + "\n"


def parse_json(content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content, parse_int=_whole_number)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"its byte {error.start} is not text") from None
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return data


def is_count(value: object) -> bool:
    """Whether a value is a whole number that something can be counted by."""
    return type(value) is int and value >= 0


def check_seal(data: Mapping[str, Any], known: Collection[str] | None = None) -> dict[str, Any]:
    """The data without its seal, which must fit; `known` are all keys that there can be, where a file may have none."""
    without = {name: value for name, value in data.items() if name != _SEAL}
    is_old = _SEAL not in data and known is not None and without.keys() <= set(known)
    if not is_old and data.get(_SEAL) != _hash(without):
        raise ValueError("it was changed since it was written")
    return without


def is_sealed(data: Mapping[str, Any]) -> bool:
    return _SEAL in data


def error_reason(error: Exception) -> str:
    """Why something cannot be read, as the rest of a sentence."""
    if isinstance(error, KeyError):
        return f"it lacks, or does not know, {error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).rstrip(".") or type(error).__name__


def refuse_unreadable(path: Path, error: Exception) -> None:
    """Raise what does not show that a file is damaged, so that nobody deletes it: no permission, no memory."""
    if isinstance(error, MemoryError):
        raise error
    if isinstance(error, PermissionError):
        raise RunError(
            f"{path} may not be read by you ({error.strerror}): have its owner give you the right to, and resume."
        ) from error


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"it has a number of {len(digits)} digits")
    return int(digits)


def _hash(data: Mapping[str, Any]) -> str:
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
