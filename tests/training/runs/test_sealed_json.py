"""JSON in files: what is told comes back, what was changed is noticed, and nothing else is a traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.training.sealed_json import check_seal, error_reason, parse_json, sealed_text

TOLD: dict[str, Any] = {"format": 1, "rate": 0.1, "nothing": None, "text": "\N{GREEK SMALL LETTER MU}", "list": [1, 2]}


def test_what_is_told_comes_back_with_a_seal_and_without() -> None:
    content = sealed_text(TOLD).encode()
    assert parse_json(content).keys() == {*TOLD, "sha256"}
    assert check_seal(parse_json(content)) == TOLD


@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_changes_nothing(share: float, bit: int) -> None:
    content = bytearray(sealed_text(TOLD).encode())
    content[int(share * len(content))] ^= 1 << bit
    try:
        back = check_seal(parse_json(bytes(content)), known=TOLD)
    except ValueError:
        return
    assert back == TOLD


def test_what_older_versions_wrote_has_no_seal_and_nothing_unknown() -> None:
    assert check_seal(TOLD, known=TOLD) == TOLD
    for told, known in ((TOLD, None), ({**TOLD, "sha257": ""}, TOLD), ({**TOLD, "sha256": None}, TOLD)):
        with pytest.raises(ValueError, match="it was changed since it was written"):
            check_seal(told, known)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b"[1]", "it is not a JSON object"),
        (b'{"x": "\xff"}', "its byte 7 is not text"),
        (b'{"x": ' * 100_000, "it is nested too deep"),
        (json.dumps({"x": 10**399}).encode(), "it has a number of 400 digits"),
    ],
)
def test_what_is_no_json_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(content)


def test_reasons_are_the_rest_of_a_sentence() -> None:
    assert error_reason(ValueError("it is so.")) == "it is so"
    assert error_reason(FileNotFoundError(2, "No such file or directory", "x")) == "No such file or directory"
    assert error_reason(KeyError("x")) == "it lacks, or does not know, 'x'"
    assert error_reason(OverflowError()) == "OverflowError"
