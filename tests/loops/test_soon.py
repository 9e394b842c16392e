"""What is asked of XLA, whatever its version."""

import pytest

from cycletime.loops import soon


def test_options_that_this_version_of_xla_has_are_asked_for() -> None:
    assert soon.soon_options("cpu") == soon._FEW
    assert soon.soon_options("gpu") == {}


def test_a_version_without_one_of_them_is_asked_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(soon._FEW, "xla_cpu_no_such_option", True)
    assert soon.soon_options.__wrapped__("cpu") == {}
