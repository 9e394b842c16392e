"""What is noted of a run, and when it is left alone."""

from pathlib import Path

import pytest

from cycletime.errors import InputError
from cycletime.studies.study_folder import MAX_FAILURES, RunFailures


def test_a_run_that_raises_three_times_is_left_alone_until_a_retry(tmp_path: Path) -> None:
    failures = RunFailures(tmp_path / "run")
    assert (failures.read(), failures.last, failures.is_final) == ([], {}, False)
    for number in range(MAX_FAILURES):
        assert not failures.is_final
        failures.add(f"no {number}")
    assert failures.is_final
    assert failures.last["error"] == f"no {MAX_FAILURES - 1}"
    failures.forget()
    assert (failures.is_final, failures.read()) == (False, [])
    failures.forget()


def test_a_wrong_input_is_tried_once(tmp_path: Path) -> None:
    failures = RunFailures(tmp_path / "run")
    failures.add(ValueError("may pass"))
    assert not failures.is_final
    failures.add(InputError("'no:Hopper-v5' needs a module that cannot be imported."))
    assert failures.is_final
    failures.forget()
    assert not failures.is_final


def test_a_run_over_which_workers_die_alone_at_the_same_place_is_left_alone(tmp_path: Path) -> None:
    failures = RunFailures(tmp_path / "run")
    for _ in range(MAX_FAILURES):
        assert not failures.is_final
        failures.add_death("killed", 500, among=1)
    assert failures.is_final


@pytest.mark.parametrize("place", [None, 0])
def test_a_place_can_be_unknown_or_the_beginning(tmp_path: Path, place: int | None) -> None:
    failures = RunFailures(tmp_path / "run")
    for _ in range(MAX_FAILURES):
        failures.add_death("killed", place, among=1)
    assert failures.is_final


def test_a_run_that_gets_further_each_time_or_dies_among_others_is_not(tmp_path: Path) -> None:
    further, among = RunFailures(tmp_path / "further"), RunFailures(tmp_path / "among")
    for number in range(10 * MAX_FAILURES):
        further.add_death("killed", 100 * number, among=1)
        among.add_death("killed", 0, among=2)
    assert not further.is_final
    assert not among.is_final


def test_deaths_are_no_failures_of_its_own_nor_the_other_way_round(tmp_path: Path) -> None:
    failures = RunFailures(tmp_path / "run")
    for number in range(MAX_FAILURES - 1):
        failures.add("no")
        failures.add_death("killed", 0, among=1)
        failures.add_death("killed", 1, among=number + 2)
    assert not failures.is_final


def test_after_each_death_fewer_are_trained_together_until_a_run_is_alone(tmp_path: Path) -> None:
    failures = RunFailures(tmp_path / "run")
    assert failures.max_batch_size() is None
    failures.add("raised by itself")
    assert failures.max_batch_size() is None
    for among, most in ((9, 4), (4, 2), (2, 1), (1, 1), (7, 1)):
        failures.add_death("killed", 0, among=among)
        assert failures.max_batch_size() == most


def test_they_survive_a_torn_line(tmp_path: Path) -> None:
    failures = RunFailures(tmp_path / "run")
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        failures.add(error)
    with failures.file.open("a") as file:
        file.write('{"error": "to')
    failures.add("third")
    first, second = failures.read()
    assert first["error"] == "ZeroDivisionError: division by zero"
    assert "_ = 1 / 0" in first["traceback"]
    assert second["error"] == "third"
    assert not failures.is_final


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"[" * 10**5,
        b'{"error": 3}',
        b'{"error": "x", "died_among": "many"}',
        b'{"error": "x", "died_among": 1, "begun_at": []}',
        b'{"error": "x", "died_among": ' + b"9" * 400 + b"}",
    ],
)
def test_a_spoilt_line_does_not_count_and_is_forgotten_by_a_retry(tmp_path: Path, line: bytes) -> None:
    failures = RunFailures(tmp_path / "run")
    failures.add("first")
    failures.file.write_bytes(line + b"\n" + failures.file.read_bytes())
    assert [each["error"] for each in failures.read()] == ["first"]
    assert (failures.is_final, failures.max_batch_size()) == (False, None)
    failures.file.write_bytes(line)
    assert (failures.last, failures.file.exists()) == ({}, True)
    failures.forget()
    assert not failures.file.exists()
