"""What is kept of a study: nothing lost that matters, and one sentence for a file that is none."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cycletime.errors import InputError
from cycletime.experiments import outcome as outcomes
from cycletime.experiments.outcome import CURVE_RESOLUTION, Outcome, OutcomeCell

FINITE = st.floats(-90.0, 9400.0)


def an_outcome(curves: np.ndarray[tuple[int, int], np.dtype[np.float64]], task: str = "reacher") -> Outcome:
    seeds = len(curves)
    scores = curves.mean(axis=1)
    cells = tuple(
        OutcomeCell(
            {"task": task, "dt": dt, "batch": batch}, {"batch": 8 * batch}, tuple(range(seeds)), scores, scores, curves
        )
        for dt in (0.004, 0.008)
        for batch in (1, 2)
    )
    return Outcome("s", 1000, cells, {"scale": 0.5, "command": "c"})


@given(
    curves=npst.arrays(np.float64, (3, 7), elements=st.one_of(FINITE, st.just(np.nan))),
    task=st.sampled_from(list(CURVE_RESOLUTION)),
)
def test_what_is_read_is_what_was_written_up_to_what_no_figure_shows(
    tmp_path_factory: pytest.TempPathFactory, curves: np.ndarray[tuple[int, int], np.dtype[np.float64]], task: str
) -> None:
    file = tmp_path_factory.mktemp("outcome") / "s.npz"
    before = an_outcome(curves, task)
    before.save(file)
    after = Outcome.load(file)
    assert (after.name, after.env_steps, after.about, after.n, after.scale) == ("s", 1000, before.about, (3,), 0.5)
    for one, other in zip(before.cells, after.cells, strict=True):
        assert (one.labels, one.values, one.seeds) == (other.labels, other.values, other.seeds)
        np.testing.assert_array_equal(one.scores, other.scores)
        np.testing.assert_array_equal(one.plain, other.plain)
        np.testing.assert_allclose(other.curves, one.curves, atol=0.5001 * CURVE_RESOLUTION[task])


def test_a_curve_goes_on_after_a_bin_that_is_no_number(tmp_path: Path) -> None:
    an_outcome(np.array([[1.0, np.nan, np.inf, -3.25]])).save(tmp_path / "s.npz")
    np.testing.assert_allclose(Outcome.load(tmp_path / "s.npz").cells[0].curves, [[1.0, np.nan, np.nan, -3.25]])


def test_cells_are_found_by_labels_and_values() -> None:
    outcome = an_outcome(np.zeros((2, 4)))
    assert outcome.cell(dt="4ms", batch=1) is outcome.cells[0]
    assert [cell.labels["batch"] for cell in outcome.where(dt="8ms")] == [1, 2]
    with pytest.raises(InputError, match=r"^s has 2 cells with dt 4ms, and not one"):
        outcome.cell(dt="4ms")


def test_parts_of_learning_are_means_of_their_bins() -> None:
    cell = an_outcome(np.arange(40.0).reshape(2, 20)).cells[0]
    np.testing.assert_array_equal(cell.final, [18.5, 38.5])
    assert cell.seed_part(0.0, 0.5) == {0: 4.5, 1: 24.5}


def test_what_is_no_outcome_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "s.npz"
    with pytest.raises(InputError, match="is not there: 'cycletime experiment run' makes its runs"):
        Outcome.load(file)
    an_outcome(np.zeros((2, 4))).save(file)
    whole = file.read_bytes()
    for damaged in (b"", b"no zip", whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match="cannot be read as an outcome: "):
            Outcome.load(file)
    (tmp_path / "other.npz").write_bytes(whole)
    with pytest.raises(InputError, match="it has the study s, and not the one that it is named after"):
        Outcome.load(tmp_path / "other.npz")


def test_what_declares_more_than_any_study_has_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    an_outcome(np.zeros((2, 4))).save(tmp_path / "s.npz")
    monkeypatch.setattr(outcomes, "MAX_BYTES", 100)
    with pytest.raises(InputError, match=r"it declares .* bytes, and 100 are the most"):
        Outcome.load(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"scores": None}, "it lacks, or does not know, 'scores'"),
        ({"scores": np.full(8, "1.0")}, "'scores' is <U3"),
        ({"scores": np.zeros((8, 1))}, r"'scores' is float64\[8, 1\]"),
        ({"curves": np.zeros((8, 0), np.int32)}, "it has 8 runs, and of its arrays "),
        ({"curves": np.zeros((8, 4))}, r"'curves' is float64\[8, 4\]"),
        ({"steps": np.ones(1)}, "it has 8 runs, and of its arrays .*'steps': 1"),
        ({"about": "cells"}, "it has 0 runs"),
        ({"about": "scale"}, "it has 7.0 of all environment steps"),
        ({"about": "dt"}, "could not convert string to float: 'x'"),
    ],
)
def test_arrays_of_another_kind_are_one_sentence(tmp_path: Path, changed: dict[str, object], words: str) -> None:
    file = tmp_path / "s.npz"
    an_outcome(np.zeros((2, 4))).save(file)
    with np.load(file) as before:
        arrays = dict(before)
    told = json.loads(arrays["about"].tobytes())
    others = {
        "cells": {**told, "cells": []},
        "scale": {**told, "about": {"scale": 7}},
        "dt": {**told, "cells": [{**each, "labels": {"dt": "x"}} for each in told["cells"]]},
    }
    for name, value in changed.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = np.frombuffer(json.dumps(others[str(value)]).encode(), np.uint8)
    np.savez_compressed(file, **arrays)
    with pytest.raises(InputError, match=f"cannot be read as an outcome: {words}"):
        Outcome.load(file)
